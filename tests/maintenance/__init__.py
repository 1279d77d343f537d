"""Advice and maintenance."""
