"""Footers whose places belong to other chunks: neither bounds nor filters of these hide a row."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.parquet.thrift import I64, encoded_value
from rowsieve.providers.datafusion import SessionContext
from tests.foreign import damaged

ROWS = 60
OFFSET_INDEX, COLUMN_INDEX = (4, 5), (6, 7)  # of a column chunk
DATA, BLOOM = (9,), (14, 15)  # of a column's metadata
Place = tuple[int, int]  # row group and leaf


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two columns of integers, each in two row groups with pages, indexes and Bloom filters."""
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"a": pa.array(range(ROWS)), "b": pa.array(range(1000, 1000 + ROWS))}),
        path,
        row_group_size=ROWS // 2,
        use_dictionary=False,
        compression="none",
        write_page_index=True,
        data_page_size=1,
        write_batch_size=5,
        bloom_filter_options={name: {"ndv": 30, "fpp": 0.01} for name in "ab"},
    )
    return path


def moved(
    path: Path, numbers: tuple[int, ...], of: Callable[[Place], Place], *, of_metadata: bool = False
) -> None:
    """Give each chunk these fields of another one."""
    edit = damaged.edit_metadata if of_metadata else damaged.edit_chunks
    known: dict[Place, damaged.Fields] = {}
    edit(
        path,
        lambda group, leaf, fields: known.update(
            {(group, leaf): {number: fields[number] for number in numbers}}
        ),
    )
    edit(path, lambda group, leaf, fields: fields.update(known[of((group, leaf))]))


def other_column(place: Place) -> Place:
    return place[0], 1 - place[1]


def other_group(place: Place) -> Place:
    return 1 - place[0], place[1]


def first_group(place: Place) -> Place:
    return 0, place[1]


def last_group(place: Place) -> Place:
    return 1, place[1]


def check(path: Path) -> None:
    """Conditions keep what they keep of the decoded rows, in every reader."""
    rows = rs.open_parquet(path).to_arrow()
    judged = rows.to_pylist()
    for table in (rs.open_parquet(path), rs.from_parquet(path, path.parent / "table")):
        context = SessionContext()
        context.register_table("t", table)
        for name, value in (("a", 0), ("a", 30), ("b", 1029), ("b", 1031)):
            expected = sum(row[name] == value for row in judged)
            condition = f"{name} = {value}"
            assert table.count(condition) == expected, condition
            assert table.scan(condition).to_arrow().num_rows == expected, condition
            query = f"SELECT * FROM t WHERE {condition}"
            assert len(context.sql(query).to_arrow_table()) == expected, condition


@pytest.mark.parametrize("of", [other_column, other_group, first_group])
@pytest.mark.parametrize(
    "numbers", [COLUMN_INDEX, OFFSET_INDEX, OFFSET_INDEX + COLUMN_INDEX], ids=str
)
def test_an_index_of_another_chunk_hides_no_row(
    numbers: tuple[int, ...], of: Callable[[Place], Place], path: Path
) -> None:
    # invariant 45
    for leaf in (0, 1):
        damaged.set_statistics(path, leaf, None)  # which would contradict it
    moved(path, numbers, of)
    check(path)


@pytest.mark.parametrize("of", [other_column, other_group, first_group])
def test_a_bloom_filter_of_another_chunk_hides_no_row(
    of: Callable[[Place], Place], path: Path
) -> None:
    for leaf in (0, 1):
        damaged.set_statistics(path, leaf, None)
    moved(path, BLOOM, of, of_metadata=True)
    check(path)


def without_index(_: int, __: int, chunk: damaged.Fields) -> None:
    for number in OFFSET_INDEX + COLUMN_INDEX:
        del chunk[number]


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("of", [first_group, last_group])
def test_the_bounds_of_chunks_that_share_bytes_hide_no_row(
    of: Callable[[Place], Place], with_index: bool, path: Path
) -> None:
    if not with_index:
        damaged.edit_chunks(path, without_index)
    moved(path, DATA, of, of_metadata=True)
    check(path)


@pytest.mark.parametrize("number", [9, 11], ids=["first page", "dictionary"])
@pytest.mark.parametrize(("group", "leaf"), [(0, 0), (0, 1), (1, 0)])
@pytest.mark.parametrize("into", ["dictionary", "first page"])
def test_a_chunk_that_begins_in_another_chunk_is_refused(
    number: int, group: int, leaf: int, into: str, tmp_path: Path
) -> None:
    """A decoder would read the other chunk's values without an error."""
    path = tmp_path / "a.parquet"
    rows = pa.table({"a": [1, 2, 1, 2] * 10, "b": [5, 6, 5, 6] * 10, "c": [8, 9, 8, 9] * 10})
    pq.write_table(rows, path, row_group_size=20, compression="none")
    places: list[int] = []
    of_other = 11 if into == "dictionary" else 9

    def note(place: int, column: int, metadata: damaged.Fields) -> None:
        if (place, column) != (group, leaf):
            places.append(damaged.read_number(metadata[of_other][1]))

    def change(offset: int) -> None:
        def of_chunk(place: int, column: int, metadata: damaged.Fields) -> None:
            if (place, column) == (group, leaf):
                metadata[number] = encoded_value(I64(offset))

        damaged.edit_metadata(path, of_chunk)

    damaged.edit_metadata(path, note)
    whole = path.read_bytes()
    for offset in places:
        change(offset)
        with contextlib.suppress(rs.errors.CorruptData):
            assert rs.open_parquet(path).to_arrow().equals(rows), offset
        path.write_bytes(whole)


def test_a_length_beyond_the_next_chunk_loses_no_row(path: Path) -> None:
    """A decoder stops after the last value of a chunk."""

    def longer(_: int, __: int, metadata: damaged.Fields) -> None:
        metadata[7] = encoded_value(I64(damaged.read_number(metadata[7][1]) + 100))

    damaged.edit_metadata(path, longer)
    assert rs.open_parquet(path).to_arrow()["b"].to_pylist() == list(range(1000, 1000 + ROWS))
    check(path)
