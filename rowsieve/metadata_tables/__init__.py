"""What is known of a table or a catalog as rows, for SQL: versions, files, properties, columns."""
