"""Writes of DataFrames: tasks write parts, and the driver commits them once."""
