"""Spark reads and writes our tables."""
