"""Write Spark's SQL: rewrite bound conditions so that Spark gives them the same values."""
