"""Functions of dates, timestamps and intervals, and their formats."""
