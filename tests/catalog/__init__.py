"""Catalogs: names, and changes of them by several at once."""
