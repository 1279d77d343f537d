"""Rejects or rewrites conditions that a dialect's engine would evaluate differently."""
