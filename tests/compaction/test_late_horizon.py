"""Compaction keeps the deletes of an event order until the late horizon has passed them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve import Table, clock
from rowsieve.errors import CommitConflict, InvalidData, InvalidInput
from rowsieve.storage.parts.tombstones import DELETED_AT
from tests.changes.event_order.test_event_order import SCHEMA, apply, ordered, rows
from tests.changes.event_order.test_every_writer import sql
from tests.procedures.test_rewrite_data_files import During
from tests.small_tables import fresh_uri

DAY_US = 86_400_000_000


def pass_days(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    now = clock.now_us() + int(days * DAY_US)
    monkeypatch.setattr(clock, "now_us", lambda: now)


def tombstones(table: Table) -> int:
    return int(table.handle.newest.parts.numbers("deletes.rows").sum())


def test_a_compaction_keeps_deletes_with_their_sequences() -> None:
    table = ordered((1, 10, "a"), (2, 10, "b"))
    apply(table, (1, 30, None), (3, 50, None))
    assert table.compact().committed
    assert tombstones(table) == 2
    assert not table.compact().committed  # what is kept makes no part dirty
    assert apply(table, (1, 20, "zombie"), (3, 49, "zombie")) == 2
    assert rows(table) == [(2, 10, "b")]
    apply(table, (1, 31, "new"))
    table.compact()
    assert rows(table) == [(1, 31, "new"), (2, 10, "b")]
    assert apply(table, (1, 30, "late")) == 1


def test_a_truncate_of_an_empty_table_ends_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ordered((1, 10, "a"))
    apply(table, (1, 30, None))
    pass_days(monkeypatch, 8)
    table.compact()
    assert (len(table.handle.newest.parts), table.handle.newest.table.late_floor) == (0, ("30",))
    sql(table, "TRUNCATE TABLE t")
    assert apply(table, (1, 20, "new")) == 0
    assert rows(table) == [(1, 20, "new")]


def test_deletes_go_when_the_horizon_has_passed_and_what_is_below_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = ordered((1, 10, "a"), (2, 10, "b"))
    apply(table, (1, 30, None))
    table.compact()
    pass_days(monkeypatch, 6)
    apply(table, (2, 40, None))
    table.compact()
    assert tombstones(table) == 2
    pass_days(monkeypatch, 2)
    table.compact()
    assert tombstones(table) == 1
    assert table.handle.newest.table.late_floor == ("30",)
    version = table.version
    with pytest.raises(InvalidData, match=r"1 changes, such as .* are not above the floor \(30\)"):
        apply(table, (1, 30, "too late"), (5, 31, "in time"))
    assert (table.refresh(), rows(table)) == (version, [])
    table.set_properties({"on_too_late": "drop"})
    assert apply(table, (1, 30, "too late"), (5, 31, "in time"), (2, 39, "late")) == 2
    assert rows(table) == [(5, 31, "in time")]
    assert table.version == version + 2


def test_stored_rows_are_changed_below_the_floor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = ordered((1, 10, "a"), (2, 10, "b"), (4, 90, None))
    version = table.version
    pass_days(monkeypatch, 8)
    table.compact()
    assert table.handle.newest.table.late_floor == ("90",)
    table.update({"v": "'updated'"}, where="id = 1")
    sql(table, "UPDATE t SET v = 'again' WHERE id = 1")
    table.delete("id = 2")
    assert rows(table) == [(1, 10, "again")]
    pass_days(monkeypatch, 8)
    table.compact()
    assert (tombstones(table), table.handle.newest.table.late_floor) == (0, ("90",))
    table.restore(version)
    assert rows(table) == [(1, 10, "a"), (2, 10, "b")]
    assert apply(table, (1, 80, "in time"), (4, 89, "late")) == 1  # as if nothing had been dropped
    table.delete("id = 2")
    pass_days(monkeypatch, 8)
    table.compact()
    assert table.handle.newest.table.late_floor == ("90",)


def test_forever_keeps_all_deletes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ordered((1, 30, None), properties={"late_horizon": "forever"})
    pass_days(monkeypatch, 10_000)
    table.compact()
    assert tombstones(table) == 1
    table.set_properties({"late_horizon": "1 hour"})
    table.compact()
    assert tombstones(table) == 0
    for value in ("soon", "7", "7 weeks", "-1 days"):
        with pytest.raises(InvalidInput, match="late_horizon"):
            table.set_properties({"late_horizon": value})


def test_many_small_parts_are_merged_with_their_deletes() -> None:
    table = ordered(*((i, 0, "a") for i in range(200)))
    version = table.version
    for n in range(1, 90):
        apply(table, (n, n, None if n % 3 else "b"), (n + 90, n, "c"))
    before = rows(table)
    table.compact()
    assert rows(table) == before
    assert deleted_at(table) == {n: version + n for n in range(1, 90) if n % 3}
    assert apply(table, *((n, n - 1, "late") for n in range(1, 90))) == 89
    assert rows(table) == before


def test_rewritten_deletes_keep_the_commit_of_their_own() -> None:
    table = ordered((1, 10, None))
    version = table.version
    apply(table, (2, 10, None))
    table.compact()
    apply(table, (3, 10, None))
    table.compact()
    assert deleted_at(table) == {1: version, 2: version + 1, 3: version + 3}


def deleted_at(table: Table) -> dict[int, int]:
    """The versions in which keys were deleted, as the tombstones of all parts say."""
    versions: dict[int, int] = {}
    for path in table.handle.newest.parts.column("deletes.path").drop_null().to_pylist():
        stored = pq.read_table(pa.BufferReader(table.handle.store.get(path)))
        keys, dates = (stored.column(place).to_pylist() for place in (0, DELETED_AT.name))
        versions |= dict(zip(keys, dates, strict=True))
    return versions


REWRITE = "CALL system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'{}))"
SMALL = ", 'target-file-size-bytes', '700', 'max-file-size-bytes', '1400'"
STAGED = ", 'partial-progress.enabled', 'true', 'max-file-group-size-bytes', '1'"


def in_catalog(folder: Path, *events: Any) -> tuple[rs.Catalog, Table]:
    catalog = rs.Catalog(folder)
    table = catalog.create_table("db.t", SCHEMA, ["id"], sequence=["lsn"])
    apply(table, *events)
    return catalog, table


@pytest.mark.parametrize("options", ["", SMALL])
def test_a_rewrite_on_workers_keeps_deletes_with_their_sequences(
    tmp_path: Path, options: str
) -> None:
    catalog, table = in_catalog(tmp_path)
    for start in range(0, 40, 10):
        apply(table, *((i, 10, "a") for i in range(start, start + 10)))
    apply(table, *((i, 20, None) for i in range(0, 40, 3)))
    apply(table, *((i, 30, None) for i in range(0, 40, 3)), (-5, 50, None), (99, 51, None))
    apply(table, *((i, 40, "again") for i in range(0, 40, 9)))
    apply(table, *((i, 60, None) for i in range(1, 40, 9)))
    before = rows(table)
    for _ in range(2):
        catalog.call(REWRITE.format(options))
        table.refresh()
        assert (len(table.handle.newest.parts) > 1) == bool(options)
        assert rows(table) == before
    deleted = {-5, 99, *range(0, 40, 3), *range(1, 40, 9)} - set(range(0, 40, 9))
    assert tombstones(table) == len(deleted)
    late = [(i, 29, "zombie") for i in range(0, 40, 3)] + [(-5, 49, "zombie"), (99, 50, "zombie")]
    assert apply(table, *late, *((i, 59, "zombie") for i in range(1, 40, 9))) == 21
    assert rows(table) == before
    assert not table.compact().committed or rows(table) == before


def test_a_rewrite_without_options_leaves_kept_deletes_alone(tmp_path: Path) -> None:
    catalog, table = in_catalog(tmp_path, *((i, 10, "a") for i in range(9)))
    apply(table, (1, 20, None))
    catalog.call("CALL system.rewrite_data_files('db.t', options => map('min-input-files', '2'))")
    version = table.refresh()
    assert len(table.handle.newest.parts) == 1
    catalog.call("CALL system.rewrite_data_files('db.t', options => map('min-input-files', '2'))")
    assert (table.refresh(), tombstones(table)) == (version, 1)


@pytest.mark.parametrize("options", ["", STAGED])
def test_a_rewrite_on_workers_drops_deletes_behind_the_horizon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    catalog, table = in_catalog(tmp_path, *((i, 10, "a") for i in range(20)))
    table.compact()
    for n in range(0, 20, 4):  # groups of neighbours
        apply(table, (n, 30 - n, None), (n + 1, 31, "b"))
    pass_days(monkeypatch, 8)
    apply(table, (100, 90, None))
    before = rows(table)
    catalog.call(REWRITE.format(options))
    table.refresh()
    assert (rows(table), tombstones(table)) == (before, 1)
    assert table.handle.newest.table.late_floor == ("30",)
    table.set_properties({"on_too_late": "drop"})
    assert apply(table, (0, 30, "too late"), (16, 15, "too late"), (100, 89, "late")) == 3
    assert rows(table) == before


def test_properties_that_change_under_a_rewrite_that_drops_are_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, table = in_catalog(tmp_path, (1, 10, "a"), (2, 20, None))
    pass_days(monkeypatch, 8)
    other = catalog.open_table("db.t")
    change = During(lambda: other.set_properties({"on_too_late": "drop"}))
    with pytest.raises(CommitConflict):
        catalog.call(REWRITE.format(""), engine=change)
    catalog.call(REWRITE.format(""))
    table.refresh()
    assert table.handle.newest.table.late_floor == ("20",)
    assert table.handle.newest.table.properties["on_too_late"] == "drop"


def test_a_clone_keeps_the_order_and_its_deletes(tmp_path: Path) -> None:
    table = ordered((1, 10, "a"), (2, 10, None))
    clone = table.clone(str(tmp_path / "clone"))
    assert apply(clone, (1, 9, "late"), (2, 9, "late"), (2, 11, "new")) == 1
    assert rows(clone) == [(1, 10, "a"), (2, 11, "new")]


def test_events_of_some_columns_below_the_floor_are_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = ordered((1, 60, None), properties={"on_too_late": "drop"})
    pass_days(monkeypatch, 8)
    table.compact()
    events = [
        {"op": "u", "id": 1, "lsn": 50, "v": "before the delete"},
        {"op": "u", "id": 1, "lsn": 70},
    ]
    commit = table.apply_changes(events, op="op", missing="keep")
    assert commit.rows_late == 1
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "lsn": 70, "v": None}]


@pytest.mark.parametrize(
    "begin", [lambda t: t.overwrite([{"id": 7, "lsn": 2, "v": "o"}]), lambda t: t.restore(1)]
)
def test_what_replaces_all_rows_begins_without_the_floor(
    begin: Callable[[Table], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ordered((7, 1, "a"))
    apply(table, (1, 30, None))
    pass_days(monkeypatch, 8)
    table.compact()
    with pytest.raises(InvalidData, match="floor"):
        apply(table, (7, 3, "too late"))
    begin(table)
    assert apply(table, (7, 3, "e")) == 0
    assert rows(table) == [(7, 3, "e")]


def test_a_restore_brings_back_the_floor_of_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ordered((7, 1, "a"))
    apply(table, (1, 30, None))
    pass_days(monkeypatch, 8)
    table.compact()
    version = table.version
    table.overwrite([{"id": 7, "lsn": 2, "v": "o"}])
    table.restore(version)
    with pytest.raises(InvalidData, match="floor"):
        apply(table, (1, 29, "too late"))


def test_dates_that_became_times_are_compared_with_older_bounds_and_floors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    table = rs.create_table(fresh_uri(), schema, ["id"], sequence="day")
    table.upsert([{"id": 1, "day": dt.date(2026, 1, 5)}])
    table.delete(keys=[{"id": 2, "day": dt.date(2026, 1, 4)}])
    table.widen_column("day", pa.timestamp("us"))
    assert table.upsert([{"id": 1, "day": dt.datetime(2026, 1, 4, 23)}]).rows_late == 1
    assert table.upsert([{"id": 2, "day": dt.datetime(2026, 1, 3, 23)}]).rows_late == 1
    pass_days(monkeypatch, 8)
    table.compact()
    with pytest.raises(InvalidData, match="floor"):
        table.upsert([{"id": 2, "day": dt.datetime(2026, 1, 3, 23)}])
    assert table.upsert([{"id": 1, "day": dt.datetime(2026, 1, 5, 1)}]).rows_late == 0


def test_a_floor_of_days_is_compared_with_times(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    table = rs.create_table(fresh_uri(), schema, ["id"], sequence="day")
    table.upsert([{"id": 1, "day": dt.date(2026, 1, 1)}])
    table.delete(keys=[{"id": 2, "day": dt.date(2026, 1, 4)}])
    pass_days(monkeypatch, 8)
    table.compact()
    table.widen_column("day", pa.timestamp("us"))
    with pytest.raises(InvalidData, match="floor"):
        table.upsert([{"id": 2, "day": dt.datetime(2026, 1, 3, 23)}])
    assert table.upsert([{"id": 2, "day": dt.datetime(2026, 1, 4, 1)}]).rows_written == 1


BY_TIME = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("v", pa.string())])
LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def by_time(kind: pa.DataType | None = None) -> Table:
    schema = BY_TIME if kind is None else BY_TIME.set(1, pa.field("at", kind))
    properties = {"late_horizon": "2 days of event time"}
    return rs.create_table(fresh_uri(), schema, ["id"], sequence="at", properties=properties)


def happen(table: Table, *events: tuple[int, float, str]) -> int:
    """Apply events of the n-th day since `LONG_AGO`."""
    changes = pa.table(
        {
            "id": [id_ for id_, _, _ in events],
            "at": [LONG_AGO + dt.timedelta(days=day) for _, day, _ in events],
            "v": ["x" for _ in events],
            "op": [op for _, _, op in events],
        }
    )
    field = table.schema.field("at").type
    if pa.types.is_date(field):
        changes = changes.set_column(1, "at", changes.column("at").cast(pa.date32()))
    return table.apply_changes(changes, op="op").rows_late


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"), pa.date32()], ids=str
)
def test_deletes_go_when_later_events_have_come(kind: pa.DataType) -> None:
    table = by_time(kind)
    happen(table, (1, 0, "c"), (2, 0, "c"), (3, 1, "c"))
    happen(table, (1, 1, "d"))
    table.compact()
    assert tombstones(table) == 1  # whatever the clock says
    happen(table, (2, 3, "u"))
    table.compact()
    assert (tombstones(table), table.count()) == (0, 2)
    with pytest.raises(InvalidData, match="late_horizon"):
        happen(table, (1, 1, "u"))
    assert happen(table, (1, 2, "c")) == 0


def test_one_event_of_the_future_forgets_no_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    table = by_time()
    today = (dt.datetime.now(dt.UTC) - LONG_AGO) / dt.timedelta(days=1)
    happen(table, (1, today - 1, "d"))
    happen(table, (2, today + 1_000, "c"))
    table.compact()
    assert tombstones(table) == 1
    pass_days(monkeypatch, 1.5)
    happen(table, (2, today + 1_001, "u"))
    table.compact()
    assert tombstones(table) == 0


def test_deletes_of_one_part_go_by_their_own_times() -> None:
    table = by_time()
    happen(table, (1, 0, "d"), (2, 5.5, "d"), (3, 6, "c"))
    happen(table, (3, 7, "u"))
    table.compact()
    assert tombstones(table) == 1
    assert happen(table, (2, 5, "u")) == 1
    assert not table.compact().committed


def test_an_interval_of_event_time_needs_events_with_a_time() -> None:
    properties = {"late_horizon": "7 days of event time"}
    with pytest.raises(InvalidInput, match="order by 'lsn' of type int64; the first column"):
        ordered(properties=properties)
    with pytest.raises(InvalidInput, match="no event order"):
        rs.create_table(fresh_uri(), SCHEMA, ["id"], properties=properties)
    table = ordered((1, 10, "a"))
    with pytest.raises(InvalidInput, match="first column of sequence="):
        table.set_properties(properties)


def test_each_call_may_say_what_is_done_with_changes_that_are_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = ordered((1, 10, "a"), (2, 60, None))
    pass_days(monkeypatch, 8)
    table.compact()
    event = {"op": "u", "id": 2, "lsn": 50, "v": "too late"}
    row = {"id": 2, "lsn": 50, "v": "too late"}
    debezium = {"after": row, "op": "u", "source": {"lsn": 50, "table": "t"}}
    calls: list[Callable[..., Any]] = [
        lambda **how: table.upsert([row], **how),
        lambda **how: table.upsert([{"id": 2, "lsn": 50}], columns="given", **how),
        lambda **how: table.apply_changes([event], op="op", **how),
        lambda **how: table.apply_changes([event], op="op", missing="keep", **how),
        lambda **how: table.apply_changes([event], op="op", schema_mode="merge", **how),
        lambda **how: table.delete(keys=[{"id": 2, "lsn": 50}], **how),
        lambda **how: table.apply_events([debezium], format="debezium", **how).commit,
    ]
    for call in calls:
        assert call(on_too_late="drop").rows_late == 1
        with pytest.raises(InvalidData, match="on_too_late='drop', also as a property"):
            call()
    table.set_properties({"on_too_late": "drop"})
    for call in calls:
        assert call().rows_late == 1
        with pytest.raises(InvalidData, match="are not above the floor"):
            call(on_too_late="error")
    assert rows(table) == [(1, 10, "a")]


def test_a_table_without_an_event_order_has_nothing_too_late() -> None:
    table = rs.create_table(fresh_uri(), SCHEMA, ["id"])
    with pytest.raises(InvalidInput, match="on_too_late= is for tables with an event order"):
        table.upsert([{"id": 1, "lsn": 1, "v": "a"}], on_too_late="drop")
