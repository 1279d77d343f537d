"""What each picker rewrites, and what it leaves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rowsieve import Table, create_table
from rowsieve.compaction.pick import pick
from rowsieve.errors import InvalidInput
from rowsieve.storage.parts import part_file, part_writer
from tests.small_tables import fresh_uri, keyed, kv, pairs


def noise(count: int) -> list[int]:
    """Numbers that do not compress."""
    values: list[int] = np.random.default_rng(1).integers(10, 2**62, count).tolist()
    return values


def wide_table(picker: str, upserts: int) -> Table:
    """Twenty thousand rows, and upserts of one row in the middle."""
    table = keyed({"k": range(20_000), "v": noise(20_000)}, properties={"compaction": picker})
    for i in range(upserts):
        table.upsert(kv((5 + i, -1)))
    table.refresh()
    return table


def test_leveled_picker_rewrites_the_group_for_one_row() -> None:
    table = wide_table("leveled", 1)
    assert table.compact().parts_removed == 2
    assert table.maintenance_advice().read_amplification == 1.0


def test_tiered_picker_leaves_a_large_part_for_few_rows() -> None:
    table = wide_table("tiered", 3)
    assert not table.compact().committed
    assert table.maintenance_advice().is_healthy


def test_tiered_picker_merges_new_parts_with_one_another() -> None:
    table = wide_table("tiered", 5)
    large = table.handle.pinned.parts.part_ids[0]
    before = pairs(table)
    assert table.maintenance_advice().recommendations[0].parts == 5
    assert (commit := table.compact()).parts_removed == 5
    assert commit.parts_added == 1
    assert large in table.handle.pinned.parts.part_ids
    assert pairs(table) == before
    assert not table.compact().committed


def test_tiered_picker_rewrites_the_large_part_when_the_new_ones_have_grown() -> None:
    table = wide_table("tiered", 0)
    table.upsert(pa.table({"k": range(0, 20_000, 2), "v": noise(10_000)}, schema=table.schema))
    assert table.compact().parts_removed == 2
    assert table.count() == 20_000


def test_tiered_picker_does_not_merge_a_large_commit_with_tiny_ones() -> None:
    table = wide_table("tiered", 0)
    table.upsert(pa.table({"k": range(3_000), "v": noise(3_000)}, schema=table.schema))
    for i in range(5):
        table.upsert(kv((i, -1)))
    table.refresh()
    (only,) = pick(table.handle.pinned).slices
    rows = table.handle.pinned.parts.numbers("data.rows")
    assert [int(rows[part]) for part in only.parts] == [1] * 5


def test_unknown_picker_is_refused() -> None:
    with pytest.raises(InvalidInput, match="leveled or tiered"):
        keyed(properties={"compaction": "lazy"})


def test_small_files_that_were_full_are_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long values that compress well make small files, which no further row would fit into."""
    for module in (part_writer, part_file):
        monkeypatch.setattr(module, "ROW_GROUP_BYTES", 1_000_000)
    rows = pa.table({"id": range(40), "s": ["a" * 100_000] * 40})
    table = create_table(fresh_uri(), rows.slice(0, 20), key=["id"])
    table.upsert(rows.slice(20))
    assert table.compact().parts_added < 8  # what the writes left over is joined once
    parts = table.files()["part"].to_pylist()
    assert not table.compact().committed
    assert not table.maintain().compaction.committed
    assert table.files()["part"].to_pylist() == parts
    assert table.to_arrow().num_rows == 40
