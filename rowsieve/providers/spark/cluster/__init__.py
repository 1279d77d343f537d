"""Finds out what the processes of a Spark session can do."""
