"""Chunks whose statistics contradict their page index: neither is believed (invariant 45)."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.parquet.foreign_footer import footer_fields, index_contradictions
from rowsieve.parquet.thrift import (
    I32,
    I64,
    MalformedThrift,
    encoded_value,
    join_fields,
    read_fields,
)
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


@pytest.mark.parametrize("rows", [1, 100, 20_000])
def test_an_index_that_repeats_its_chunk_is_known_by_its_bytes(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table(
        {
            "n": pa.array([None if i % 3 == 0 else i for i in range(1, rows + 1)], pa.int64()),
            "s": [f"text {i % 300}" for i in range(rows)],
            "f": pa.array([i / 2 for i in range(rows)], pa.float32()),
        }
    )
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, write_page_index=True, data_page_size=2**20)
    decoded: list[int] = []

    def read(*each: Any) -> Any:
        decoded.append(1)
        return read_fields(*each)

    monkeypatch.setattr(index_contradictions, "read_fields", read)
    assert rs.open_parquet(path).scan("n > 5").count() == pc.sum(pc.greater(table["n"], 5)).as_py()
    assert not decoded


def test_bytes_that_repeat_a_chunk_never_hide_a_contradiction() -> None:
    leaf: Any = SimpleNamespace(physical=2, is_signed=True)
    chunk = (b"\1" + b"\0" * 7, b"\x81\2" + b"\0" * 6)
    for count in (-1, 0, 3, 200):
        footer = footer_of(chunk, count)
        fields = {2: [chunk[0]], 3: [chunk[1]], 4: I32(1), 5: [I64(max(count, 0))]}
        encoded = ((number, *encoded_value(value)) for number, value in fields.items())
        index = bytes(join_fields([(1, 9, b"\x11\x02"), *encoded]))
        assert repeats(footer, [index, index[:-2], b""]) == [True, count < 0, False]
        changed = [
            index[:place] + bytes([value]) + index[place + 1 :]
            for place, value in itertools.product(range(len(index)), (0, 1, 2, 127, 128, 255))
        ]
        for same, is_equal in zip(changed, repeats(footer, changed), strict=True):
            if is_equal:
                with suppress(MalformedThrift, KeyError, IndexError, TypeError, ValueError):
                    fields_read = read_fields(same, 0, index_contradictions.INDEX)
                    assert not index_contradictions._contradicts(fields_read, leaf, count, chunk)


def test_bounds_of_every_length_are_compared() -> None:
    for length in (0, 1, 127, 128, 300):
        chunk = b"a" * length, b"b" * length
        fields = {2: [chunk[0]], 3: [chunk[1]], 4: I32(1), 5: [I64(2**62)]}
        encoded = ((number, *encoded_value(value)) for number, value in fields.items())
        index = bytes(join_fields([(1, 9, b"\x11\x02"), *encoded]))
        other = index.replace(b"b" * length, b"b" * (length - 1) + b"c") if length else b"\x19"
        assert repeats(footer_of(chunk, 2**62), [index, other]) == [length < 128, False]


def footer_of(chunk: tuple[bytes, bytes], nulls: int) -> Any:
    """A footer with one chunk of these bounds and NULLs; a negative number is none."""
    edges = {
        footer_fields.MIN: (0, len(chunk[0])),
        footer_fields.MAX: (len(chunk[0]), len(chunk[0]) + len(chunk[1])),
    }
    values = {path: np.array([start]) for path, (start, _) in edges.items()}
    stops = {path: np.array([stop]) for path, (_, stop) in edges.items()}
    values[footer_fields.NULLS], stops[footer_fields.NULLS] = (
        np.array([nulls]),
        np.array([-1 if nulls < 0 else 1]),
    )
    return SimpleNamespace(data=b"".join(chunk), chunks=SimpleNamespace(values=values, stops=stops))


def repeats(footer: Any, indexes: list[bytes]) -> list[bool]:
    """Whether each index repeats the one chunk of the footer, when all are compared at once."""
    starts = np.cumsum([0, *map(len, indexes)])[:-1]
    places = np.zeros(len(indexes), np.int64)
    data = b"".join(indexes)
    return list(index_contradictions._repeats_chunk(footer, data, starts, places).tolist())
