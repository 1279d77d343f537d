"""Compaction: select parts and rewrite them so that reads need no merge."""
