"""Events in tables with an event order: late events, in any order and any cutting into calls."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve
from rowsieve import Table
from rowsieve.errors import InvalidData, KeyViolation, SchemaMismatch
from rowsieve.providers.datafusion import SessionContext
from tests.envelopes.events import AFTER_STREAM, CRATES, STREAM, crate, event, rows, texts
from tests.profiles import examples
from tests.small_tables import fresh_uri


def ordered(*columns: pa.Field, sequence: list[str]) -> Table:
    schema = pa.schema([*CRATES, *columns])
    return rowsieve.create_table(fresh_uri(), schema, key=["id"], sequence=sequence)


def crate_rows(table: Table) -> list[dict[str, Any]]:
    return [{name: row[name] for name in CRATES.names} for row in rows(table)]


LSN = pa.field("lsn", pa.int64(), nullable=False)


@pytest.mark.parametrize("name", ["lsn", "_lsn", "seq"])
def test_a_column_of_the_order_gets_the_number_of_the_log(name: str) -> None:
    table = ordered(pa.field(name, pa.int64(), nullable=False), sequence=[name])
    for each in reversed(STREAM):
        table.apply_events(texts(each), format="debezium")
    assert crate_rows(table) == AFTER_STREAM
    assert rows(table)[0][name] == 40_003
    late = table.apply_events(texts(STREAM[1]), format="debezium")
    assert late.commit.rows_late == 1


def test_a_file_and_a_position_fill_two_columns() -> None:
    fields = [pa.field(name, pa.int64(), nullable=False) for name in ("file", "pos", "row")]
    table = ordered(*fields, sequence=["file", "pos", "row"])
    own = [event("u", None, crate(1, f"v{at}"), at, "mysql") for at in range(3)]
    own[2]["source"] |= {"file": "binlog.000010", "pos": 4}
    for each in reversed(own):
        table.apply_events(texts(each), format="debezium")
    assert crate_rows(table) == [crate(1, "v2")]
    assert (rows(table)[0]["file"], rows(table)[0]["pos"]) == (10, 4)


def test_a_part_of_the_order_is_refused() -> None:
    table = ordered(pa.field("pos", pa.int64(), nullable=False), sequence=["pos"])
    with pytest.raises(SchemaMismatch, match=r"ordered by \(pos\), .* are \(file, pos, row\)"):
        table.apply_events(texts(event("c", None, crate(1), 0, "mysql")), format="debezium")
    with pytest.raises(SchemaMismatch, match="the events are none"):
        table.apply_events(['{"op":"c","after":{"id":1}}'], format="debezium")


def test_a_column_of_the_rows_themselves_is_the_order() -> None:
    table = ordered(pa.field("seen", pa.timestamp("us"), nullable=False), sequence=["seen"])
    new, old = ({**crate(1, label), "seen": at} for label, at in (("new", 2_000), ("old", 1_000)))
    for row in (new, old):
        table.apply_events(texts(event("u", None, row)), format="debezium", times="ms")
    assert crate_rows(table) == [crate(1, "new")]
    gone = event("d", {**crate(1), "seen": 3_000}, None)
    table.apply_events(texts(gone), format="debezium", times="ms")
    table.apply_events(texts(event("u", None, new)), format="debezium", times="ms")
    assert rows(table) == []
    both = texts(event("u", None, new), event("u", None, crate(2), 1))
    with pytest.raises(InvalidData, match="it has no seen"):
        table.apply_events(both, format="debezium", times="ms")


def test_text_numbers_of_a_log_fill_integers() -> None:
    table = ordered(LSN, sequence=["lsn"])
    columns = [{"name": "id", "value": 1}, {"name": "label", "value": "plums"}]
    change = {"action": "I", "schema": "s", "table": "t", "columns": columns, "lsn": "1/16B3748"}
    columns.append({"name": "grams", "value": 5})
    table.apply_events([json.dumps(change)], format="wal2json")
    assert rows(table)[0]["lsn"] == (1 << 32) + 0x16B3748


def test_a_truncate_removes_what_is_before_it_and_what_comes_later() -> None:
    table = ordered(LSN, sequence=["lsn"])
    early, late, newer = (
        event("c", None, crate(id_), at) for id_, at in ((7, 30), (8, 10), (9, 50))
    )
    table.apply_events(texts(early, newer), format="debezium")
    truncate = event("t", None, None, 40)
    applied = table.apply_events(texts(truncate), format="debezium")
    assert (applied.commit.rows_deleted, crate_rows(table)) == (1, [crate(9)])
    assert [row["_change_type"] for row in table.changes(2).read_all().to_pylist()] == ["delete"]
    for call in ((late,), (early, truncate), (truncate,)):
        commit = table.apply_events(texts(*call), format="debezium").commit
        assert (commit.committed, crate_rows(table)) == (False, [crate(9)])
    assert table.apply_events(texts(late), format="debezium").commit.rows_late == 1
    table.compact()
    table.delete("id = 9")
    table.apply_events(texts(late, event("c", None, crate(5), 41)), format="debezium")
    assert crate_rows(table) == [crate(5)]


def test_a_call_goes_on_after_its_truncate_and_repeats_nothing() -> None:
    table = ordered(LSN, sequence=["lsn"])
    table.apply_events(texts(event("c", None, crate(7), 10)), format="debezium")
    call = texts(event("t", None, None, 20), event("c", None, crate(8), 30))
    for _ in range(2):
        commit = table.apply_events(call, format="debezium", token=("feed", 1)).commit
        assert (commit.version, crate_rows(table)) == (3, [crate(8)])
    assert table.version == 3


@pytest.mark.parametrize("back", ["restore", "overwrite"])
def test_a_new_epoch_forgets_a_truncate(back: str) -> None:
    """Invariant 37: a restore wins over everything before."""
    table = ordered(LSN, sequence=["lsn"])
    table.apply_events(texts(event("c", None, crate(7), 10)), format="debezium")
    table.apply_events(texts(event("t", None, None, 20)), format="debezium")
    if back == "restore":
        table.restore(1)
    else:
        table.overwrite(
            pa.Table.from_pylist([{**crate(1), "lsn": 90_000}], table.scan().to_arrow().schema)
        )
    table.apply_events(texts(event("c", None, crate(8), 15)), format="debezium")
    assert crate(8) in crate_rows(table)
    if back == "restore":
        table.restore(2)
        table.apply_events(texts(event("c", None, crate(9), 15)), format="debezium")
        assert crate_rows(table) == []


def test_a_truncate_in_sql_of_an_empty_table_forgets_that_of_events() -> None:
    table = ordered(LSN, sequence=["lsn"])
    table.apply_events(texts(event("t", None, None, 20)), format="debezium")
    context = SessionContext()
    context.register_table("crates", table)
    for version in (2, 2):  # the second one has nothing to change
        context.sql("TRUNCATE TABLE crates").to_pylist()
        assert rowsieve.open_table(table.uri).version == version
    table.apply_events(texts(event("c", None, crate(8), 15)), format="debezium")
    assert crate_rows(table) == [crate(8)]


def test_a_truncate_keeps_its_place_when_the_order_gets_a_wider_type() -> None:
    table = ordered(pa.field("lsn", pa.int32(), nullable=False), sequence=["lsn"])
    table.apply_events(texts(event("t", None, None, 20), STREAM[0]), format="debezium")
    table.widen_column("lsn", "int64")
    late = event("c", None, crate(9), -40_000)
    assert table.apply_events(texts(late), format="debezium").commit.rows_late == 1


@pytest.mark.parametrize(
    "properties", [{"column_order": "each"}, {"combine": "grams: max"}], ids=str
)
def test_rows_of_several_changes_take_no_truncate(properties: dict[str, str]) -> None:
    schema = pa.schema([*CRATES, LSN])
    table = rowsieve.create_table(
        fresh_uri(), schema, key=["id"], sequence=["lsn"], properties=properties
    )
    with pytest.raises(InvalidData, match=r"event 0, .* truncate .*overwrite, TRUNCATE"):
        table.apply_events(texts(event("t", None, None, 20)), format="debezium")


def test_a_truncate_alone_needs_columns_with_the_names_of_the_log() -> None:
    """A column of a clock of its own would get the number of the log."""
    table = ordered(pa.field("seen", pa.int64(), nullable=False), sequence=["seen"])
    with pytest.raises(InvalidData, match=r"event 0, .* together with the events around it"):
        table.apply_events(texts(event("t", None, None, 20)), format="debezium")


def test_rows_with_their_own_order_take_no_truncate() -> None:
    table = ordered(pa.field("seen", pa.int64(), nullable=False), sequence=["seen"])
    call = texts(event("c", None, {**crate(7), "seen": 3}), event("t", None, None, 20))
    with pytest.raises(InvalidData, match=r"event 1, .* truncate"):
        table.apply_events(call, format="debezium")


@st.composite
def histories(draw: Any) -> tuple[list[Any], list[list[Any]]]:
    """Events of a source in the order of its log, and calls that get them in any order."""
    events: list[Any] = []
    now: dict[int, Any] = {}
    for at in range(draw(st.integers(1, 14))):
        id_ = draw(st.integers(1, 3))
        row = crate(id_, draw(st.sampled_from(["a", "b", None])), draw(st.integers(0, 3)))
        if not draw(st.integers(0, 6)):
            events.append(event("t", None, None, at))
            now.clear()
            continue
        if id_ not in now:
            events.append(event(draw(st.sampled_from("cr")), None, row, at))
        elif draw(st.booleans()):
            events.append(event("u", draw(st.sampled_from([None, now[id_]])), row, at))
        else:
            events.append(event("d", now.pop(id_), None, at))
            continue
        now[id_] = row
    again = draw(st.lists(st.sampled_from(events), max_size=4))
    mixed = draw(st.permutations(events + again))
    cuts = sorted(draw(st.lists(st.integers(0, len(mixed)), max_size=3)))
    ends = [0, *cuts, len(mixed)]
    calls = [mixed[start:stop] for start, stop in pairwise(ends)]
    return [now[id_] for id_ in sorted(now)], calls


@given(histories())
@examples(400)
def test_any_order_cutting_and_repetition_gives_what_the_source_has(history: Any) -> None:
    expected, calls = history
    table = ordered(LSN, sequence=["lsn"])
    for each in calls:
        table.apply_events(texts(*each), format="debezium")
    assert crate_rows(table) == expected


@given(histories(), st.data())
@examples(400)
def test_calls_in_the_order_of_the_log_need_no_event_order(history: Any, data: Any) -> None:
    expected, calls = history
    table = rowsieve.create_table(fresh_uri(), CRATES, key=["id"])
    stream = sorted(
        {json.dumps(each): each for call in calls for each in call}.values(),
        key=lambda each: each["source"]["lsn"],
    )
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        call = data.draw(st.permutations(stream[:size]))
        table.apply_events(texts(*call), format="debezium")
        stream = stream[size:]
    assert crate_rows(table) == expected


def by_column() -> Table:
    schema = pa.schema([*CRATES, LSN])
    properties = {"column_order": "each"}
    return rowsieve.create_table(
        fresh_uri(), schema, key=["id"], sequence=["lsn"], properties=properties
    )


@given(st.permutations(range(6)), st.sampled_from(["strict", "merge"]), st.integers(1, 6))
@examples(60)
def test_events_of_some_columns_fill_a_table_that_orders_each_column(
    order: list[int], schema_mode: Any, size: int
) -> None:
    unsent = "__debezium_unavailable_value"
    events = [
        event("c", None, crate(1, "a", 1), 0),
        event("u", None, crate(1, unsent, 2), 1),
        event("u", crate(1, "a", 2), crate(2, "b", 3), 2),
        event("u", None, crate(2, unsent, 4), 3),
        event("c", None, crate(3, "c", 5), 4),
        event("d", {"id": 3}, None, 5),
    ]
    table = by_column()
    for start in range(0, 6, size):
        call = texts(*(events[place] for place in order[start : start + size]))
        table.apply_events(call, format="debezium", schema_mode=schema_mode)
    assert crate_rows(table) == [crate(2, "b", 4)]


def test_files_of_events_fill_a_table_that_orders_each_column(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(map(json.dumps, STREAM)))
    table = by_column()
    table.apply_events(str(path), format="debezium")
    assert crate_rows(table) == AFTER_STREAM


def test_a_clock_is_never_taken_for_a_number_of_the_log() -> None:
    table = ordered(LSN, sequence=["lsn"])
    table.apply_events(texts(STREAM[0]), format="debezium")
    timed = event("u", None, crate(1, "by clock"), 1)
    for name in ("lsn", "sequence"):
        del timed["source"][name]
    with pytest.raises(SchemaMismatch, match=r"ordered by \(lsn\), .* are \(ts_ms\)"):
        table.apply_events(texts(timed), format="debezium")


def at_one_place(op: str, row: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    before = crate(1, "read") if op == "d" else None
    one = event(op, before, row)
    one["source"] |= {"lsn": 100, "snapshot": "true" if op == "r" else "false", **more}
    return one


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_row_of_a_snapshot_is_before_a_change_of_its_place(is_reversed: bool) -> None:
    read, changed = at_one_place("r", crate(1, "read")), at_one_place("u", crate(1, "changed"))
    other = at_one_place("r", crate(2, "other"))
    for events, expected in (
        ([read, changed, other], [crate(1, "changed"), crate(2, "other")]),
        ([read, at_one_place("d", None), other], [crate(2, "other")]),
    ):
        table = ordered(LSN, sequence=["lsn"])
        given = reversed(events) if is_reversed else events
        table.apply_events(texts(*given), format="debezium")
        assert crate_rows(table) == expected


def test_a_change_of_some_columns_at_the_place_of_a_snapshot_is_refused() -> None:
    marked = {**crate(1), "label": "__debezium_unavailable_value", "grams": 5}
    table = ordered(LSN, sequence=["lsn"])
    events = [at_one_place("r", crate(1, "read")), at_one_place("u", marked)]
    with pytest.raises(KeyViolation, match="which is the later one is unknown"):
        table.apply_events(texts(*events), format="debezium")


def test_a_transaction_applies_events_and_truncates() -> None:
    table = ordered(LSN, sequence=["lsn"])
    early, kept, late = (
        event("c", None, crate(id_), at) for id_, at in ((7, 10), (9, 50), (8, 30))
    )
    table.apply_events(texts(early), format="debezium")
    with table.transaction() as transaction:
        transaction.apply_events(texts(kept), format="debezium")
        transaction.apply_events(texts(event("t", None, None, 40)), format="debezium")
        assert crate_rows(transaction) == [crate(9)]
    assert (table.refresh(), crate_rows(table)) == (2, [crate(9)])
    assert table.apply_events(texts(late), format="debezium").commit.rows_late == 1
    assert crate_rows(table) == [crate(9)]
