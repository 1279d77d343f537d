"""The change feed in Spark: batch reads, streams into memory, and a table kept equal to another."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, VersionNotFound
from tests.profiles import IS_DEEP

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("v", pa.int64()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
    ]
)


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    made = rs.create_table(str(tmp_path / "t"), SCHEMA, key=["id"])
    made.upsert(
        [{"id": i, "v": i, "at": datetime(2024, 1, 1, i, 30, tzinfo=UTC)} for i in range(6)]
    )
    made.update({"v": "v + 10"}, where="id < 2")
    made.delete("id = 5")
    return made


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """The rows without the time of the commit."""
    names = [name for name in frame.columns if name not in ("_commit_timestamp", "at")]
    return sorted(map(tuple, frame.select(*names).collect()))


def expected(table: rs.Table, *versions: int, **options: Any) -> list[tuple[Any, ...]]:
    rows = table.changes(*versions, **options).read_all().drop_columns(["_commit_timestamp"])
    rows = rows.drop_columns([name for name in ("at",) if name in rows.schema.names])
    return sorted(tuple(row.values()) for row in rows.to_pylist())


def read(spark: Any, table: rs.Table, **options: Any) -> Any:
    return (
        spark.read.format("rowsieve")
        .option("readChangeFeed", "true")
        .options(**options)
        .load(table.uri)
    )


def test_a_batch_read_has_the_rows_of_the_feed(spark: Any, table: rs.Table) -> None:
    from pyspark.sql.functions import col, hour

    from rowsieve.providers.spark import read_changes

    times = [commit.timestamp.isoformat() for commit in reversed(table.history())]
    frame = read(spark, table, startingVersion=0)
    assert rows_of(frame) == expected(table, 0)
    table.upsert([{"id": 9, "v": 9, "at": None}])
    assert rows_of(frame) == expected(table, 0, 3)  # pinned when it was loaded
    some = read(spark, table, startingTimestamp=times[2], endingTimestamp=times[2], columns="id")
    assert rows_of(some) == expected(table, 2, 2, columns=["id"])
    # in Kathmandu it is 5:45 later
    where = (col("_change_type") == "delete") | (hour("at") == 7)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        found = rows_of(read_changes(spark, table.uri, 0, where=where))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")  # as the session began
    assert found == expected(
        table, 0, where="_change_type = 'delete' OR at = TIMESTAMPTZ '2024-01-01 01:30:00+00'"
    )
    assert rows_of(read_changes(spark, table.uri, table.version + 1)) == []


def test_net_changes_are_those_of_the_method(spark: Any, table: rs.Table, tmp_path: Path) -> None:
    from rowsieve.providers.spark import read_changes

    table.update({"v": "v - 10"}, where="id = 1")  # ends as it began
    table.compact()
    table.upsert([{"id": 9, "v": 9, "at": None}])
    for versions in ((2,), (0, 3), (2, 4), (1, 1)):
        found = read_changes(spark, table.uri, *versions, net=True)
        assert rows_of(found) == expected(table, *versions, net=True)
    where = "v > 5 AND _change_type <> 'insert'"
    options = {"startingVersion": 2, "netChanges": "true", "split_bytes": 1, "where": where}
    assert rows_of(read(spark, table, **options)) == expected(table, 2, where=where, net=True)
    keyless = rs.create_table(str(tmp_path / "keyless"), pa.table({"id": [1]}))
    with pytest.raises(Exception, match="the table has no key"):
        read_changes(spark, keyless.uri, 0, net=True)
    with pytest.raises(Exception, match="option netChanges is true or false"):
        read(spark, table, startingVersion=0, netChanges="yes").count()
    stream = spark.readStream.format("rowsieve").options(readChangeFeed="true", netChanges="true")
    query = stream.load(table.uri).writeStream.format("noop").start()
    with pytest.raises(Exception, match=r"netChanges is for spark\.read;"):
        query.processAllAvailable()


def test_what_a_batch_read_refuses(spark: Any, table: rs.Table) -> None:
    from rowsieve.providers.spark import read_changes

    with pytest.raises(VersionNotFound):
        read_changes(spark, table.uri, 9)
    with pytest.raises(InvalidInput, match="has no version"):
        read_changes(spark, table.uri, 3, 1)
    with pytest.raises(InvalidInput, match="list of names"):
        read_changes(spark, table.uri, 0, columns="id")
    with pytest.raises(Exception, match="startingVersion or startingTimestamp"):
        read(spark, table).count()
    with pytest.raises(Exception, match=r"are for spark\.readStream"):
        read(spark, table, startingVersion=0, maxVersionsPerTrigger=1).count()


def test_a_stream_follows_the_settings_of_its_session(spark: Any, table: rs.Table) -> None:
    """In Kathmandu it is 5:45 later, so that 01:30 is 07:15."""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        stream = (
            spark.readStream.format("rowsieve")
            .option("readChangeFeed", "true")
            .option("where", "hour(at) = 7")
            .load(table.uri)
        )
        query = stream.writeStream.format("memory").queryName("zoned").start()
        query.processAllAvailable()
        query.stop()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")  # as the session began
    assert rows_of(spark.table("zoned")) == [(1, 11, "insert", 3)]


def test_a_connect_client_reads_and_streams_the_feed(
    client: Any, table: rs.Table, tmp_path: Path
) -> None:
    assert rows_of(read(client, table, startingVersion=0)) == expected(table, 0)
    stream = client.readStream.format("rowsieve").option("readChangeFeed", "true").load(table.uri)
    writer = stream.writeStream.format("memory").queryName("of_client")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert client.table("of_client").count() == 5


def change(table: rs.Table, rng: random.Random) -> None:
    """One commit, of rows or without."""
    ids = rng.sample(range(30), 4)
    rows = [{"id": i, "v": rng.randrange(99), "at": None} for i in ids]
    steps: list[Any] = [
        lambda: table.upsert(rows),
        lambda: table.upsert(rows),
        lambda: table.delete(f"id % 5 = {rng.randrange(5)}"),
        lambda: table.update({"v": "v + 1"}, where=f"id < {rng.randrange(30)}"),
        lambda: table.overwrite(rows),
        lambda: table.restore(rng.randrange(table.version + 1)),
        table.compact,
    ]
    rng.choice(steps)()


def content(table: rs.Table) -> dict[int, int]:
    rows = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["v"] for row in rows}


def test_a_table_is_streamed_into_another_through_restarts(
    spark: Any, table: rs.Table, tmp_path: Path
) -> None:
    """The sink fails, dies and is repeated; a query is also stopped between batches."""
    from tests.faults.spark_writes import FaultySource

    spark.dataSource.register(FaultySource)
    rng = random.Random(5)
    copy = rs.create_table(str(tmp_path / "copies" / "b"), SCHEMA, key=["id"])
    batches = 500 if IS_DEEP else 6
    for _ in range(batches):
        change(table, rng)
    failures = 0
    while content(copy) != content(table) or failures == 0:
        stream = (
            spark.readStream.format("rowsieve")
            .option("readChangeFeed", "true")
            .option("startingVersion", 0)
            .option("maxVersionsPerTrigger", 1)
            .option("where", "_change_type <> 'update_preimage'")
            .load(table.uri)
            .selectExpr(
                "id", "v", "at", "if(_change_type = 'delete', 'd', 'u') op", "_commit_version n"
            )
        )
        writer = stream.writeStream.format("rowsieve_faulty")
        writer = writer.options(mode="changes", op="op", sequence="n")
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(copy.uri)
        try:
            query.awaitTermination(rng.uniform(5, 60) if IS_DEEP else None)
        except Exception:
            failures += 1
            assert failures < batches
        query.stop()
        copy.refresh()
    changed = set(table.changes(0).read_all()["_commit_version"].to_pylist())
    assert [commit.operation for commit in copy.history()][:-1] == ["apply"] * len(changed)
    seen = copy.version
    for version in sorted(changed, reverse=True)[: 40 if IS_DEEP else 12]:
        old = rs.open_table(table.uri, version=version)
        assert content(rs.open_table(copy.uri, version=seen)) == content(old)
        seen -= 1
