"""Functions of text, and regular expressions."""
