"""Spark's planner sees the sizes of our native scans: it broadcasts the smaller side of a join."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.spark import prune, read
from tests.profiles import IS_DEEP

pytestmark = pytest.mark.spark
THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"


@pytest.fixture
def session(spark: Any) -> Any:
    """A session that broadcasts sides of less than 50,000 bytes."""
    other = spark.newSession()
    other.conf.set(THRESHOLD, "50000")
    return other


def keyed(path: Path, count: int, batches: int = 1) -> rs.Table:
    """A table with text that does not compress, in as many files as batches."""
    table = rs.create_table(str(path), pa.schema([("id", pa.int64()), ("s", pa.string())]), ["id"])
    for start in range(0, count, count // batches):
        ids = range(start, start + count // batches)
        texts = [hashlib.sha256(b"%d" % i).hexdigest() for i in ids]
        table.upsert(pa.table({"id": ids, "s": texts}))
    return table


def join_of(one: Any, other: Any) -> tuple[str, str | None]:
    """Spark's kind of join, and the side that it broadcasts."""
    plan = one.join(other, "id")._jdf.queryExecution().executedPlan().toString()
    kind = re.search(r"(BroadcastHash|SortMerge)Join", plan)
    side = re.search(r"Build(Left|Right)", plan)
    assert kind is not None
    return kind[1], None if side is None else side[1]


@pytest.mark.skipif(not IS_DEEP, reason="the other test shows the same")
def test_the_smaller_side_is_broadcast_wherever_it_stands(session: Any, tmp_path: Path) -> None:
    small, large = keyed(tmp_path / "small", 100), keyed(tmp_path / "large", 8_000)
    little, much = (table.to_spark(session) for table in (small, large))
    assert join_of(little, much) == ("BroadcastHash", "Left")
    assert join_of(much, little) == ("BroadcastHash", "Right")
    assert join_of(much, large.to_spark(session)) == ("SortMerge", None)
    unknown = read(session, small.uri, routes=["source"])
    assert join_of(unknown, much) == ("SortMerge", None)  # as documented
    assert join_of(unknown, little) == ("BroadcastHash", "Right")
    small.upsert(large.scan("id >= 100").to_arrow())  # the sizes are those of the version
    large.delete("id >= 100")
    large.compact()
    little, much = (table.to_spark(session) for table in (large, small))
    assert join_of(little, much) == ("BroadcastHash", "Left")
    assert join_of(much, little) == ("BroadcastHash", "Right")


def test_a_side_that_is_pruned_is_broadcast(session: Any, tmp_path: Path) -> None:
    table, other = keyed(tmp_path / "t", 8_000, batches=20), keyed(tmp_path / "o", 8_000)
    one = table.to_spark(session)
    part = one.where("id % 1000 = 3 AND id < 400")
    assert join_of(part, other.to_spark(session))[0] == "SortMerge"
    assert join_of(prune(part), other.to_spark(session)) == ("BroadcastHash", "Left")
    where = table.to_spark(session, where="id < 400")
    assert join_of(other.to_spark(session), where) == ("BroadcastHash", "Right")
