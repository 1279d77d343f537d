"""Read Spark's SQL: what its grammar and its functions mean as our tree, before types are known."""
