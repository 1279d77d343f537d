"""What each change of a table reads and writes, and what makes it stale before it commits."""
