"""One Spark session for the whole run: starting one takes some ten seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql")
    from rowsieve.providers.spark.java import spark_session

    if (other := sql.SparkSession.getActiveSession()) is not None:
        other.stop()  # it may be a local one that never runs a failed task again
    session = spark_session(
        "rowsieve tests",
        {
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.log.level": "OFF",
            "spark.sql.shuffle.partitions": "3",
        },
        master="local[2,4]",
    )
    yield session
    session.stop()
