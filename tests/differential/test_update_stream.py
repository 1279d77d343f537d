"""Streams of updates in Spark: each update once, whatever is repeated, compacted or given up."""

from __future__ import annotations

import json
import pickle
import random
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("pyspark")

import rowsieve as rs
from rowsieve.errors import (
    InvalidInput,
    SnapshotExpired,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.providers.spark.source import RowsieveSource
from rowsieve.retention.leases import lease_files
from tests.differential.updates import KV, Update, modelled, updates

pytestmark = pytest.mark.spark


class UpdateQuery:
    """A query with its checkpoint, run as by the trigger availableNow; sums what it reads."""

    def __init__(self, uri: str, **options: Any) -> None:
        self.uri = uri
        self.options = {name: str(value) for name, value in options.items()}
        self.offset: str | None = None
        self.batches = 0
        self.total: Counter[Any] = Counter()
        self.times: list[int] = []

    def reader(self) -> Any:
        source = RowsieveSource({"path": self.uri, "readUpdates": "true", **self.options})
        source.schema()
        kept: RowsieveSource = pickle.loads(pickle.dumps(source))
        return kept.streamReader(None)  # type: ignore[arg-type] # Spark's schema, not used

    def run(self, *, repeats: bool = False) -> None:
        """Read what is there; `repeats`: plan and read each batch twice, and keep the second."""
        reader = self.reader()
        try:
            reader.prepareForTriggerAvailableNow()
            while True:
                start = json.loads(self.offset) if self.offset else reader.initialOffset()
                end = json.loads(json.dumps(reader.latestOffset(start, None)))
                if end == start:
                    return
                for _ in range(1 + repeats):
                    tasks = pickle.loads(pickle.dumps(reader.partitions(start, end)))
                    rows = [row for t in tasks for b in reader.read(t) for row in b.to_pylist()]
                for row in rows:
                    self.total[row["k"], row["v"]] += row["_rowsieve_diff"]
                    self.times.append(int(row["_rowsieve_time"]))
                self.offset, self.batches = json.dumps(end), self.batches + 1
        finally:
            reader.stop()

    def sums(self) -> dict[Any, int]:
        """The rows of the collection, by what was read."""
        return {row: count for row, count in self.total.items() if count}


@pytest.mark.parametrize("seed", range(3))
def test_a_query_has_each_update_once(seed: int, tmp_path: Any) -> None:
    draws = random.Random(seed)
    forms = {"row_codec": "msgpack", "read_encoding": draws.choice(["columns", "codec", "shadow"])}
    table = rs.create_table(tmp_path / "t", KV, mode="differential", properties=forms)
    query = UpdateQuery(table.uri, split_bytes=1)
    written: list[Update] = []
    upper = 0
    for _ in range(6):
        step: list[Update] = [
            (draws.randrange(3), draws.choice([None, "a"]), upper, draws.choice([1, 2, -1]))
            for _ in range(4)
        ]
        halves = draws.choice(["columns", "both", "codec"])
        table.set_properties({"write_encoding": halves})
        table.append_updates(updates(*step), upper=upper + 1)
        written += step
        upper += 1
        if draws.random() < 0.6:
            query.run(repeats=draws.random() < 0.5)
            assert query.sums() == modelled(written, upper - 1)
        if draws.random() < 0.5:
            seen = json.loads(query.offset)["upper"] if query.offset else upper - 1
            table.advance_since(max(min(upper, seen) - 1, 0))
            table.compact()
    query.run()
    assert query.sums() == modelled(written, upper - 1)
    assert not lease_files(table.handle.store)


def test_a_query_begins_at_a_time_and_ends_where_times_were_given_up(tmp_path: Any) -> None:
    table = rs.create_table(tmp_path / "t", KV, mode="differential")
    table.append_updates(updates((1, "a", 0, 1), (2, "b", 1, 1)), upper=2)
    query = UpdateQuery(table.uri, startingTime=1)
    query.run()
    assert (query.sums(), query.batches) == ({(2, "b"): 1}, 1)
    table.append_updates([], upper=4)
    query.run()
    assert query.batches == 2  # the frontier moved, without an update
    stopped = UpdateQuery(table.uri, startingTime=1)
    table.advance_since(3)
    with pytest.raises(SnapshotExpired, match="from 1 to 3 were given up"):
        stopped.run()
    query.run()
    UpdateQuery(table.uri).run()
    table.compact()
    merged = UpdateQuery(table.uri, startingTime=3)  # since: earlier updates have this time
    with pytest.raises(SnapshotExpired, match="may have updates of earlier times"):
        merged.run()
    reader = query.reader()
    start = json.loads(query.offset or "")
    table.append_updates(updates((3, "c", 4, 1)), upper=9)
    end = reader.latestOffset(start, None)
    table.advance_since(8)
    assert table.since == 3  # the lease of the query
    assert len(reader.partitions(start, end)) == 1
    reader.stop()


def test_since_follows_a_query_that_runs(tmp_path: Any) -> None:
    table = rs.create_table(tmp_path / "t", KV, mode="differential")
    reader = UpdateQuery(table.uri).reader()
    offset = reader.initialOffset()
    for upper in range(2, 8):
        table.append_updates(updates((1, "a", upper - 1, 1)), upper=upper)
        end = reader.latestOffset(offset, None)
        assert len(reader.partitions(offset, end)) == 1
        offset = end
        assert reader.latestOffset(offset, None) == offset
        table.advance_since(upper - 1)
        assert table.since == upper - 1  # all times below `upper` are read
    reader.stop()


def test_a_first_batch_is_not_repeated_once_its_times_were_given_up(tmp_path: Any) -> None:
    table = rs.create_table(tmp_path / "t", KV, mode="differential")
    table.append_updates(updates((1, "a", 1, 1), (2, "b", 3, 1)), upper=4)
    query = UpdateQuery(table.uri)
    reader = query.reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, None)
    reader.stop()  # Spark has kept the offsets, and runs the batch again later
    table.append_updates([], upper=10)
    table.advance_since(3)
    table.compact()
    reader = query.reader()
    rows = [row for t in reader.partitions(start, end) for b in reader.read(t) for row in b]
    assert rows
    reader.stop()
    table.advance_since(4)
    table.compact()  # the updates have the time 4 now
    with pytest.raises(SnapshotExpired, match="given up before this query read them"):
        query.reader().partitions(start, end)


def test_what_is_no_stream_of_updates_is_refused(tmp_path: Any) -> None:
    plain = rs.create_table(tmp_path / "p", KV)
    with pytest.raises(UnsupportedOperation, match="readChangeFeed"):
        UpdateQuery(plain.uri).reader()
    table = rs.create_table(tmp_path / "t", KV, mode="differential")
    with pytest.raises(InvalidInput, match="startingversion"):
        UpdateQuery(table.uri, startingVersion=1).reader()
    with pytest.raises(InvalidInput, match="startingTime must be an integer"):
        UpdateQuery(table.uri, startingTime="soon").reader()
    source = RowsieveSource({"path": table.uri, "readUpdates": "true"})
    source.schema()
    with pytest.raises(UnsupportedOperation, match=r"spark\.readStream"):
        source.reader(None)  # type: ignore[arg-type] # Spark's schema, not used
    query = UpdateQuery(table.uri)
    query.run()
    other = rs.create_table(tmp_path / "o", KV, mode="differential")
    query.uri = other.uri
    with pytest.raises(TableNotFound, match="checkpoint"):
        query.run()
