"""Chunks whose statistics contradict their page index: neither is believed (invariant 45)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext
from tests.foreign import damaged
from tests.foreign.damaged import MAX, MIN, NULLS, nulls

COUNT = 40
COLUMNS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "i": (pa.int64(), lambda n: n),
    "u": (pa.uint32(), lambda n: 4_000_000_000 + n),
    "f": (pa.float64(), float),
    "s": (pa.string(), lambda n: f"t{n:02}"),
    "d": (pa.date32(), lambda n: date(2020, 1, n % 28 + 1)),
    "b": (pa.bool_(), lambda n: n % 2 == 0),
}
ROWS = pa.table(
    {
        name: pa.array([value(n) for n in range(COUNT)], type_)
        for name, (type_, value) in COLUMNS.items()
    }
)
CONDITIONS = {
    "i": "i = 33",
    "u": "u = 4000000033",
    "f": "f < 1",
    "s": "s = 't33'",
    "d": "d = date '2020-01-07'",
    "b": "b",
}
FALSE_BOUNDS = {
    "i": (b"\5" + b"\0" * 7, b"\6" + b"\0" * 7),
    "u": (b"\5\0\0\0", b"\6\0\0\0"),
    "f": (b"\0" * 6 + b"\x14\x40", b"\0" * 6 + b"\x18\x40"),
    "s": (b"t05", b"t06"),
    "d": (b"\5\0\0\0", b"\6\0\0\0"),
    "b": (b"\0", b"\0"),
}
PAGES: dict[str, dict[str, Any]] = {
    "one page": {},
    "pages": {"data_page_size": 1, "write_batch_size": 3, "data_page_version": "2.0"},
}


def write(path: Path, **options: Any) -> None:
    pq.write_table(ROWS, path, write_page_index=True, use_dictionary=False, **options)


def tables(path: Path) -> list[rs.Table]:
    return [rs.open_parquet(path), rs.from_parquet(path, path.parent / "table")]


def check(path: Path, condition: str, expected: int) -> None:
    for table in tables(path):
        assert table.count(condition) == expected
        assert table.scan(condition).to_arrow().num_rows == expected
        context = SessionContext()
        context.register_table("t", table)
        assert context.sql(f"SELECT * FROM t WHERE {condition}").to_arrow_table().num_rows == (
            expected
        )


@pytest.mark.parametrize("pages", PAGES)
@pytest.mark.parametrize("name", COLUMNS)
def test_false_bounds_of_a_chunk_hide_no_row(name: str, pages: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for group_rows in (COUNT, 10):  # the bounds of the file, and those of row groups
        write(path, row_group_size=group_rows, **PAGES[pages])
        expected = rs.open_parquet(path).count(CONDITIONS[name])
        assert expected > 0
        lower, upper = FALSE_BOUNDS[name]
        claims = {MIN: lower, MAX: upper, NULLS: nulls(0)}
        damaged.set_statistics(path, ROWS.schema.names.index(name), claims)
        check(path, CONDITIONS[name], expected)
        shutil.rmtree(tmp_path / "table")


@pytest.mark.parametrize(("claimed", "condition"), [(1, "i IS NOT NULL"), (0, "i IS NULL")])
def test_false_counts_of_nulls_of_a_chunk_hide_no_row(
    claimed: int, condition: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    values = [None, *range(5)] if claimed == 0 else [7]
    rows = pa.table({"i": pa.array(values, pa.int64())})
    pq.write_table(rows, path, write_page_index=True, use_dictionary=False)
    expected = rs.open_parquet(path).count(condition)
    damaged.set_statistics(path, 0, {NULLS: nulls(claimed)})
    check(path, condition, expected)


def _narrower(claims: dict[int, Any]) -> Callable[[Path], None]:
    return lambda path: damaged.set_statistics(path, 3, claims)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_narrower({MIN: b"t0", MAX: b"t4", NULLS: nulls(0)}), id="truncated"),
        pytest.param(lambda _: None, id="as written"),
    ],
)
def test_bounds_that_an_index_confirms_skip_files(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    write(path)
    change(path)
    for table in tables(path):
        for condition in ("s > 'u'", "i > 90", "u < 7"):
            assert str(table.scan(condition).explain()).count("skipped by statistics") == 1
