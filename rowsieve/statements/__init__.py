"""SQL statements as values: `parse` reads a text, and engines, catalogs and commands run it.

A text becomes one frozen value of `Statement` (`parse_statement.py`). What belongs to an engine
alone stays text. A statement that an engine may also have for tables of its own is read in two
steps: `parse` finds its verb and table, and `read_change` its clauses once the table turns out to
be ours.
"""
