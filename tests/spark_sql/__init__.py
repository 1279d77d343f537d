"""Files of SQL for Spark, run over our tables and over Spark's own."""
