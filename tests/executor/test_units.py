"""Joined row groups: which ones are joined, and that they return the rows of each alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.executor import decode_row_group, live_rows, part_sources, units
from rowsieve.parquet.mini_file import GroupPages
from rowsieve.parquet.page_reader import PageReader
from rowsieve.parquet.pages import Pages
from rowsieve.planner import candidates, split, splits
from rowsieve.storage.parts import part_file, part_writer
from tests.profiles import examples

GROUP_ROWS, PAGE_ROWS, ROWS = 8, 2, 200


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=12))
@examples(100)
def test_units_are_neighbours_of_one_form_in_order(given: list[tuple[int, str]]) -> None:
    columns: Any = None
    reader: Any = SimpleNamespace(all_columns=columns)
    groups: list[Any] = [
        SimpleNamespace(page_rows=rows, form=lambda _, form=form: form) for rows, form in given
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(units, "MAX_ROWS", 4)
        found = list(units.joined(units.Unit(reader, (each,)) for each in groups))
    assert [group for unit in found for group in unit.groups] == groups
    for unit in found:
        if len(unit.groups) > 1:
            assert all(group.page_rows for group in unit.groups)
            assert sum(group.page_rows for group in unit.groups) <= 4
            assert len({group.form(columns) for group in unit.groups}) == 1
    for one, two in pairwise(found):
        rows = [sum(group.page_rows for group in unit.groups) for unit in (one, two)]
        same = one.groups[0].form(columns) == two.groups[0].form(columns)
        assert not (all(rows) and same and rows[0] + two.groups[0].page_rows <= 4)


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
    for name in ("IN_CACHE_UP_TO_ROWS", "IN_CACHE_UP_TO_VALUES"):
        monkeypatch.setattr(decode_row_group, name, 0)
    monkeypatch.setattr(decode_row_group, "PAGE_COLUMNS_AT_ONCE", 2)
    asked: list[list[str]] = []
    fetch = PageReader.fetch

    def noted(
        reader: PageReader, row_group: int, names: list[str], pages: Pages
    ) -> tuple[GroupPages, int]:
        asked.append(names)
        return fetch(reader, row_group, names, pages)

    monkeypatch.setattr(PageReader, "fetch", noted)
    found = table.scan("k BETWEEN 6 AND 11").to_arrow().to_pylist()
    assert asked == [["k", "place"]] * 2 + [["tags"]] * 2  # of two row groups
    assert found == table.scan().to_arrow().to_pylist()[6:12]


def test_columns_read_later_have_the_rows_of_their_row_group(table: rs.Table) -> None:
    """Three pages of each row group are wanted, so that the other columns are decoded later."""
    keys = [1, 3, 5, 8, 10, 11, 13]
    found = table.scan(f"k IN ({', '.join(map(str, keys))})")
    every = table.scan().to_arrow().to_pylist()
    assert found.to_arrow().to_pylist() == [every[key] for key in keys]
    assert found.metrics.rows_decoded == 6 * PAGE_ROWS


def test_a_limit_reads_one_row_group_after_another(table: rs.Table) -> None:
    found = table.scan("k IN (3, 20, 41, 90)", limit=1)
    assert found.to_arrow().num_rows == 1
    assert found.metrics.row_groups_read == 1
