"""Tables with history hold the versions that folding all events in their order gives."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    InvalidData,
    InvalidInput,
    InvalidSchemaChange,
    KeyViolation,
    RowsieveError,
    SchemaMismatch,
    UnsupportedOperation,
)
from rowsieve.providers.datafusion import SessionContext
from tests.duckdb_sessions import duckdb_session
from tests.profiles import examples
from tests.small_tables import files, fresh_uri, overtake

COLUMNS = ("valid_from", "valid_to")
INT = pa.int64()
NAN = float("nan")
Event = Mapping[str, Any]
UTC = zoneinfo.ZoneInfo("UTC")


def schema_of(time: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            pa.field("region", pa.string(), nullable=False),
            pa.field("id", pa.float64(), nullable=False),
            pa.field("valid_from", time, nullable=False),
            pa.field("valid_to", time),
            pa.field("v", pa.float64()),
            pa.field("tags", pa.list_(pa.string())),
        ]
    )


TIMES: Mapping[pa.DataType, Callable[[int], Any]] = {
    pa.int64(): lambda n: n - 3,
    pa.timestamp("us", "UTC"): lambda n: dt.datetime(2024, 1, 1, tzinfo=UTC) + dt.timedelta(n),
    pa.date32(): lambda n: dt.date(1969, 12, 29) + dt.timedelta(n),
    pa.decimal128(9, 2): lambda n: Decimal(n - 3).scaleb(-2),
}


def history_table(time: pa.DataType = INT) -> Table:
    key = ["region", "id", "valid_from"]
    return rowsieve.create_table(fresh_uri(), schema_of(time), key=key)


def apply(table: Table, events: Iterable[Event]) -> Any:
    return table.apply_changes(list(events), op="op", sequence="at", history=COLUMNS)


def stored(table: Table) -> list[str]:
    return [repr(row) for row in table.scan(order_by_key=True).to_arrow().to_pylist()]


def versions(events: Iterable[Event]) -> list[str]:
    """The versions of all events: each begins one, which the next event of its key ends."""
    by_key: dict[tuple[str, float], dict[Any, Event]] = {}
    for event in events:
        by_key.setdefault((event["region"], event["id"] + 0.0), {})[event["at"]] = event
    rows = []
    for (region, key), at in sorted(by_key.items()):
        times = sorted(at)
        is_open = False
        for time, until in zip(times, [*times[1:], None], strict=True):
            event = at[time]
            row = {"region": region, "id": key, "valid_from": time}
            if event["op"] != "d":
                is_open = True
                row |= {"valid_to": until, "v": event["v"], "tags": event["tags"]}
                rows.append(row)
                continue
            if not is_open:
                rows.append({**row, "valid_to": time, "v": None, "tags": None})
            is_open = False
    return [repr(row) for row in rows]


def state_at(events: Iterable[Event], moment: Any) -> list[tuple[Any, ...]]:
    """The rows after all events up to a moment, as a table without history has them."""
    rows: dict[tuple[str, float], Event | None] = {}
    for event in sorted(events, key=lambda event: event["at"]):
        if event["at"] <= moment:
            gone = event["op"] == "d"
            rows[event["region"], event["id"] + 0.0] = None if gone else event
    kept = sorted((key, event) for key, event in rows.items() if event is not None)
    return [(*key, repr(event["v"]), event["tags"]) for key, event in kept]


def events_of(time: pa.DataType) -> st.SearchStrategy[list[Event]]:
    event = st.fixed_dictionaries(
        {
            "op": st.sampled_from(["u", "u", "c", "d"]),
            "at": st.integers(0, 9).map(TIMES[time]),
            "region": st.sampled_from(["", "eu"]),
            "id": st.sampled_from([0.0, -0.0, 1.5]),
            "v": st.sampled_from([None, NAN, -0.0, 0.0, 2.5]),
            "tags": st.sampled_from([None, [], ["a", None]]),
        }
    )
    one_each = lambda e: (e["region"], e["id"] + 0.0, e["at"])  # noqa: E731 - of one line
    return st.lists(event, min_size=1, max_size=12, unique_by=one_each)


@examples(300)
@given(st.data())
def test_any_order_and_cutting_of_events_gives_the_same_table(data: st.DataObject) -> None:
    time = data.draw(st.sampled_from(list(TIMES)))
    events = data.draw(events_of(time).flatmap(st.permutations))
    table = history_table(time)
    place = 0
    while place < len(events):
        size = data.draw(st.integers(1, 5))
        batch = events[place : place + size]
        repeated = data.draw(st.sampled_from([batch, [*batch, *batch], [*events[:place], *batch]]))
        apply(table, repeated)
        place += size
        if data.draw(st.booleans()):
            table.compact()
        assert stored(table) == versions(events[:place])
    assert not apply(table, events).committed
    for moment in map(TIMES[time], range(-1, 11)):
        rows = table.scan(as_of_event=moment).to_arrow().to_pylist()
        shown = [(row["region"], row["id"], repr(row["v"]), row["tags"]) for row in rows]
        assert sorted(shown, key=lambda row: row[:2]) == state_at(events, moment)
    current = table.scan("valid_to IS NULL").to_arrow().to_pylist()
    assert sorted((r["region"], r["id"]) for r in current) == [
        row[:2] for row in state_at(events, TIMES[time](10))
    ]


def event(op: str, at: Any, v: float | None = None, key: float = 1.0) -> dict[str, Any]:
    return {"op": op, "at": at, "region": "eu", "id": key, "v": v, "tags": None}


def short(table: Table) -> list[tuple[Any, ...]]:
    rows = table.scan(order_by_key=True).to_arrow().to_pylist()
    return [(row["id"], row["valid_from"], row["valid_to"], row["v"]) for row in rows]


def test_late_events_split_versions_and_deletes_close_them() -> None:
    table = history_table()
    apply(table, [event("c", 10, 1.0), event("u", 30, 3.0)])
    commit = apply(table, [event("u", 20, 2.0)])
    assert (commit.operation, commit.rows_written) == ("apply", 2)
    assert short(table) == [(1.0, 10, 20, 1.0), (1.0, 20, 30, 2.0), (1.0, 30, None, 3.0)]
    apply(table, [event("d", 40)])
    apply(table, [event("d", 15)])
    assert short(table) == [(1.0, 10, 15, 1.0), (1.0, 20, 30, 2.0), (1.0, 30, 40, 3.0)]
    apply(table, [event("d", 5)])
    assert short(table)[0] == (1.0, 5, 5, None)
    apply(table, [event("c", 2, 0.0)])
    assert short(table)[0] == (1.0, 2, 5, 0.0)
    assert table.scan("valid_to IS NULL").count() == 0


def test_a_correction_at_the_same_time_replaces_the_version() -> None:
    table = history_table()
    apply(table, [event("c", 10, 1.0), event("u", 20, 2.0)])
    assert apply(table, [event("u", 10, 1.5)]).rows_written == 1
    assert short(table) == [(1.0, 10, 20, 1.5), (1.0, 20, None, 2.0)]
    apply(table, [event("d", 20)])
    assert short(table) == [(1.0, 10, 20, 1.5)]
    apply(table, [event("d", 10)])
    assert short(table) == [(1.0, 10, 10, None), (1.0, 20, 20, None)]


def test_rows_as_of_an_event_are_plain_rows_that_engines_filter() -> None:
    table = history_table()
    for start in range(0, 100, 10):
        apply(table, [event("u", start, float(start), key=float(start // 20))])
    plan = table.scan("v >= 0", as_of_event=35).plan()
    assert sum(len(piece.reads) for split in plan.splits for piece in split.pieces) < 10
    ours = table.scan("v >= 0", as_of_event=35).to_arrow().sort_by("id")
    dataset = table.to_dataset()
    with duckdb_session() as session:
        session.register("t", dataset.to_table())
        theirs = session.execute(
            "SELECT id, v FROM t WHERE valid_from <= 35 AND (valid_to > 35 OR valid_to IS NULL) "
            "ORDER BY id"
        ).fetchall()
    assert list(zip(*ours.select(["id", "v"]).to_pydict().values(), strict=True)) == theirs
    assert table.scan("v >= 20", as_of_event=35).count() == 1


def test_conditions_on_both_columns_skip_parts() -> None:
    table = history_table()
    for start in range(0, 100, 10):
        apply(table, [event("c", start, key=float(start)), event("d", start + 5, key=float(start))])
    apply(table, [event("c", 200, key=200.0)])

    def parts_read(scan: Any) -> int:
        return sum(len(piece.reads) for split in scan.plan().splits for piece in split.pieces)

    assert len(table.handle.newest.parts) == 11
    assert parts_read(table.scan(as_of_event=32)) == 1
    assert parts_read(table.scan("valid_to IS NULL")) == 1


def test_the_first_call_records_the_columns() -> None:
    table = history_table()
    with pytest.raises(InvalidInput, match="as_of_event= needs a table with history"):
        table.scan(as_of_event=1)
    apply(table, [event("c", 10, 1.0)])
    assert table.handle.newest.table.properties["history"] == "valid_from, valid_to"
    table.apply_changes([event("u", 20, 2.0)], op="op", sequence="at")
    assert short(table) == [(1.0, 10, 20, 1.0), (1.0, 20, None, 2.0)]
    with pytest.raises(InvalidSchemaChange, match="valid_to"):
        table.drop_column("valid_to")
    with pytest.raises(InvalidSchemaChange, match="unset_properties"):
        table.rename_column("valid_to", "until")
    with pytest.raises(InvalidInput, match="as_of_event='x'"):
        table.scan(as_of_event="x")
    with pytest.raises(InvalidInput, match="property history"):
        table.set_properties({"history": "valid_from"})


def test_columns_are_renamed_between_unsetting_and_setting_the_property() -> None:
    table = history_table()
    apply(table, [event("c", 10, 1.0)])
    table.unset_properties(["history"])
    table.rename_column("valid_to", "until")
    table.set_properties({"history": "valid_from, until"})
    table.apply_changes([event("u", 20, 2.0)], op="op", sequence="at")
    assert table.scan(order_by_key=True).to_arrow().column("until").to_pylist() == [20, None]


def test_moments_may_be_text() -> None:
    table = history_table(pa.timestamp("us", "UTC"))
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=UTC)
    apply(table, [event("c", noon, 1.0)])
    assert table.scan(as_of_event="2024-01-01T13:00:00+01:00").count() == 1
    assert table.scan(as_of_event="2024-01-01T11:59:59Z").count() == 0
    for moment in ("2024-01-01T12:00:00", "noon", 5, noon.date()):
        with pytest.raises(InvalidInput, match="as_of_event"):
            table.scan(as_of_event=moment)


def test_concurrent_events_of_a_key_are_folded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = history_table()
    apply(table, [event("c", 10, 1.0)])
    overtake(table, monkeypatch, lambda other: apply(other, [event("u", 30, 3.0)]))
    apply(table, [event("u", 20, 2.0)])
    assert short(table) == [(1.0, 10, 20, 1.0), (1.0, 20, 30, 2.0), (1.0, 30, None, 3.0)]


def test_a_token_counts_once() -> None:
    table = history_table()
    options: dict[str, Any] = {"op": "op", "sequence": "at", "history": COLUMNS, "token": ("a", 1)}
    first = table.apply_changes([event("c", 10, 1.0)], **options)
    assert table.apply_changes([event("c", 10, 1.0)], **options).commit_id == first.commit_id


BAD_TABLES: Sequence[Any] = [
    pytest.param({"key": ["region", "id"]}, COLUMNS, "key that ends with", id="key"),
    pytest.param({}, ("valid_to", "valid_from"), "key that ends with", id="swapped"),
    pytest.param({}, ("valid_from",), "names 1 columns", id="one"),
    pytest.param({}, ("valid_from", "v"), "must have the type", id="type"),
    pytest.param({}, ("valid_from", "nope"), "nope", id="unknown"),
]


@pytest.mark.parametrize(("options", "columns", "match"), BAD_TABLES)
def test_bad_columns_are_refused(options: Any, columns: Any, match: str) -> None:
    key = ["region", "id", "valid_from"]
    made = rowsieve.create_table(fresh_uri(), schema_of(pa.int64()), **{"key": key, **options})
    before = files(made)
    with pytest.raises(RowsieveError, match=match):
        made.apply_changes([event("c", 1)], op="op", sequence="at", history=columns)
    assert files(made) == before


@pytest.mark.parametrize(
    ("field", "match"),
    [
        pytest.param(pa.field("n", pa.int64(), nullable=False), "'n' is NOT NULL", id="not-null"),
    ],
)
def test_columns_that_a_delete_cannot_leave_empty_are_refused(field: pa.Field, match: str) -> None:
    schema = schema_of(pa.int64()).append(field)
    made = rowsieve.create_table(fresh_uri(), schema, key=["region", "id", "valid_from"])
    with pytest.raises(InvalidInput, match=match):
        apply(made, [{**event("c", 1), "n": 1}])


def test_times_of_text_or_floats_are_refused() -> None:
    for time in (pa.string(), pa.float64(), pa.bool_()):
        made = history_table(time)
        with pytest.raises(InvalidInput, match="a version begins at a date, a time or a number"):
            apply(made, [event("c", 1)])
    key = ["region", "id", "valid_from"]
    made = rowsieve.create_table(fresh_uri(), schema_of(pa.int64()), key=key, sequence=["v"])
    with pytest.raises(UnsupportedOperation, match="has an event order"):
        apply(made, [event("c", 1)])


@pytest.mark.parametrize(
    ("data", "error", "match"),
    [
        pytest.param([event("c", None)], InvalidData, "'at' .sequence=. is NULL", id="null"),
        pytest.param([event("c", 1.5)], SchemaMismatch, "'valid_from'", id="fraction"),
        pytest.param(
            [event("c", 1, 1.0), event("c", 1, 2.0)], KeyViolation, "different changes", id="tie"
        ),
        pytest.param([{**event("c", 1), "valid_to": 3}], SchemaMismatch, "'valid_to'", id="end"),
        pytest.param(
            [{**event("c", 1), "valid_from": 3}], SchemaMismatch, "'valid_from'", id="start"
        ),
        pytest.param([{**event("c", 1), "id": None}], KeyViolation, "'id' is NULL", id="key"),
        pytest.param(
            [{"op": "c", "at": 1, "region": "eu", "id": 1.0}], SchemaMismatch, "'v'", id="v"
        ),
        pytest.param([event("?", 1)], InvalidData, "unknown actions", id="op"),
    ],
)
def test_bad_events_are_refused(data: Any, error: type[RowsieveError], match: str) -> None:
    table = history_table()
    before = files(table)
    with pytest.raises(error, match=match):
        apply(table, data)
    assert files(table) == before


@pytest.mark.parametrize(
    "options",
    [{"missing": "keep"}, {"unchanged": "v"}, {"combine": {"v": "max"}}, {"schema_mode": "merge"}],
    ids=str,
)
def test_history_takes_whole_rows(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedOperation, match="history= takes whole rows"):
        history_table().apply_changes(
            [event("c", 1)], op="op", sequence="at", history=COLUMNS, **options
        )


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.upsert([version(9, 5)]),
        lambda t: t.upsert([version(9, 5)], schema_mode="merge"),
        lambda t: t.upsert([version(9, 5)], columns="given"),
        lambda t: t.delete(keys=[{"region": "eu", "id": 1.0, "valid_from": 3}]),
        lambda t: statement(t, "INSERT INTO t (region, id, valid_from) VALUES ('eu', 1, 9)"),
        lambda t: statement(
            t,
            "MERGE INTO t USING (VALUES (9)) AS s (n) ON t.valid_from = s.n"
            " WHEN NOT MATCHED THEN INSERT (region, id, valid_from) VALUES ('eu', 1, 9)",
        ),
    ],
)
def test_ways_that_close_no_interval_are_refused(change: Callable[[Table], object]) -> None:
    table = history_table()
    event = {"op": "c", "at": 3, "region": "eu", "id": 1.0, "v": 2.5, "tags": None}
    table.apply_changes([event], op="op", sequence="at", history=COLUMNS)
    before = table.scan().to_arrow().to_pylist()
    with pytest.raises(UnsupportedOperation, match=r"Use apply_changes\(…, op=, sequence=\)"):
        change(table)
    assert table.scan().to_arrow().to_pylist() == before
    table.update({"v": "v * 2"}, where="id = 1")
    assert table.scan().to_arrow().column("v").to_pylist() == [5.0]
    table.delete("id = 1")
    assert table.count() == 0


def version(start: int, v: float) -> dict[str, Any]:
    times = {"valid_from": start, "valid_to": None}
    return {"region": "eu", "id": 1.0, **times, "v": v, "tags": None}


def statement(table: Table, text: str) -> None:
    session = SessionContext()
    session.register_table("t", table)
    session.sql(text).collect()


def test_both_columns_of_versions_are_altered_together() -> None:
    key = ["region", "id", "valid_from"]
    table = rowsieve.create_table(fresh_uri(), schema_of(pa.int32()), key=key)
    apply(table, [event("c", 1)])
    for column in COLUMNS:
        with pytest.raises(InvalidSchemaChange, match=r"valid_from.*one type.*Widen both"):
            table.widen_column(column, pa.int64())
    empty = rowsieve.create_table(fresh_uri(), schema_of(INT), key=key)
    empty.set_properties({"history": "valid_from, valid_to"})
    with pytest.raises(InvalidSchemaChange, match="valid_to may be NULL"):
        empty.set_not_null("valid_to")
    with table.alter() as change:
        for column in COLUMNS:
            change.widen_column(column, pa.int64())
    apply(table, [event("u", 2**40)])
    ends = table.scan(order_by_key=True).to_arrow().column("valid_to").to_pylist()
    assert ends == [2**40, None]
