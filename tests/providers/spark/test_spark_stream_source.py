"""The stream of changes without a session: batches, restarts, and what stops a query."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

import rowsieve as rs
from rowsieve.errors import (
    InvalidInput,
    SchemaMismatch,
    SnapshotExpired,
    TableNotFound,
    UnknownColumn,
    UnsupportedOperation,
    VersionNotFound,
)
from rowsieve.providers.spark.reads import feed_reads
from rowsieve.providers.spark.source import RowsieveSource
from rowsieve.retention.leases import lease_files
from tests.change_feed.test_random_histories import History, shown_rows
from tests.profiles import IS_DEEP, examples
from tests.providers.feed_engine import Query, Stopped, load, reader_of, rows_between

pytestmark = pytest.mark.spark

Rows = list[tuple[Any, ...]]
LABELS = {"insert": "+", "update_preimage": "<", "update_postimage": ">", "delete": "-"}


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Versions 0 to 2: created with two rows, one of them updated, the other one deleted."""
    made = rs.create_table(str(tmp_path / "t"), {"id": [1, 2], "v": [10, 20]}, key=["id"])
    made.upsert({"id": [1], "v": [11]})
    made.delete("id = 2")
    return made


class Sink:
    """Keeps each batch once, as a sink with the number of its batches does."""

    def __init__(self) -> None:
        self.batches: dict[int, Rows] = {}
        self.repeated = 0

    def __call__(self, number: int, rows: list[pa.RecordBatch]) -> None:
        found = [tuple(row.values()) for batch in rows for row in batch.to_pylist()]
        if number in self.batches:
            self.repeated += 1
            assert Counter(map(repr, self.batches[number])) == Counter(map(repr, found))
        self.batches[number] = found

    @property
    def signs(self) -> list[tuple[Any, ...]]:
        """(sign, id, v, version) of all rows in order."""
        rows = [row for number in sorted(self.batches) for row in self.batches[number]]
        return [(LABELS[kind], i, v, version) for i, v, kind, version, _ in rows]


def run(source: RowsieveSource) -> list[tuple[Any, ...]]:
    sink = Sink()
    Query(sink).run(source)
    return sink.signs


def test_a_stream_begins_with_all_rows_or_where_it_is_told(table: rs.Table) -> None:
    changes = [
        ("+", 1, 10, 0),
        ("+", 2, 20, 0),
        ("<", 1, 10, 1),
        (">", 1, 11, 1),
        ("-", 2, 20, 2),
    ]
    times = [commit.timestamp.isoformat() for commit in reversed(table.history())]
    assert run(load(table.uri)) == [("+", 1, 11, 2)]
    assert run(load(table.uri, startingversion=0)) == changes
    assert run(load(table.uri, startingversion=1)) == changes[2:]
    assert run(load(table.uri, startingversion="latest")) == []
    assert run(load(table.uri, startingversion=3)) == []
    assert run(load(table.uri, startingtimestamp=times[1])) == changes[2:]
    assert run(load(table.uri, startingtimestamp="2001-01-01T00:00:00Z")) == changes


def test_batches_have_as_many_versions_as_asked(table: rs.Table) -> None:
    sink = Sink()
    Query(sink).run(load(table.uri, startingversion=0, maxversionspertrigger=2))
    assert [{row[-2] for row in rows} for rows in sink.batches.values()] == [{0, 1}, {2}]


def test_a_repeated_first_batch_is_the_one_that_was_planned(table: rs.Table) -> None:
    """Spark forgets where a query began until its first batch is done."""

    def stop(where: str) -> None:
        if where == "before the write":
            raise Stopped

    for options, expected in (
        ({}, [("+", 1, 11, 2), ("+", 3, 30, 3)]),
        ({"startingversion": "latest"}, [("+", 3, 30, 3)]),
    ):
        table.restore(2)
        version = table.refresh()
        sink = Sink()
        query = Query(sink)
        with pytest.raises(Stopped):
            query.run(load(table.uri, **options), stop)
        assert (len(query.offsets), query.done) == (1, 0)
        table.upsert({"id": [3], "v": [30]})
        query.run(load(table.uri, **options))
        seen = [(*row[:3], row[3] - version + 2) for row in sink.signs]
        assert seen == expected


def test_the_driver_reads_no_rows_and_cuts_large_commits(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upsert({"id": [50, 51], "v": [1, 1]})
    source = load(table.uri)
    reader = reader_of(source)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert len(reader.partitions(start, end)) == 1
    monkeypatch.setattr(feed_reads, "SMALLEST_TASK_BYTES", 1)
    monkeypatch.setattr(feed_reads, "_COMMIT_BYTES", 1)
    again = reader_of(source)
    files = list(Path(table.uri.removeprefix("file://"), "data").glob("*.parquet"))
    for file in files:
        file.rename(file.with_suffix(".away"))
    tasks = again.partitions(start, end)
    for file in files:
        file.with_suffix(".away").rename(file)
    assert len(tasks) == 2
    rows = [row for task in tasks for batch in again.read(task) for row in batch.to_pylist()]
    assert [row["id"] for row in rows] == [1, 50, 51]
    again.stop()
    reader.stop()


def test_columns_and_conditions_of_the_feed(table: rs.Table) -> None:
    source = load(table.uri, startingversion=0, columns="v", where="_change_type <> 'insert'")
    sink = Sink()
    Query(sink).run(source)
    assert [row[:3] for row in sink.batches[0]] == [
        (10, "update_preimage", 1),
        (11, "update_postimage", 1),
        (20, "delete", 2),
    ]


def test_changed_columns_stop_a_query_before_their_version(table: rs.Table) -> None:
    sink = Sink()
    query, source = Query(sink), load(table.uri, startingversion=0)
    table.upsert({"id": [5], "v": [50]})
    table.add_column("w", "int64", default=7)
    table.upsert({"id": [6], "v": [60], "w": [1]})
    with pytest.raises(SchemaMismatch, match="Load the stream again"):
        query.run(source)
    assert sink.signs[-1] == ("+", 5, 50, 3)
    with pytest.raises(SchemaMismatch, match="changed by version 4"):
        query.run(source)
    with pytest.raises(SchemaMismatch):
        Query(sink).run(load_at(table, 3))
    query.run(load(table.uri))
    assert [row[:4] for row in sink.batches[1]] == [(6, 60, 1, "insert")]
    table.upsert({"id": [7], "v": [70], "w": [1]})
    with pytest.raises(SchemaMismatch):
        query.run(source)  # of the old columns, beyond their end
    assert len(query.offsets) == query.done  # before a batch was planned
    query.offsets.append(query.offsets[-1].replace('"version": 5', '"version": 6'))
    with pytest.raises(SchemaMismatch):
        query.run(source)  # a batch that was planned with the new columns
    query.run(load(table.uri))
    assert [row[:4] for row in sink.batches[2]] == [(7, 70, 1, "insert")]


def load_at(table: rs.Table, version: int) -> RowsieveSource:
    """A stream that was loaded when this version was the newest."""
    source = load(table.uri)
    old = load(table.uri, endingversion=version)
    source._pinned = old._pinned
    return source


def test_versions_that_are_gone_stop_a_query(table: rs.Table) -> None:
    sink = Sink()
    query, source = Query(sink), load(table.uri, startingversion=0, maxversionspertrigger=1)

    def stop(where: str) -> None:
        if where == "after the offset" and query.done == 1:
            raise Stopped

    with pytest.raises(Stopped):
        query.run(source, stop)
    table.upsert({"id": [9], "v": [90]})
    table.expire_versions(retain_last=1)
    for how in (load(table.uri, startingversion=0), load(table.uri)):
        with pytest.raises(SnapshotExpired, match="Start a query with a new checkpoint"):
            query.run(how)
    with pytest.raises(SnapshotExpired):
        run(load(table.uri, startingversion=1))
    assert sorted(run(load(table.uri)))[0][:3] == ("+", 1, 11)


def test_a_running_query_keeps_what_it_needs(table: rs.Table) -> None:
    reader = reader_of(load(table.uri, startingversion=0, maxversionspertrigger=1))
    start = reader.initialOffset()
    offsets = [start]
    for _ in range(2):
        offsets.append(reader.latestOffset(offsets[-1], reader.getDefaultReadLimit()))
    assert [lease.version for lease in lease_files(table.handle.store)] == [0]
    table.compact()
    table.expire_versions(retain_last=1)
    assert len(rows_between(reader, offsets[1], offsets[2])) == 1
    reader.stop()
    assert lease_files(table.handle.store) == []


def test_another_table_stops_a_query(table: rs.Table) -> None:
    query, source = Query(Sink()), load(table.uri)
    query.run(source)
    folder = Path(table.uri.removeprefix("file://"))
    folder.rename(folder.with_name("old"))
    rs.create_table(str(folder), {"id": [1], "v": [1]}, key=["id"])
    with pytest.raises(TableNotFound, match="dropped and created again"):
        query.run(source)
    with pytest.raises(TableNotFound, match="start a query with a new checkpoint"):
        query.run(load(str(folder)))
    other = rs.create_table(str(folder.with_name("other")), {"id": [1]}, key=["id"])
    with pytest.raises(TableNotFound, match="Give each query a checkpoint of its own"):
        query.run(load(other.uri))


def test_a_table_replaced_by_an_older_copy_stops_a_query(table: rs.Table) -> None:
    query = Query(Sink())
    query.run(load(table.uri))
    query.offsets[-1] = query.offsets[-1].replace('"version": 2', '"version": 7')
    with pytest.raises(VersionNotFound, match="an older copy"):
        query.run(load(table.uri))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"endingversion": 2}, InvalidInput, "are for spark.read"),
        ({"maxversionspertrigger": 0}, InvalidInput, "whole number from 1"),
        ({"startingversion": "new"}, InvalidInput, "whole number from 0"),
        ({"startingversion": 9}, VersionNotFound, "the newest version is 2"),
        ({"startingversion": 1, "startingtimestamp": "2020-01-01T00:00:00Z"}, InvalidInput, "excl"),
        ({"startingtimestamp": "2999-01-01T00:00:00Z"}, VersionNotFound, "earlier time"),
        ({"startingtimestamp": "yesterday"}, InvalidInput, "yesterday"),
        ({"version": 1}, InvalidInput, "unknown option 'version'"),
        ({"skipchangecommits": "true"}, UnsupportedOperation, "_change_type = 'insert'"),
        ({"where": "town = 1"}, UnknownColumn, "town"),
        ({"columns": "town"}, UnknownColumn, "town"),
        ({"where": "_commit_timestamp < now()"}, UnsupportedOperation, "time of the query"),
    ],
)
def test_options_that_are_refused(
    table: rs.Table, options: dict[str, Any], error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        run(load(table.uri, **options))


def test_a_stream_and_a_read_say_which_option_they_lack(table: rs.Table) -> None:
    plain = RowsieveSource({"path": table.uri})
    plain.schema()
    with pytest.raises(UnsupportedOperation, match=r"add \.option\('readChangeFeed', 'true'\)"):
        reader_of(plain)
    with pytest.raises(InvalidInput, match=r"add \.option\('readChangeFeed', 'true'\)"):
        RowsieveSource({"path": table.uri, "startingversion": "1"}).schema()
    with pytest.raises(InvalidInput, match="is true or false"):
        RowsieveSource({"path": table.uri, "readchangefeed": "yes"}).schema()
    with pytest.raises(InvalidInput, match="without schema"):
        reader_of(RowsieveSource({"path": table.uri, "readchangefeed": "true"}))
    with pytest.raises(InvalidInput, match="not of a stream"):
        reader_of(load(table.uri)).partitions({"index": 1}, {"index": 2})


class Follower:
    """A query that follows a history, and is stopped anywhere."""

    def __init__(self, history: History, rng: random.Random) -> None:
        self.history, self.rng = history, rng
        self.batches: dict[int, pa.Table] = {}
        self.query = Query(self.write)

    def write(self, number: int, rows: list[pa.RecordBatch]) -> None:
        found = pa.Table.from_batches(rows) if rows else pa.table({})
        if number in self.batches:
            names = set(found.schema.names) & set(self.batches[number].schema.names)
            before = self.batches[number].select(sorted(names))
            assert Counter(shown_rows(before)) == Counter(shown_rows(found.select(sorted(names))))
        self.batches[number] = found

    def run(self) -> None:
        """Run to the end, through all stops."""
        most = self.rng.randrange(1, 4)
        for _ in range(100):
            source = load(self.history.table.uri, maxversionspertrigger=most)
            try:
                self.query.run(source, self.stop)
            except Stopped:
                continue
            return

    def stop(self, _: str) -> None:
        if self.rng.random() < 0.15:
            raise Stopped


def replay(batches: dict[int, pa.Table], names: list[str]) -> Counter[tuple[Any, ...]]:
    """The rows after all batches; no change may remove a row that is not there."""
    state: Counter[tuple[Any, ...]] = Counter()
    for number in sorted(batches):
        rows = batches[number]
        if not rows.num_rows:
            continue
        kinds = rows["_change_type"].to_pylist()
        versions = rows["_commit_version"].to_pylist()
        signs = [-1 if kind in ("delete", "update_preimage") else 1 for kind in kinds]
        values = shown_rows(rows.select(names))
        order = sorted(range(len(kinds)), key=lambda i: (versions[i], signs[i]))
        for i in order:
            state[values[i]] += signs[i]
            assert state[values[i]] >= 0, (number, values[i])
    return +state


@pytest.mark.parametrize(("kind", "parts"), [("integer", 1), ("text", 2), (None, 0)])
@examples(3)
@given(seed=st.integers(0, 2**32))
def test_a_stream_with_stops_follows_a_random_history(
    kind: str | None, parts: int, seed: int
) -> None:
    """After each run the replayed stream equals the table, in columns that never change."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        history = History(rng, kind, parts, str(Path(folder, "t")))
        follower = Follower(history, rng)
        for _ in range(40 if IS_DEEP else 6):
            for _ in range(rng.randrange(4)):
                history.step()
            follower.run()
            names = ["k", "k2", "f", "t"]
            table = Counter(shown_rows(history.table.to_arrow().select(names)))
            assert replay(follower.batches, names) == table
