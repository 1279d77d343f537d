"""Trap T32: statistics of other writers fail open. A pruned read has the rows of a full read."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from tests.foreign import damaged
from tests.foreign.damaged import MAX, MIN, NULLS, OLD_MAX, OLD_MIN, nulls
from tests.profiles import some

ROWS = pa.table(
    {
        "i": pa.array([5, 1, None, 9, 7], pa.int64()),
        "s": pa.array(["b", "é", None, "zz", "a"]),
        "f": pa.array([1.5, float("nan"), None, -0.0, 3.0]),
        "u": pa.array([2**63 + 1, 1, None, 2, 3], pa.uint64()),
    }
)
PLACES = {name: place for place, name in enumerate(ROWS.column_names)}
CONDITIONS = (
    *("i = 1", "i < 2", "i > 8", "i IS NULL", "i IS NOT NULL", "i <> 5", "i = 6"),
    *("s = 'é'", "s < 'b'", "s > 'zz'", "s >= 'zz'", "s IS NULL", "s LIKE 'z%'", "s <> 'b'"),
    *("f = 0", "f < 1", "f > 3", "f = 'NaN'", "f IS NULL", "f >= 3", "f <> 1.5"),
    *("u > 9", "u = 1", "u IS NULL", "u < 2", "NOT (u < 4)"),
)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    table = rs.create_table(tmp_path_factory.mktemp("full") / "t", ROWS)
    return {
        each: repr(table.scan(each, pruning="off").to_arrow().to_pylist()) for each in CONDITIONS
    }


def long(value: int) -> bytes:
    return struct.pack("<q", value)


def double(value: float) -> bytes:
    return struct.pack("<d", value)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "missing": lambda path: damaged.set_statistics(path, 1, None),
    "without null counts": lambda path: damaged.set_statistics(
        path, 0, {MAX: long(9), MIN: long(1)}
    ),
    "without bounds": lambda path: damaged.set_statistics(path, 0, {NULLS: nulls(1)}),
    "one bound": lambda path: damaged.set_statistics(path, 0, {NULLS: nulls(1), MIN: long(1)}),
    "inverted": lambda path: damaged.set_statistics(
        path, 0, {NULLS: nulls(1), MAX: long(3), MIN: long(8)}
    ),
    "inverted text": lambda path: damaged.set_statistics(
        path, 1, {NULLS: nulls(1), MAX: b"b", MIN: b"zz"}
    ),
    "truncated text": lambda path: damaged.set_statistics(
        path, 1, {NULLS: nulls(1), MAX: "ê".encode(), MIN: b""}
    ),
    "truncated within a character": lambda path: damaged.set_statistics(
        path, 1, {NULLS: nulls(1), MAX: b"\xc4", MIN: b"a"}
    ),
    "short numbers": lambda path: damaged.set_statistics(
        path, 0, {NULLS: nulls(1), MAX: b"\x01", MIN: b""}
    ),
    "too many NULLs": lambda path: damaged.set_statistics(
        path, 0, {NULLS: nulls(6), MAX: long(3), MIN: long(2)}
    ),
    "negative NULLs": lambda path: damaged.set_statistics(
        path, 0, {NULLS: nulls(-1), MAX: long(9), MIN: long(1)}
    ),
    "NaN bounds": lambda path: damaged.set_statistics(
        path, 2, {NULLS: nulls(1), MAX: double(float("nan")), MIN: double(float("nan"))}
    ),
    "a positive zero": lambda path: damaged.set_statistics(
        path, 2, {NULLS: nulls(1), MAX: double(3.0), MIN: double(0.0)}
    ),
}


def old_text(path: Path) -> None:
    """The older fields, ordered by signed bytes, of a writer that nobody knows."""
    damaged.set_statistics(path, 1, {NULLS: nulls(1), OLD_MAX: b"zz", OLD_MIN: b"a"})
    damaged.without_orders(path)


def old_unsigned(path: Path) -> None:
    damaged.set_statistics(path, 3, {NULLS: nulls(1), OLD_MAX: long(3), OLD_MIN: long(1)})
    damaged.without_orders(path)


def new_text_without_orders(path: Path) -> None:
    damaged.set_statistics(path, 1, {NULLS: nulls(1), MAX: b"zz", MIN: b"a"})
    damaged.without_orders(path)


DAMAGES |= {
    "deprecated text bounds": old_text,
    "deprecated unsigned bounds": old_unsigned,
    "no declared orders": new_text_without_orders,
}


@pytest.mark.parametrize(("place", "damage"), [*enumerate(DAMAGES.values())], ids=DAMAGES)
def test_doubtful_statistics_are_unknown(
    place: int, damage: Callable[[Path], None], tmp_path: Path, expected: dict[str, str]
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(ROWS, path)
    damage(path)
    table = rs.open_parquet(path)
    for condition in some([*CONDITIONS], 2, place):
        assert repr(table.scan(condition).to_arrow().to_pylist()) == expected[condition], condition
        assert table.count(condition) == table.scan(condition, pruning="off").count()
        table.scan(condition, pruning="soft").to_arrow()  # UnsoundPruning


CLAIMS: dict[str, dict[int, Any] | None] = {
    "nothing": None,
    "bounds alone": {MIN: long(100), MAX: long(102)},
    "no bounds": {NULLS: nulls(0)},
    "one bound": {NULLS: nulls(0), MIN: long(100)},
    "inverted bounds": {NULLS: nulls(0), MIN: long(102), MAX: long(100)},
    "more NULLs than rows": {NULLS: nulls(8), MIN: long(100), MAX: long(102)},
    "NULLs below zero": {NULLS: nulls(-1), MIN: long(100), MAX: long(102)},
}


@pytest.mark.parametrize("claimed", CLAIMS.values(), ids=CLAIMS)
def test_a_file_knows_no_more_than_its_least_known_row_group(
    claimed: dict[int, Any] | None, tmp_path: Path
) -> None:
    # Sums and bounds of the other row groups alone would skip a file that has the rows.
    path = tmp_path / "a.parquet"
    rows = pa.table({"i": pa.array([1, 2, 3, 100, 101, 102, 4, None, 5], pa.int64())})
    pq.write_table(rows, path, row_group_size=3)
    damaged.set_statistics(path, 0, claimed, only=1)
    conditions: dict[str, list[int | None]] = {
        "i = 101": [101],
        "i > 50": [100, 101, 102],
        "i IS NULL": [None],
        "i IS NOT NULL AND i > 4": [100, 101, 102, 5],
        "NOT (i < 100)": [100, 101, 102],
        "i IS NOT NULL": [1, 2, 3, 100, 101, 102, 4, 5],
    }
    opened = rs.open_parquet(path)
    imported = rs.from_parquet(path, tmp_path / "table")
    for table in (opened, imported):
        for condition, expected in conditions.items():
            assert table.scan(condition).to_arrow()["i"].to_pylist() == expected, condition
            assert table.count(condition) == len(expected), condition
            table.scan(condition, pruning="soft").to_arrow()  # UnsoundPruning


def test_the_order_that_a_file_claims_is_never_used(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(ROWS, path, sorting_columns=[pq.SortingColumn(0)])
    assert rs.open_parquet(path).scan("i = 1").to_arrow()["s"].to_pylist() == ["é"]


def test_int96_has_no_bounds_and_far_years_do_not_wrap(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = pa.table({"ts": pa.array([0, 1, None, 2], pa.timestamp("us")), "n": [1, 2, 3, 4]})
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True, use_dictionary=False,
                   compression="none")  # fmt: skip
    old, new = (struct.pack("<qI", *each) for each in ((2_000, 2_440_588), (0, 5_373_484)))
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))  # the last day of the year 9999
    table = rs.open_parquet(path)
    assert table.schema.field("ts").type == pa.timestamp("us")
    assert table.scan("ts = timestamp '1970-01-01 00:00:00.000001'").to_arrow()[
        "n"
    ].to_pylist() == [2]
    assert table.scan("ts > timestamp '9999-01-01'").to_arrow()["n"].to_pylist() == [4]
    assert table.count("ts IS NULL") == 1


def test_bounds_of_nanoseconds_and_milliseconds_are_rounded_outward(tmp_path: Path) -> None:
    for unit, values in (("ns", [1_000, 5_000, -3_000]), ("ms", [1, 5, -3])):
        rows = pa.table({"ts": pa.array(values, pa.timestamp(unit)), "n": [1, 2, 3]})
        pq.write_table(rows, tmp_path / f"{unit}.parquet", version="2.6", row_group_size=1)
        table = rs.open_parquet(tmp_path / f"{unit}.parquet")
        scan = table.scan("ts < timestamp '1970-01-01'", pruning="soft")
        assert scan.to_arrow()["n"].to_pylist() == [3]
        scan = table.scan("ts < timestamp '1970-01-01'")
        scan.to_arrow()
        assert scan.metrics.row_groups_pruned == 2


def test_nanoseconds_that_no_microsecond_has_are_an_error(tmp_path: Path) -> None:
    rows = pa.table({"ts": pa.array([1_001], pa.timestamp("ns"))})
    pq.write_table(rows, tmp_path / "a.parquet", write_statistics=False)
    with pytest.raises(rs.errors.SchemaMismatch, match=r"a\.parquet.*'ts'.*without loss"):
        rs.open_parquet(tmp_path / "a.parquet").to_arrow()


def test_filters_of_other_writers_without_a_bit_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(ROWS, path, bloom_filter_options={"s": {"ndv": 5, "fpp": 0.01}})
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(1)
    stop = chunk.bloom_filter_offset + chunk.bloom_filter_length
    data[stop - 32 : stop] = bytes(32)  # a filter that has no value
    path.write_bytes(data)
    assert rs.open_parquet(path).count("s = 'é'") == 1


def test_marks_of_our_writer_are_not_believed_in_files_of_others(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS)
    (name,) = [each for each in table.files()["path"].to_pylist() if each.endswith(".parquet")]
    path = tmp_path / "copy.parquet"
    path.write_bytes((tmp_path / "t" / name).read_bytes())
    damaged.set_statistics(path, 0, {NULLS: nulls(1), MAX: long(3), MIN: long(8)})
    opened = rs.open_parquet(path)
    assert opened.scan("i = 5").to_arrow()["s"].to_pylist() == ["b"]


def test_true_bounds_skip_files_and_row_groups(tmp_path: Path) -> None:
    rows = pa.table({"i": range(100), "s": [f"k{i:03}" for i in range(100)]})
    for i in range(4):
        pq.write_table(rows.slice(25 * i, 25), tmp_path / f"{i}.parquet", row_group_size=5)
    for condition, count in (("i BETWEEN 31 AND 33", 3), ("s = 'k031'", 1)):
        scan = rs.open_parquet(tmp_path).scan(condition)
        assert scan.to_arrow().num_rows == count
        assert (scan.metrics.parts_pruned, scan.metrics.row_groups_pruned) == (3, 4)
