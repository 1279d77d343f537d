"""Events in a DataFrame: applied by the driver, once for each batch of a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.providers.spark import apply_events

pytestmark = pytest.mark.spark


def event(op: str, lsn: int, before: Any = None, after: Any = None) -> tuple[str]:
    source = {"connector": "postgresql", "schema": "public", "table": "t", "lsn": lsn}
    return (json.dumps({"before": before, "after": after, "op": op, "source": source}),)


EVENTS = [
    event("c", 1, None, {"id": 1, "n": 10}),
    event("u", 3, {"id": 1, "n": 11}, {"id": 1, "n": 12}),
    event("u", 2, {"id": 1, "n": 10}, {"id": 1, "n": 11}),
    event("c", 4, None, {"id": 2, "n": 20}),
    event("d", 5, {"id": 2, "n": 20}),
]


def test_the_events_of_a_batch_are_applied_once(spark: Any, tmp_path: Path) -> None:
    columns = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    table = rs.create_table(str(tmp_path / "t"), columns, key=["id"])
    frame = spark.createDataFrame(EVENTS, "value string").repartition(2)
    for _ in range(2):
        applied = apply_events(frame, table, format="debezium", token=("feed", 1))
        assert applied.commit.version == 1
    assert table.to_arrow().to_pylist() == [{"id": 1, "n": 12}]
    frame.write.text(str(tmp_path / "feed"))
    fails = iter([True, False])
    numbers = []

    def apply(batch: Any, number: int) -> None:
        numbers.append(apply_events(batch, rs.open_table(table.uri), format="debezium").commit)
        if next(fails):
            raise ValueError("after the commit")

    def run() -> None:
        stream = spark.readStream.text(str(tmp_path / "feed")).writeStream.foreachBatch(apply)
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        stream.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(Exception, match="after the commit"):
        run()
    run()
    assert [commit.version for commit in numbers] == [2, 2]
    assert table.refresh() == 2


def test_what_events_need_is_checked_first(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(EVENTS, "value string")
    with pytest.raises(InvalidInput, match="must be a Table, not str"):
        apply_events(frame, "t", format="debezium")
    with pytest.raises(InvalidInput, match="must be a Spark DataFrame"):
        apply_events(EVENTS, "t", format="debezium")
    frame.write.text(str(tmp_path / "feed"))
    with pytest.raises(UnsupportedOperation, match="is a stream"):
        apply_events(spark.readStream.text(str(tmp_path / "feed")), "t", format="debezium")
