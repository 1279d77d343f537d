"""Registers the data source in a session whose processes have the package only among its files."""

from __future__ import annotations

from typing import Any

from rowsieve import engines
from rowsieve.errors import InvalidInput


def register(spark: Any) -> None:
    """Register `format("rowsieve")` in a session, where Spark does not find it by itself.

    Spark looks for sources in the folders of its processes, and not in what `--py-files`,
    `spark.submit.pyFiles` or `addArtifact` have sent to them. A package that is installed where
    Spark's processes run needs no registration.
    """
    engines.spark()  # MissingExtra without PySpark
    if not hasattr(spark, "dataSource"):
        raise InvalidInput(f"register: spark must be a SparkSession, not {type(spark).__name__}")
    from rowsieve.providers.spark.source import RowsieveSource  # noqa: PLC0415 - needs PySpark

    spark.dataSource.register(RowsieveSource)
