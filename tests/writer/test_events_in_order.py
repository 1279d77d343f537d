"""The writer in a table with an event order: late events, and epochs that end them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import clock
from rowsieve.errors import InvalidData, UnsupportedOperation

NEVER = 3600.0


@pytest.fixture
def wal_dir(tmp_path: Path) -> Path:
    return tmp_path / "wal"


def rows_of(table: rs.Table) -> dict[int, Any]:
    """The committed rows, as another process sees them."""
    rows = rs.open_table(table.uri).scan(order_by_key=True).to_arrow().to_pylist()
    return {row["id"]: row["name"] for row in rows}


@pytest.fixture
def events(tmp_path: Path) -> rs.Table:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("lsn", pa.int64())])
    return rs.create_table(tmp_path / "events", schema, key=["id"], sequence=["lsn"])


def event(key: int, lsn: int) -> Mapping[str, Any]:
    return {"id": key, "name": f"at {lsn}", "lsn": lsn}


def test_events_are_ordered_by_their_sequence(events: rs.Table, wal_dir: Path) -> None:
    events.upsert([event(1, 10), event(2, 10)])
    with events.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer:
        writer.upsert(event(1, 5))  # late: the table has a newer version
        writer.upsert(event(2, 20))
        writer.upsert(event(2, 15))
        writer.delete(keys={"id": [3], "lsn": [30]})
        writer.upsert(event(3, 25)).result()
        with pytest.raises(UnsupportedOperation, match="sequence columns"):
            writer.delete(keys={"id": 1}).result()
        with pytest.raises(InvalidData, match="NULL"):
            writer.upsert({"id": 9, "name": "x", "lsn": None}).result()
    assert rows_of(events) == {1: "at 10", 2: "at 20"}


def test_the_log_takes_changes_that_are_too_late_if_the_table_drops_them(
    events: rs.Table, wal_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events.upsert([event(1, 10), event(2, 10)])
    events.delete(keys={"id": [1], "lsn": [50]})
    later = clock.now_us() + 8 * 86_400_000_000
    monkeypatch.setattr(clock, "now_us", lambda: later)
    events.compact()
    with (
        events.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer,
        pytest.raises(InvalidData, match="on_too_late to drop"),
    ):
        writer.upsert(event(3, 40)).result()
    events.set_properties({"on_too_late": "drop"})
    with events.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer:
        writer.upsert([event(3, 40), event(4, 60)]).result()
        writer.delete(keys={"id": [2], "lsn": [30]}).result()
    assert rows_of(events) == {2: "at 10", 4: "at 60"}
    assert events.history(1)[0].rows_late == 2


def test_a_flush_of_late_events_commits_their_number(events: rs.Table, wal_dir: Path) -> None:
    events.upsert([event(1, 10)])
    with events.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer:
        writer.upsert(event(1, 2)).result()
        assert [writer.flush(), writer.flush()] == [2, 2]
        assert rows_of(events) == {1: "at 10"}
    newest = events.history()[0]
    assert (newest.rows_written, newest.rows_deleted, newest.rows_late) == (0, 0, 1)
    with events.writer(wal_dir=wal_dir) as writer:
        writer.upsert(event(1, 11))
    assert rows_of(events) == {1: "at 11"}


@pytest.mark.parametrize("ends", ["restore", "overwrite"])
def test_late_events_do_not_come_back_in_a_new_epoch(
    events: rs.Table, wal_dir: Path, ends: str
) -> None:
    """Invariant 43: replay is exactly once, also of what had no effect."""
    events.upsert([event(1, 10)])
    with events.writer(wal_dir=wal_dir, flush_interval_s=NEVER) as writer:
        writer.upsert(event(1, 5)).result()
    if ends == "restore":
        events.restore(0)
    else:
        events.overwrite([event(1, 3)])
    restored = rows_of(events)
    with events.writer(wal_dir=wal_dir):
        assert rows_of(events) == restored
    assert rows_of(events) == restored
