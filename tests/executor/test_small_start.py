"""A small start cuts the first row group after its first wanted page, and loses no row."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.executor.decode_row_group import RowGroup
from rowsieve.executor.execute import Execution
from rowsieve.executor.units import Unit, starting_small
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import open_store
from rowsieve.predicate.rowset import RowSet
from tests.small_pages import small_pages
from tests.small_tables import fresh_uri

READER: Any = None


def group(rows: int, page_rows: int, wanted: RowSet | None) -> RowGroup:
    file: Any = SimpleNamespace(page_rows=page_rows)
    return RowGroup("part", file, 0, 0, rows, wanted, ScanMetrics())


def ids(units: list[Unit]) -> list[int]:
    found: list[int] = []
    for each in (group for unit in units for group in unit.groups):
        found += each.wanted if each.wanted is not None else range(each.row_count)
    return found


@pytest.mark.parametrize("page_rows", [0, 1, 4, 16])
def test_the_rows_stay_and_the_first_batch_is_one_page(page_rows: int) -> None:
    for seed in range(60):
        chance = random.Random(seed)
        rows = chance.randint(1, 40)
        some = sorted(chance.sample(range(rows), chance.randint(1, rows)))
        wanted = None if seed % 3 == 0 else RowSet.from_ids(np.array(some), rows)
        groups = [group(rows, page_rows, wanted), group(9, page_rows, None)]
        given = [Unit(READER, (each,)) for each in groups]
        if seed % 2:
            given = [Unit(READER, tuple(groups))]
        found = list(starting_small(iter(given)))
        assert ids(found) == ids(given)
        assert found[-1].groups[-1] is groups[-1]
        first = ids(found[:1])
        if page_rows and len(found) > len(given):
            assert first[0] // page_rows == first[-1] // page_rows
        assert len(found) == len(given) + (
            page_rows > 0 and len({i // page_rows for i in ids([Unit(READER, (groups[0],))])}) > 1
        )


def test_nothing_stays_nothing() -> None:
    assert list(starting_small(iter([]))) == []


@pytest.mark.parametrize("order_by_key", [False, True])
def test_only_the_first_batch_of_an_execution_is_small(order_by_key: bool) -> None:
    with small_pages(4, 16):
        table = rs.create_table(fresh_uri(), pa.table({"k": range(32)}), key=["k"])
        table.upsert(pa.table({"k": range(32, 64)}))
        plan = table.scan(order_by_key=order_by_key).plan()
        execution = Execution(plan, open_store(table.uri), threads=1, small_start=True)
        sizes = [batch.num_rows for batch in execution.read()]
    assert sizes == [4, 12, 16, 16, 16]
