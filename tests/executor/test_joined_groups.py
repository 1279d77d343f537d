"""Joined row groups: which ones are joined, and that they return the rows of each alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.executor import decode_row_group, live_rows, part_sources
from rowsieve.executor.joined_groups import FEW, units
from rowsieve.parquet.page_reader import PageReader
from rowsieve.parquet.pages import Pages
from rowsieve.planner import candidates, split, splits
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.parts import part_file, part_writer
from tests.profiles import examples

GROUP_ROWS, PAGE_ROWS, ROWS = 8, 2, 200


@given(st.sets(st.integers(0, 61)), st.integers(0, 30), st.sampled_from([0, 1, 2, 3, 4]))
@examples(200)
def test_units_hold_the_row_groups_with_a_wanted_row_in_order(
    wanted: set[int], most_rows: int, page_rows: int
) -> None:
    ids = np.array(sorted(wanted), dtype=np.int64)
    rows = RowSet.from_ids(ids, 62)
    if rows.is_empty:
        return
    found = list(units(rows, GROUP_ROWS, page_rows, most_rows=most_rows))
    held = [set(range(first * GROUP_ROWS, stop * GROUP_ROWS)) & wanted for first, stop in found]
    assert all(held)
    assert set().union(*held) == wanted
    assert all(one[1] <= two[0] for one, two in pairwise(found))
    for (first, stop), own in zip(found, held, strict=True):
        if stop - first == 1:
            continue
        assert page_rows
        assert GROUP_ROWS % page_rows == 0
        pages = {row // page_rows for row in own}
        assert len(pages) * page_rows <= most_rows
        for group in {row // GROUP_ROWS for row in own}:
            count = min(62 - group * GROUP_ROWS, GROUP_ROWS)
            of_group = [page for page in pages if page * page_rows // GROUP_ROWS == group]
            assert len(of_group) * page_rows <= FEW * count


@pytest.fixture(scope="module")
def table() -> Iterator[rs.Table]:
    """25 row groups of 4 pages; a text has its own dictionary in each row group."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_file, "PAGE_ROWS", PAGE_ROWS)
        patch.setattr(part_file, "_DICTIONARY_RATIO", 0.9)
        for module in (part_file, part_writer, part_sources, live_rows, candidates, split, splits):
            patch.setattr(module, "ROW_GROUP_ROWS", GROUP_ROWS)
        numbers = range(ROWS)
        rows = {
            "k": pa.array(numbers, pa.int64()),
            "place": [None if i % 5 == 0 else f"place {i // 4}" for i in numbers],
            "tags": [[f"t{j}" for j in range(i % 3)] for i in numbers],
        }
        yield rs.create_table("memory:///joined/groups", pa.table(rows), key=["k"])


@pytest.mark.parametrize("order_by_key", [False, True])
@given(st.sets(st.integers(-3, ROWS + 3), min_size=1, max_size=20))
@examples(30)
def test_few_keys_find_the_rows_that_a_whole_read_has(
    table: rs.Table, order_by_key: bool, keys: set[int]
) -> None:
    listed = ", ".join(map(str, sorted(keys)))
    every = table.scan().to_arrow()
    wanted = [row for row in every.to_pylist() if row["k"] in keys]
    found = table.scan(f"k IN ({listed})", order_by_key=order_by_key)
    assert found.to_arrow().to_pylist() == wanted
    assert table.scan(f"k IN ({listed})").count() == len(wanted)
    asked = [k for k in sorted(keys) if 0 <= k < ROWS]
    assert found.metrics.row_groups_read == len({k // GROUP_ROWS for k in asked})


def test_pages_of_several_row_groups_are_one_batch(table: rs.Table) -> None:
    found = table.scan("k IN (3, 20, 41, 90)")
    batches = list(found.to_batches())
    assert [batch.num_rows for batch in batches] == [4]
    assert found.metrics.row_groups_read == 4
    assert found.metrics.rows_decoded == 4 * PAGE_ROWS
    alone = 0
    for key in (3, 20, 41, 90):
        one = table.scan(f"k = {key}")
        one.to_arrow()
        alone += one.metrics.bytes_read
    assert found.metrics.bytes_read == alone


def test_a_short_range_over_two_row_groups_is_one_batch(table: rs.Table) -> None:
    found = table.scan("k BETWEEN 5 AND 10")
    assert [batch.num_rows for batch in found.to_batches()] == [6]
    assert found.metrics.row_groups_read == 2
    assert found.metrics.rows_decoded == 4 * PAGE_ROWS
    assert found.to_arrow().to_pylist() == table.scan().to_arrow().to_pylist()[5:11]


def test_a_few_columns_of_many_pages_are_decoded_per_call(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FEW_ROWS", "FEW_VALUES"):
        monkeypatch.setattr(decode_row_group, name, 0)
    monkeypatch.setattr(decode_row_group, "PAGE_COLUMNS_AT_ONCE", 2)
    asked: list[list[str]] = []
    read = PageReader.read

    def noted(
        reader: PageReader, row_group: int, names: list[str], pages: Pages
    ) -> tuple[pa.Table, int]:
        asked.append(names)
        return read(reader, row_group, names, pages)

    monkeypatch.setattr(PageReader, "read", noted)
    found = table.scan("k BETWEEN 6 AND 11").to_arrow().to_pylist()
    assert asked == [["k", "place"], ["tags"]]
    assert found == table.scan().to_arrow().to_pylist()[6:12]


def test_a_limit_reads_one_row_group_after_another(table: rs.Table) -> None:
    found = table.scan("k IN (3, 20, 41, 90)", limit=1)
    assert found.to_arrow().num_rows == 1
    assert found.metrics.row_groups_read == 1
