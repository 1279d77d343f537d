"""Names of tables, and the statements that run on tables by their names."""
