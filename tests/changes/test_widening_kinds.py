"""Integers become floats and decimals, dates become nanoseconds: old parts are read as before."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve import Table
from rowsieve.errors import InvalidSchemaChange, UnsupportedProtocol
from tests.profiles import some

NAN, INF = float("nan"), float("inf")
FLOATS = ["1.5", "-0.5", "3", "2147483647", "2147483648", "1e300", "'NaN'", "'-Infinity'", "'-0.0'"]
DECIMALS = ["1.5", "3", "-3", "127", "128", "9223372036854775807", "18446744073709551616"]
DAYS = [dt.date(1700, 1, 1), dt.date(2026, 11, 28), dt.date(2262, 4, 11), None]


def ends(type_: pa.DataType) -> list[int | None]:
    low = -(2 ** (type_.bit_width - 1)) if pa.types.is_signed_integer(type_) else 0
    return [low, low + 1, 0, 1, 3, low + 2**type_.bit_width - 1, None]


def to_float(narrow: pa.DataType, wide: pa.DataType) -> Any:
    name = "DOUBLE" if wide == pa.float64() else "FLOAT"
    texts = [text for text in FLOATS if name == "DOUBLE" or text != "1e300"]
    literals = [f"CAST({text} AS {name})" for text in texts]
    new = [NAN, INF, -INF, -0.0, 1.5, None]
    return pytest.param(narrow, wide, ends(narrow), new, literals, id=f"{narrow}-{wide}")


def to_decimal(narrow: pa.DataType, precision: int, scale: int) -> Any:
    wide = pa.decimal128(precision, scale)
    new = [Decimal("1.5") if scale else Decimal(7), Decimal(-3), None]
    return pytest.param(narrow, wide, ends(narrow), new, DECIMALS, id=f"{narrow}-{wide}")


CASES = [
    *(to_float(each, pa.float64()) for each in (pa.int8(), pa.uint16(), pa.int32(), pa.uint32())),
    *(to_float(each, pa.float32()) for each in (pa.int16(), pa.uint8())),
    to_decimal(pa.int8(), 3, 0),
    to_decimal(pa.int16(), 10, 4),
    to_decimal(pa.int32(), 20, 0),
    to_decimal(pa.uint32(), 12, 2),
    to_decimal(pa.int64(), 19, 0),
    to_decimal(pa.int64(), 20, 0),
    to_decimal(pa.uint64(), 38, 2),
    pytest.param(
        pa.date32(),
        pa.timestamp("ns"),
        DAYS,
        [pa.scalar(1, pa.timestamp("ns")), None],
        ["TIMESTAMP '2026-11-28 00:00:00'", "TIMESTAMP '2026-11-28 12:00:00'"],
        id="date-ns",
    ),
]


def named(type_: pa.DataType) -> Any:
    """The type for `widen_column`, which knows nanoseconds by name."""
    return "timestamp_ns" if type_ == pa.timestamp("ns") else type_


def widened_table(
    folder: str, narrow: pa.DataType, wide: pa.DataType, old: list[Any], new: list[Any], **more: Any
) -> tuple[Table, pa.Table]:
    """A table with parts of both types, and its rows."""
    ids = pa.array(range(len(old)), pa.int64())
    table = rs.create_table(folder, pa.table({"id": ids, "x": pa.array(old, narrow)}), **more)
    table.append(pa.table({"id": pc.add(ids, 100), "x": pa.array(old[2:3] * len(old), narrow)}))
    before = table.to_arrow()
    table.widen_column("x", named(wide))
    fresh = pa.array(range(200, 200 + len(new)), pa.int64())
    rows = pa.table({"id": fresh, "x": pa.array(new, wide)})
    table.append(rows)
    old_rows = before.set_column(1, "x", before["x"].cast(wide))
    return rs.open_table(table.uri), pa.concat_tables([old_rows, rows])


def conditions(literals: list[str]) -> list[str]:
    found = [f"x {op} {each}" for each in literals for op in ("=", "<>", "<", "<=", ">", ">=")]
    return [*found, f"x IN ({', '.join(literals)})", f"x NOT IN ({', '.join(literals[:2])})",
            "x IS NULL", "x IS NOT NULL", f"x BETWEEN {literals[1]} AND {literals[0]}",
            f"NOT (x > {literals[0]}) OR x IS NULL"]  # fmt: skip


def counted(table: pa.Table) -> Counter[str]:
    return Counter(repr(row) for row in table.to_pylist())


@pytest.mark.parametrize(
    ("place", "narrow", "wide", "old", "new", "literals"),
    [pytest.param(place, *case.values, id=case.id) for place, case in enumerate(CASES)],
)
def test_conditions_over_old_and_new_parts(
    place: int, narrow: pa.DataType, wide: pa.DataType, old: Any, new: Any, literals: list[str]
) -> None:
    uri = f"memory:///{uuid.uuid4()}"
    table, rows = widened_table(uri, narrow, wide, old, new)
    judge = duckdb.connect()
    judge.register("t", rows)
    assert counted(table.to_arrow()) == counted(rows)
    for where in some(conditions(literals), 5, place):
        expected = {row[0] for row in judge.execute(f"SELECT id FROM t WHERE {where}").fetchall()}
        for pruning in ("on", "soft", "off"):
            found = table.scan(where, dialect="duckdb", pruning=pruning).to_arrow()
            assert set(found["id"].to_pylist()) == expected, (where, pruning)
            assert found["x"].type == wide
    table.compact()
    assert counted(rs.open_table(uri).to_arrow()) == counted(rows)


def test_a_fraction_opens_no_part_of_integers() -> None:
    table = rs.create_table(
        f"memory:///{uuid.uuid4()}",
        pa.table({"x": pa.array(range(0, 2000, 2), pa.int32())}),
        key=["x"],
    )
    table.widen_column("x", pa.float64())
    for where in ("x = 1.5", "x = 7", "x = -0.5", "x = 'NaN'", "x = 1e300"):
        scan = table.scan(where)
        assert scan.to_arrow().num_rows == 0, where
        assert scan.metrics.rows_decoded == 0, where
    assert table.scan("x = 8").to_arrow().num_rows == 1
    assert table.scan("x > 1998").plan().splits == ()  # integers are never NaN
    assert table.scan("x >= 1998").to_arrow().num_rows == 1
    table.upsert(pa.table({"x": [NAN]}))
    assert table.scan("x > 1998").to_arrow().num_rows == 1


def test_a_decimal_is_looked_up_in_filters_of_integers() -> None:
    table = rs.create_table(
        f"memory:///{uuid.uuid4()}",
        pa.table({"x": pa.array(range(-500, 500, 2), pa.int16())}),
        key=["x"],
    )
    table.widen_column("x", pa.decimal128(10, 2))
    for where in ("x = 1.25", "x = 7", "x IN (9, 11, 0.01)"):
        scan = table.scan(where)
        assert scan.to_arrow().num_rows == 0, where
        assert scan.metrics.rows_decoded == 0, where
    assert table.scan("x IN (-500, 9, 8.00)").to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (pa.int64(), pa.float64()),
        (pa.uint64(), pa.float64()),
        (pa.int32(), pa.float32()),
        (pa.int32(), pa.decimal128(9, 0)),
        (pa.int64(), pa.decimal128(20, 2)),
        (pa.uint64(), pa.decimal128(19, 0)),
        (pa.decimal128(5, 0), pa.float64()),
        (pa.float64(), pa.decimal128(38, 0)),
        (pa.bool_(), pa.int32()),
        (pa.timestamp("us"), pa.timestamp("ns")),
        (pa.date32(), pa.timestamp("us", "UTC")),
    ],
)
def test_types_without_some_of_the_values_are_refused(
    narrow: pa.DataType, wide: pa.DataType
) -> None:
    schema = pa.schema([pa.field("x", narrow)])
    table = rs.create_table(f"memory:///{uuid.uuid4()}", schema)
    with pytest.raises(InvalidSchemaChange, match="not every value"):
        table.widen_column("x", named(wide))


def test_defaults_and_nested_fields_are_widened(tmp_path: Path) -> None:
    nested = pa.array([{"a": [1, None], "b": {"c": 7}}, None], pa.struct(
        [("a", pa.list_(pa.int16())), ("b", pa.struct([("c", pa.uint64())]))]))  # fmt: skip
    table = rs.create_table(str(tmp_path / "t"), pa.table({"id": [1, 2], "s": nested}))
    table.add_column("n", pa.int32(), default=2**31 - 1)
    table.add_column("s.b.d", pa.int64(), default=5)
    with table.alter() as change:
        change.widen_column("n", pa.float64())
        change.widen_column("s.a.element", pa.float32())
        change.widen_column("s.b.c", pa.decimal128(22, 2))
        change.widen_column("s.b.d", pa.decimal128(20, 0))
    assert table.to_arrow().to_pylist() == [
        {"id": 1, "s": {"a": [1.0, None], "b": {"c": Decimal("7.00"), "d": Decimal(5)}},
         "n": 2147483647.0},
        {"id": 2, "s": None, "n": 2147483647.0},
    ]  # fmt: skip
    for where, ids in {"n = 2147483647": [1, 2], "n > 2147483647": [], "n = 0.5": []}.items():
        for pruning in ("on", "soft", "off"):
            found = table.scan(where, pruning=pruning).to_arrow()
            assert found["id"].to_pylist() == ids, where
    assert table.scan("s.b.c = 7").count() == table.scan("s.b.d = 5").count() == 1
    assert table.scan("s.b.c = 7.25").count() == 0
    table.restore(2)
    assert table.to_arrow()["n"].to_pylist() == [2147483647.0] * 2


def test_every_reader_gets_the_same_rows(tmp_path: Path) -> None:
    old, new = ends(pa.int32()), [NAN, 1.5, None]
    uri = str(tmp_path / "c" / "db" / "t")
    table, rows = widened_table(uri, pa.int32(), pa.float64(), old, new)
    table.widen_column("id", pa.decimal128(20, 0))
    ids = rows["id"].cast(pa.decimal128(20, 0))
    expected = counted(rows.set_column(0, "id", ids))
    plain, own = SessionContext(), rs.Catalog(str(tmp_path / "c"))
    plain.register_table("t", table)
    for run, name in ((plain.sql, "t"), (own.sql, "db.t")):
        assert counted(run(f"SELECT * FROM {name}")) == expected
        for where, count in {
            "x = 1.5": 1,
            "x > 2147483646": 2,
            "x < 1.5": 11,
            "id = 105": 1,
            "id = 0.5": 0,
        }.items():
            found = run(f"SELECT count(*) AS n FROM {name} WHERE {where}").to_pylist()
            assert found == [{"n": count}], where
    dataset = table.to_dataset()
    assert counted(dataset.to_table()) == expected
    assert dataset.count_rows(filter=pc.field("x") < 1.5) == 11
    assert dataset.count_rows(filter=pc.field("id") == Decimal(105)) == 1
    assert table.to_polars().height == len(rows)
    frame = table.scan_polars().filter(polars.col("x") < 1.5)
    assert frame.collect().height == 11
    judge = duckdb.connect()
    judge.register("t", dataset)
    assert judge.execute("SELECT count(*) FROM t WHERE x < 1.5").fetchall() == [(11,)]
    assert judge.execute("SELECT count(*) FROM t WHERE id = 105").fetchall() == [(1,)]


def test_a_change_feed_crosses_the_change_of_a_kind(tmp_path: Path) -> None:
    data = pa.table({"k": pa.array([1, 2], pa.int32()), "v": pa.array([1, 2], pa.int16())})
    table = rs.create_table(str(tmp_path / "t"), data, key=["k"])
    with table.alter() as change:
        change.widen_column("k", pa.float64())
        change.widen_column("v", pa.decimal128(10, 1))
    table.upsert(
        pa.table({"k": [2.0, 2.5], "v": pa.array([Decimal("2.5"), None], pa.decimal128(10, 1))})
    )
    table.delete("k = 1")
    found = table.changes(0).read_all()
    assert found.schema.field("k").type == pa.float64()
    shown = [(row["_change_type"], row["k"], row["v"]) for row in found.to_pylist()]
    assert sorted(shown, key=repr) == sorted(
        [
            ("insert", 1.0, Decimal("1.0")),
            ("insert", 2.0, Decimal("2.0")),
            ("update_preimage", 2.0, Decimal("2.0")),
            ("update_postimage", 2.0, Decimal("2.5")),
            ("insert", 2.5, None),
            ("delete", 1.0, Decimal("1.0")),
        ],
        key=repr,
    )


def test_a_reader_that_does_not_know_the_change_refuses_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = rs.create_table(f"memory:///{uuid.uuid4()}", pa.table({"x": pa.array([1], pa.int32())}))
    table.widen_column("x", pa.int64())
    known = frozenset({"schema_changes", "field_changes"})
    with monkeypatch.context() as older:
        older.setattr("rowsieve.storage.log.log_entry.FEATURES", known)
        assert rs.open_table(table.uri).scan("x = 1").count() == 1
    table.widen_column("x", pa.decimal128(20, 0))
    monkeypatch.setattr("rowsieve.storage.log.log_entry.FEATURES", known)
    with pytest.raises(UnsupportedProtocol, match="kind_changes"):
        rs.open_table(table.uri)


def test_files_of_both_types_are_one_table(tmp_path: Path) -> None:
    for name, values in {
        "a": pa.array([1, 2, None], pa.int32()),
        "b": pa.array([1.5, NAN, -0.0]),
    }.items():
        pq.write_table(pa.table({"x": values}), tmp_path / f"{name}.parquet")
    table = rs.from_parquet(str(tmp_path / "*.parquet"), str(tmp_path / "t"))
    assert table.to_arrow()["x"].type == pa.float64()
    for where, count in {"x = 1": 1, "x = 1.5": 1, "x > 2": 1, "x >= 2": 2, "x = 0": 1}.items():
        for pruning in ("on", "soft", "off"):
            assert table.scan(where, pruning=pruning).to_arrow().num_rows == count, where


def test_the_form_of_another_systems_type_stays() -> None:
    flags = [(name, pa.bool_()) for name in ("lower_inclusive", "upper_inclusive", "empty")]
    type_ = pa.struct([("lower", pa.int32()), ("upper", pa.int32()), *flags])
    field = pa.field("r", type_, metadata={"ARROW:extension:name": "rowsieve.range.1"})
    table = rs.create_table(f"memory:///{uuid.uuid4()}", pa.schema([field]))
    with pytest.raises(InvalidSchemaChange, match=r"'r'.* it is a range\.1"):
        table.widen_column("r.lower", pa.float64())
    with table.alter() as change:
        change.widen_column("r.lower", pa.float64())
        change.widen_column("r.upper", pa.float64())
    ids = pa.field(
        "at", pa.uint64(), metadata={"ARROW:extension:name": "rowsieve.system_timestamp.1"}
    )
    other = rs.create_table(f"memory:///{uuid.uuid4()}", pa.schema([ids]))
    with pytest.raises(InvalidSchemaChange, match="system_timestamp"):
        other.widen_column("at", pa.decimal128(20, 0))
