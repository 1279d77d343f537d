"""A small start cuts the first row group after its first wanted page, and loses no row."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rowsieve.executor.decode_row_group import RowGroup
from rowsieve.executor.small_start import with_small_start
from rowsieve.metrics import ScanMetrics
from rowsieve.predicate.rowset import RowSet


def group(rows: int, page_rows: int, wanted: RowSet | None) -> RowGroup:
    file: Any = SimpleNamespace(page_rows=page_rows)
    return RowGroup("part", file, 0, 0, rows, wanted, ScanMetrics())


def ids(groups: list[RowGroup]) -> list[int]:
    found: list[int] = []
    for each in groups:
        found += each.wanted if each.wanted is not None else range(each.row_count)
    return found


@pytest.mark.parametrize("page_rows", [0, 1, 4, 16])
def test_the_rows_stay_and_the_first_batch_is_one_page(page_rows: int) -> None:
    for seed in range(60):
        chance = random.Random(seed)
        rows = chance.randint(1, 40)
        some = sorted(chance.sample(range(rows), chance.randint(1, rows)))
        wanted = None if seed % 3 == 0 else RowSet.from_ids(np.array(some), rows)
        given = [group(rows, page_rows, wanted), group(9, page_rows, None)]
        found = list(with_small_start(iter(given)))
        assert ids(found) == ids(given)
        assert found[-1] is given[-1]
        first = ids(found[:1])
        if page_rows:
            assert first[0] // page_rows == first[-1] // page_rows
        assert all(each.wanted is None or len(each.wanted) for each in found)


def test_nothing_stays_nothing() -> None:
    assert list(with_small_start(iter([]))) == []
