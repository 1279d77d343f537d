"""Translate filters of other languages to predicates and back."""
