"""The visible rows of a part are those of all reads of it together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.executor.execute import Execution
from rowsieve.executor.visible_by_part import visible_by_part
from rowsieve.planner.plan_scan import plan_scan


@pytest.mark.parametrize("split_bytes", [1, 2**30])
@pytest.mark.parametrize("key", [["id"], None])
def test_rows_of_all_splits_are_joined(
    tmp_path: Path, key: list[str] | None, split_bytes: int
) -> None:
    ids = np.arange(140_000)
    table = rs.create_table(tmp_path, pa.table({"id": ids}), key=key)
    table.delete("id IN (3, 70000, 70001, 139999)")
    snapshot = table.handle.pinned
    plan = plan_scan(snapshot, table.uri, now_us=0, split_bytes=split_bytes, in_process=False)
    assert (len(plan.splits) > 1) == (split_bytes == 1)
    ((_, rows),) = visible_by_part(plan, table.handle.store)
    assert rows is not None
    assert rows.complement().to_ids().tolist() == [3, 70_000, 70_001, 139_999]


def test_parts_that_nothing_hides_are_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rs.create_table(tmp_path, pa.table({"id": range(10)}), key=["id"])
    for start in (10, 20, 30):
        table.upsert(pa.table({"id": range(start, start + 10)}))
    table.upsert(pa.table({"id": [33]}))
    plan = plan_scan(table.handle.pinned, table.uri, now_us=0)
    fetched: list[int] = []
    monkeypatch.setattr(type(table.handle.store), "overlaps", True)  # as on a network
    monkeypatch.setattr(
        Execution, "_expect", lambda _, piece, **__: fetched.append(len(piece.parts))
    )
    rows = [rows for _, rows in visible_by_part(plan, table.handle.store)]
    assert sum(each is not None for each in rows) == 1
    assert fetched
    assert min(fetched) > 1
