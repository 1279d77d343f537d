"""Changes of a table: the rows they read and write, and the commits they conflict with."""
