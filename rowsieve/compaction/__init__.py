"""Rewriting parts so that reads need no merge: which ones, and how."""
