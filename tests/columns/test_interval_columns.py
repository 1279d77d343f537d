"""Columns of intervals through a table: conditions, pruning, engines, schema changes."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve.errors import InvalidPredicate, RowsieveError
from rowsieve.types.interval_bytes import encoded, to_arrow, total_of

_PARTS: list[tuple[int, int, int] | None] = [
    *[(1, 0, 0), (0, 30, 0), (0, 31, 0), (0, 29, 86_400_000_000), None, (0, 0, 0), (-1, 30, 0)],
    *[(-1, 0, 0), (12, 0, 0), (0, 365, 0), (0, 0, -1), (0, 0, 1), (1200, -1, 5_000_000)],
]
_INTERVALS = pa.array(
    [None if row is None else (row[0], row[1], row[2] * 1000) for row in _PARTS],
    pa.month_day_nano_interval(),
)
_CONDITIONS = [
    *["span = INTERVAL '1 month'", "span <> INTERVAL '30 days'", "span < INTERVAL '0 days'"],
    *["span >= INTERVAL '1 month'", "span > INTERVAL '1 year'", "INTERVAL '1 day' < span"],
    *["span IN (INTERVAL '1 month', INTERVAL '1 microsecond')", "span IS NULL"],
    *["span NOT IN (INTERVAL '1 month')", "NOT span <= INTERVAL '1 day'"],
    *["span IS DISTINCT FROM INTERVAL '30 days'", "span = other", "span < other"],
    "span BETWEEN INTERVAL '1 day' AND INTERVAL '1 month 1 day'",
]


def _table(path: Path, parts: int = 1) -> rs.Table:
    rows = pa.table(
        {
            "id": range(len(_PARTS)),
            "span": _INTERVALS,
            "other": _INTERVALS.take(pa.array(reversed(range(len(_PARTS))))),
        }
    )
    size = -(-len(_PARTS) // parts)
    table = rs.create_table(str(path / "t"), rows.schema, key=["id"])
    for start in range(0, len(_PARTS), size):
        table.upsert(rows.slice(start, size))
    return table


@pytest.mark.parametrize("dialect", ["postgres", "duckdb"])
@pytest.mark.parametrize("where", _CONDITIONS)
def test_conditions_keep_the_rows_that_duckdb_keeps(
    where: str, dialect: str, tmp_path: Path
) -> None:
    rows = pa.table(
        {
            "id": range(len(_PARTS)),
            "span": _INTERVALS,
            "other": _INTERVALS.take(pa.array(reversed(range(len(_PARTS))))),
        }
    )
    connection = duckdb.connect()
    connection.register("rows", rows)
    kept = connection.execute(f"SELECT id FROM rows WHERE {where} ORDER BY id").fetchall()
    table = _table(tmp_path, parts=5)
    got = table.scan(where=where, dialect=dialect).to_arrow().column("id").to_pylist()
    assert got == [row[0] for row in kept]
    soft = table.scan(where=where, dialect=dialect, pruning="soft").to_arrow()
    assert soft.column("id").to_pylist() == got


def test_lengths_skip_parts(tmp_path: Path) -> None:
    table = rs.create_table(
        str(tmp_path / "t"),
        pa.schema([("id", pa.int64()), ("span", pa.month_day_nano_interval())]),
        key=["id"],
    )
    for part in range(4):
        spans = [(0, day + 10 * part, 0) for day in range(10)]
        table.upsert(
            pa.table(
                {
                    "id": range(10 * part, 10 * part + 10),
                    "span": pa.array(spans, pa.month_day_nano_interval()),
                }
            )
        )
    scan = table.scan(where="span = '1 month'")
    assert scan.to_arrow().column("id").to_pylist() == [30]
    assert scan.metrics.parts_read == 1
    assert table.scan(where="span > '39 days'").explain().parts_read == 0


def test_bounds_hold_for_random_intervals(tmp_path: Path) -> None:
    chooser = random.Random(7)
    ends = [-(2**31), -40, -1, 0, 1, 40, 2**31 - 1]
    rows = [
        (chooser.choice(ends), chooser.choice(ends), chooser.choice([*ends, -(2**63), 2**63 - 1]))
        for _ in range(60)
    ]
    stored = [encoded(*row) for row in rows]
    field = pa.field(
        "span", pa.binary(16), metadata={"ARROW:extension:name": "rowsieve.interval.1"}
    )
    schema = pa.schema([pa.field("id", pa.int64()), field])
    table = rs.create_table(str(tmp_path / "t"), schema, key=["id"])
    for start in range(0, 60, 6):
        ids = pa.array(range(start, start + 6))
        values = pa.array(stored[start : start + 6], pa.binary(16))
        table.upsert(pa.table({"id": ids, "span": values}))
    for days in (0, 30, 41, -1, 2**31, -(10**9)):
        where = f"span >= INTERVAL '{days} days'" if abs(days) < 2**31 else "span > '68 years'"
        limit = days * 86_400_000_000 if abs(days) < 2**31 else 68 * 360 * 86_400_000_000
        wanted = [
            place
            for place, value in enumerate(stored)
            if (total_of(value) >= limit if abs(days) < 2**31 else total_of(value) > limit)
        ]
        assert table.scan(where=where).to_arrow().column("id").to_pylist() == wanted


@pytest.mark.parametrize("dialect", ["datafusion", "spark", "trino"])
def test_other_dialects_do_not_compare_by_length(dialect: str, tmp_path: Path) -> None:
    table = _table(tmp_path)
    with pytest.raises(RowsieveError):
        table.scan(where="span = INTERVAL '1' MONTH", dialect=dialect).to_arrow()


@pytest.mark.parametrize("where", ["span = 3", "span = id", "span = 'soon'", "span LIKE '1%'"])
def test_a_comparison_with_another_type_is_refused(where: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidPredicate):
        _table(tmp_path).scan(where=where).to_arrow()


def test_engines_see_the_bytes_and_compare_them(tmp_path: Path) -> None:
    table = _table(tmp_path)
    zero = encoded(0, 0, 0)
    wanted = sorted(
        place for place, row in enumerate(_PARTS) if row is not None and encoded(*row) > zero
    )
    dataset = table.to_dataset()
    context = SessionContext()
    context.register_table("t", table)
    literal = f"X'{zero.hex()}'"
    seen = context.sql(f"SELECT id FROM t WHERE span > {literal} ORDER BY id").to_arrow_table()
    assert seen.column("id").to_pylist() == wanted
    escaped = "".join(f"\\x{byte:02x}" for byte in zero)
    found = duckdb.execute(
        f"SELECT id FROM dataset WHERE span > '{escaped}'::BLOB ORDER BY id"
    ).fetchall()
    assert [row[0] for row in found] == wanted
    for frame in (pl.scan_pyarrow_dataset(dataset), table.scan_polars()):
        got = frame.filter(pl.col("span") > zero).sort("id").collect()
        assert got["id"].to_list() == wanted


def test_timedeltas_of_python_are_intervals(tmp_path: Path) -> None:
    table = rs.create_table(
        str(tmp_path / "t"),
        {"id": [1, 2], "wait": [datetime.timedelta(hours=25), None]},
        key=["id"],
    )
    assert table.scan(where="wait > '1 day'").count() == 1
    assert to_arrow(table.scan().to_arrow().column("wait").chunk(0))[0].as_py() == (
        0,
        0,
        90_000 * 10**9,
    )


def test_an_interval_is_rejected_as_a_key(tmp_path: Path) -> None:
    with pytest.raises(RowsieveError, match="interval"):
        rs.create_table(str(tmp_path / "t"), pa.table({"span": _INTERVALS}), key=["span"])


def test_an_added_interval_has_its_default_in_old_rows(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), {"id": [1]}, key=["id"])
    table.add_column("wait", pa.duration("us"), default=datetime.timedelta(days=30))
    table.upsert(pa.table({"id": [2], "wait": [datetime.timedelta(days=1)]}))
    assert table.scan(where="wait = '1 month'").to_arrow().column("id").to_pylist() == [1]
    assert table.scan(where="wait < '1 month'").to_arrow().column("id").to_pylist() == [2]


def test_json_is_compared_as_text_where_an_engine_sees_text(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "doc": pa.array(["1", None, "[]"], pa.json_())})
    table = rs.create_table(str(tmp_path / "t"), rows, key=["id"])
    context = SessionContext()
    context.register_table("t", table)
    for where in ("doc = '[]'", "doc IN ('[]', 'x')", "doc > '2'"):
        seen = context.sql(f"SELECT id FROM t WHERE {where}").to_arrow_table()
        assert seen.column("id").to_pylist() == [3]
    with pytest.raises(InvalidPredicate):
        table.scan(where="doc > '2'").to_arrow()
    assert table.scan(where="doc = '[ ]'").to_arrow().column("id").to_pylist() == [3]
    for frame in (pl.scan_pyarrow_dataset(table.to_dataset()), table.scan_polars()):
        assert frame.filter(pl.col("doc") == "[]").collect()["id"].to_list() == [3]
