"""Key columns and dates are widened: old parts are merged, pruned and probed as before."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any, Literal

import datafusion
import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import (
    CommitConflict,
    InvalidSchemaChange,
    UnsupportedOperation,
    UnsupportedProtocol,
)
from tests.profiles import some
from tests.small_tables import overtake

PRUNING: tuple[Literal["on", "soft", "off"], ...] = ("on", "soft", "off")
DAY = dt.date(2026, 11, 23)


def at(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time())


def made(columns: dict[str, pa.DataType], key: list[str] | None, **properties: str) -> Table:
    schema = pa.schema(
        [pa.field(name, type_, name not in (key or ())) for name, type_ in columns.items()]
    )
    uri = f"memory:///widening-{uuid.uuid4().hex}"
    return rowsieve.create_table(uri, schema, key=key, properties=properties)


def put(table: Table, rows: list[tuple[Any, ...]]) -> None:
    schema = pa.schema([pa.field(each.name, each.type) for each in table.schema])
    columns = [
        pa.array(values, type_)
        for values, type_ in zip(zip(*rows, strict=True), schema.types, strict=True)
    ]
    data = pa.Table.from_arrays(columns, schema=schema)
    if table.key:
        table.upsert(data)
    else:
        table.append(data)


def read(table: Table, where: str | None = None) -> list[tuple[Any, ...]]:
    """The rows; the same with pruning, without it, and in DataFusion."""
    found = [
        sorted(map(tuple, map(dict.values, rows)), key=repr)
        for pruning in PRUNING
        for rows in [table.scan(where, pruning=pruning).to_arrow().to_pylist()]
    ]
    assert repr(found[0]) == repr(found[1]) == repr(found[2])
    context = datafusion.SessionContext()
    context.register_table("t", table)
    where_clause = "" if where is None else f" WHERE {where}"
    rows = context.sql(f"SELECT * FROM t{where_clause}").to_pylist()
    assert repr(sorted(map(tuple, map(dict.values, rows)), key=repr)) == repr(found[0])
    return found[0]


KEYS = [
    pytest.param(pa.int8(), pa.int64(), (-128, 0, 127), (-129, 2**40), id="int8"),
    pytest.param(pa.uint32(), pa.int64(), (0, 7, 2**32 - 1), (-1, 2**40), id="uint32"),
    pytest.param(pa.uint8(), pa.uint64(), (0, 7, 255), (256, 2**64 - 1), id="uint8"),
    pytest.param(pa.float32(), pa.float64(), (-0.5, 0.0, math.inf), (0.1, -0.1), id="float32"),
    pytest.param(
        pa.decimal128(3, 1),
        pa.decimal128(38, 2),
        (Decimal("-99.9"), Decimal("0.1"), Decimal("99.9")),
        (Decimal("-100"), Decimal("0.11")),
        id="decimal",
    ),
    pytest.param(pa.int32(), pa.float64(), (-(2**31), 0, 7), (0.5, -math.inf), id="int32-double"),
    pytest.param(pa.uint8(), pa.float32(), (0, 1, 255), (0.5, -1.5), id="uint8-float"),
    pytest.param(
        pa.int64(),
        pa.decimal128(20, 0),
        (-(2**63), 0, 2**63 - 1),
        (Decimal(-(2**63) - 1), Decimal(2**63)),
        id="int64-decimal",
    ),
    pytest.param(
        pa.uint32(),
        pa.decimal128(14, 2),
        (0, 7, 2**32 - 1),
        (Decimal("7.01"), Decimal("-0.01")),
        id="uint32-decimal",
    ),
    pytest.param(
        pa.date32(),
        pa.timestamp("us"),
        (dt.date(1700, 1, 1), DAY, dt.date(2261, 12, 31)),
        (dt.datetime(2026, 11, 23, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)),
        id="date",
    ),
]


def text(value: Any) -> str:
    if isinstance(value, float):
        return f"CAST('{value}' AS DOUBLE PRECISION)"
    if isinstance(value, Decimal):  # a float in DataFusion otherwise
        return f"CAST('{value}' AS DECIMAL(38, 2))"
    return f"TIMESTAMP '{value}'" if isinstance(value, dt.date) else str(value)


@pytest.mark.parametrize(
    ("narrow", "wider", "old", "new", "parts"),
    [
        pytest.param(*key.values, size, id=f"{key.id}-{size}")
        for place, key in enumerate(KEYS)
        for size in some(["1", "100000"], 2, place)
    ],
)
def test_a_key_is_widened(
    narrow: pa.DataType, wider: pa.DataType, old: Any, new: Any, parts: str
) -> None:
    # invariants I5, rules 24 and 25
    def wide(value: Any) -> Any:
        return pa.scalar(value, narrow).cast(wider).as_py() if value in old else value

    table = made(
        {"k": narrow, "v": pa.string()}, ["k"], target_part_bytes=parts, checkpoint_interval="3"
    )
    put(table, [(key, "old") for key in old])
    table.delete(keys=pa.table({"k": pa.array(old[1:2], narrow)}))
    put(table, [(old[2], "newer")])
    table.widen_column("k", wider)
    table = rowsieve.open_table(table.uri)
    model = {wide(old[0]): "old", wide(old[2]): "newer"}
    assert read(table) == sorted(model.items(), key=repr)
    rows: list[tuple[Any, str]] = [(key, "new") for key in new]
    put(table, [*rows, (wide(old[0]), "again")])
    model |= {**dict(rows), wide(old[0]): "again"}
    for where, wanted in [
        (None, set(model)),
        *((f"k = {text(wide(key))}", {wide(key)} & set(model)) for key in (*old, *new)),
        (f"k >= {text(new[0])}", {key for key in model if key >= new[0]}),
        (f"k < {text(wide(old[1]))}", {key for key in model if key < wide(old[1])}),
        ("v = 'old'", set()),
    ]:
        expected = sorted(((key, model[key]) for key in wanted), key=repr)
        assert read(table, where) == expected, where
    table.delete(keys=pa.table({"k": pa.array([wide(old[2])], wider)}))
    del model[wide(old[2])]
    table.update({"v": "'set'"}, where=f"k = {text(new[1])}")
    model[new[1]] = "set"
    assert read(table) == sorted(model.items(), key=repr)
    assert table.compact().committed
    assert read(table) == sorted(model.items(), key=repr)
    assert len(rowsieve.open_table(table.uri, version=1).scan().to_arrow()) == 3


def test_a_point_lookup_skips_old_parts_by_bounds_and_blooms() -> None:
    table = made({"k": pa.date32(), "v": pa.int64()}, ["k"])
    put(table, [(DAY + dt.timedelta(2 * i), i) for i in range(20)])
    table.widen_column("k", "timestamp")
    at_noon = table.scan("k = TIMESTAMP '2026-11-25 12:00:00'")
    assert at_noon.to_arrow().num_rows == 0
    assert at_noon.metrics.rows_decoded == 0
    assert read(table, "k = TIMESTAMP '2026-11-25 00:00:00'") == [(dt.datetime(2026, 11, 25), 1)]
    assert table.scan("k > TIMESTAMP '2027-06-01 00:00:00'").plan().splits == ()


def test_a_key_of_two_columns_is_widened() -> None:
    table = made({"a": pa.int16(), "b": pa.string(), "v": pa.int64()}, ["a", "b"])
    put(table, [(a, b, 0) for a in (1, 2) for b in ("x", "y")])
    table.widen_column("a", pa.int32())
    put(table, [(2, "x", 1), (70_000, "x", 2)])
    assert read(table, "a = 2") == [(2, "x", 1), (2, "y", 0)]
    assert len(read(table)) == 5
    table.compact()
    assert len(read(table)) == 5


@pytest.mark.parametrize("keyed", [True, False])
def test_a_date_becomes_a_timestamp(keyed: bool) -> None:
    columns = {"id": pa.int64(), "d": pa.date32(), "l": pa.list_(pa.date32())}
    table = made(columns, ["id"] if keyed else None, checkpoint_interval="2")
    put(table, [(1, DAY, [DAY, None]), (2, None, None)])
    table.add_column("e", "date", default=dt.date(1700, 1, 1))
    put(table, [(3, dt.date(2261, 12, 31), [], None)])
    with table.alter() as change:
        for name in ("d", "e", "l.element"):
            change.widen_column(name, "timestamp")
    put(table, [(4, at(DAY) + dt.timedelta(microseconds=1), None, at(DAY))])
    first = dt.datetime(1700, 1, 1)
    assert read(table) == [
        (1, at(DAY), [at(DAY), None], first),
        (2, None, None, first),
        (3, dt.datetime(2261, 12, 31), [], None),
        (4, at(DAY) + dt.timedelta(microseconds=1), None, at(DAY)),
    ]
    for where, ids in {
        "d = TIMESTAMP '2026-11-23 00:00:00'": [1],
        "d > TIMESTAMP '2026-11-23 00:00:00'": [3, 4],
        "d <= TIMESTAMP '2026-11-23 00:00:00'": [1],
        "d IS NULL": [2],
        "e = TIMESTAMP '1700-01-01 00:00:00'": [1, 2],
        "e > TIMESTAMP '1700-01-01 00:00:00'": [4],
    }.items():
        assert [row[0] for row in read(table, where)] == ids, where
    assert table.scan("d > TIMESTAMP '2261-12-31 00:00:00'").plan().splits == ()
    summary = table.scan().statistics().columns["d"]
    assert summary.upper is not None
    assert summary.upper.as_py() == dt.datetime(2261, 12, 31)
    before = read(table)
    table.compact()
    assert read(table) == before
    table.restore(1)
    assert read(table) == before[:2]


def test_dates_that_no_timestamp_has_stay_dates() -> None:
    far = pa.array([106_751_992, 0], pa.int32()).view(pa.date32())
    table = made({"id": pa.int64(), "d": pa.date32()}, None)
    table.append(pa.table({"id": [1, 2], "d": far}))
    with pytest.raises(InvalidSchemaChange, match="292,000 years"):
        table.widen_column("d", "timestamp")
    table.delete("id = 1")  # hidden rows are decoded with the others
    with pytest.raises(InvalidSchemaChange, match="292,000 years"):
        table.widen_column("d", "timestamp")
    table.overwrite(pa.table({"id": [2], "d": far.slice(1)}))
    table.widen_column("d", "timestamp")
    assert read(table) == [(2, dt.datetime(1970, 1, 1))]
    with pytest.raises(UnsupportedOperation, match="dates that its type now does not have"):
        table.restore(1)
    edge = made({"d": pa.date32()}, None)
    edge.append(
        pa.table({"d": pa.array([106_751_991, -106_751_991], pa.int32()).view(pa.date32())})
    )
    edge.widen_column("d", "timestamp")
    assert edge.to_arrow().column("d").cast(pa.int64()).to_pylist() == [
        106_751_991 * 86_400_000_000,
        -106_751_991 * 86_400_000_000,
    ]


def test_without_statistics_it_is_not_known_whether_dates_fit() -> None:
    table = made({"id": pa.int64(), "d": pa.date32()}, None, statistics="off")
    table.widen_column("d", "timestamp")
    other = made({"id": pa.int64(), "d": pa.date32()}, None, statistics="off")
    put(other, [(1, DAY)])
    with pytest.raises(InvalidSchemaChange, match="statistics"):
        other.widen_column("d", "timestamp")


def test_a_date_does_not_become_an_instant() -> None:
    table = made({"id": pa.int64(), "d": pa.date32()}, None)
    with pytest.raises(InvalidSchemaChange, match="not every value"):
        table.widen_column("d", "timestamptz")


def test_older_readers_and_writers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made({"k": pa.int32(), "v": pa.int64()}, ["k"])
    other = rowsieve.open_table(table.uri)
    overtake(other, monkeypatch, lambda _: table.widen_column("k", "int64"))
    with pytest.raises(CommitConflict, match="'k' has another type"):
        put(other, [(1, 1)])
    monkeypatch.setattr("rowsieve.storage.log.log_entry.FEATURES", frozenset({"schema_changes"}))
    with pytest.raises(UnsupportedProtocol, match="field_changes"):
        rowsieve.open_table(table.uri)
