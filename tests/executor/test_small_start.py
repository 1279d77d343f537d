"""A small start cuts the first row group after its first wanted page, and loses no row."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rowsieve.executor.decode_row_group import RowGroup
from rowsieve.executor.units import Unit, starting_small
from rowsieve.metrics import ScanMetrics
from rowsieve.predicate.rowset import RowSet

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
