"""A write whose driver is killed is committed whole or not at all, and its repetition once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from tests.profiles import IS_DEEP
from tests.providers.spark.spark_killed_driver import ROWS, TOKEN

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not IS_DEEP, reason="starts a Spark session for each driver that dies"),
]
ALL = [(id_, 2 * id_) for id_ in range(100)]


def rows_of(table: rs.Table) -> list[tuple[int, int]]:
    return [(row["id"], row["n"]) for row in table.scan(order_by_key=True).to_arrow().to_pylist()]


@pytest.mark.parametrize(("moment", "committed"), [("before", []), ("after", ALL)])
def test_a_killed_driver_commits_once(
    spark: Any, tmp_path: Path, moment: str, committed: list[tuple[int, int]]
) -> None:
    columns = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    table = rs.create_table(str(tmp_path / "t"), columns, key=["id"])
    killed = subprocess.run(
        [sys.executable, "-m", "tests.providers.spark.spark_killed_driver", table.uri, moment],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        check=False,
        timeout=600,
    )
    assert killed.returncode == -signal.SIGKILL
    assert any((tmp_path / "t" / "data").iterdir())  # it died after its tasks had written
    table.refresh()
    assert rows_of(table) == committed
    again = spark.sql(ROWS).write.format("rowsieve").mode("append")
    again.options(mode="upsert", **TOKEN).save(table.uri)
    assert table.refresh() == 1
    assert rows_of(table) == ALL
