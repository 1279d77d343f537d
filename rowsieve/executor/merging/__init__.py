"""Streams of versions in key order: which version of a key is seen, and the merge."""
