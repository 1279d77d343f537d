"""Every feature of a table holds after everything that can happen to the table."""
