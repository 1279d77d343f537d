"""Codecs: a second form of rows, as bytes, beside their columns."""
