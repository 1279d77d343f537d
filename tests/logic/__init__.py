"""Logic tests: files of SQL statements and queries, answered over our tables and over memory."""
