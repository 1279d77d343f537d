"""The last 30 days cost the same after a month as after ten years."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.metrics import ScanMetrics
from tests.random_tables import tiny_row_groups
from tests.small_tables import fresh_uri

NOW = datetime.now(UTC)
MONTH = timedelta(days=30)
COUNT = 64  # rows a month
RECENT = "at > now() - interval '30 days'"


@pytest.fixture(autouse=True, scope="module")
def _tiny_row_groups() -> object:
    yield from tiny_row_groups(16)


def events(ago: float) -> pa.Table:
    start = int((NOW - ago * MONTH).timestamp() * 1e6)
    step = MONTH // timedelta(microseconds=COUNT)
    at = start + np.arange(COUNT, dtype=np.int64) * step
    return pa.table({"at": pa.array(at, pa.timestamp("us", "UTC")), "value": np.arange(COUNT) / 7})


def history(months: int, shift: float = 0.0) -> Table:
    """A commit a month; by `shift` of a month the last one reaches into the future."""
    table = rs.create_table(fresh_uri(), events(months - shift), key=["at"])
    for ago in range(months - 1, 0, -1):
        table.upsert(events(ago - shift))
    return rs.open_table(table.uri)


def read(table: Table) -> ScanMetrics:
    scan = table.scan(RECENT)
    found = scan.to_arrow()["at"].to_pylist()
    since = NOW - MONTH
    assert len(found) >= COUNT - 1
    assert min(found) >= since
    return scan.metrics


def test_a_longer_history_costs_no_byte_more() -> None:
    costs = {months: read(history(months)) for months in (1, 12, 120)}
    assert [costs[months].parts_considered for months in costs] == [1, 12, 120]
    assert {cost.parts_read for cost in costs.values()} == {1}
    assert {cost.bytes_read for cost in costs.values()} == {costs[1].bytes_read}
    assert {cost.row_groups_read for cost in costs.values()} == {costs[1].row_groups_read}


def test_months_that_begin_amid_the_30_days_cost_a_row_group_more_at_most() -> None:
    costs = [read(history(months, shift=0.4)) for months in (2, 12, 120)]
    groups = [cost.row_groups_read for cost in costs]
    assert max(groups) - min(groups) <= 1
    largest = max(cost.bytes_read // cost.row_groups_read for cost in costs)
    sizes = [cost.bytes_read for cost in costs]
    assert max(sizes) - min(sizes) <= largest
    assert {cost.parts_read for cost in costs} == {2}


def test_whoever_depends_on_it_is_told_beforehand() -> None:
    table = history(3)
    assert table.require_pruning(RECENT).parts_read == 1
    with pytest.raises(rs.errors.UnprunablePredicate):
        table.require_pruning("extract(minute FROM at) <> 3")
