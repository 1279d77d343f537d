"""Lets Spark read and write our tables; Spark finds the source itself, as `format("rowsieve")`."""

from rowsieve.providers.spark.change_events import apply_events
from rowsieve.providers.spark.change_frames import read_changes
from rowsieve.providers.spark.cluster.checks import check
from rowsieve.providers.spark.jvm.java import java_home, spark_session
from rowsieve.providers.spark.reads.table_reads import (
    explain,
    explain_prune,
    prune,
    read,
    sql,
)
from rowsieve.providers.spark.registration import register

__all__ = [
    "apply_events",
    "check",
    "explain",
    "explain_prune",
    "java_home",
    "prune",
    "read",
    "read_changes",
    "register",
    "spark_session",
    "sql",
]
