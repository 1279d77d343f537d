"""Lets Spark read and write our tables; Spark finds the source itself, as `format("rowsieve")`."""

from rowsieve.providers.spark.java import java_home, spark_session

__all__ = ["java_home", "spark_session"]
