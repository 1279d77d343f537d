"""Spark reads and writes our tables; it finds the source by itself, as `format("rowsieve")`."""

from rowsieve.providers.spark.java import java_home, spark_session

__all__ = ["java_home", "spark_session"]
