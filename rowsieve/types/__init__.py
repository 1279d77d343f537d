"""What a column is: logical types, schemas with field ids, and how values lie in Arrow."""
