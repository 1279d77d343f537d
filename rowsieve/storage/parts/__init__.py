"""The data files of a table, and their deletion vectors."""
