"""What a table is advised to do, and `maintain`, which does it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation
from rowsieve.maintenance.advice import AdvisedAction
from tests.small_tables import appended, keyed, kv, pairs


def test_healthy_table_needs_nothing() -> None:
    for table in (keyed(), keyed({"k": [1], "v": [1]}), appended({"k": [1], "v": [1]})):
        advice = table.maintenance_advice()
        assert advice.is_healthy
        assert advice.read_amplification == 1.0
        assert "nothing to do" in str(advice)


def test_advice_says_what_a_read_costs_and_why() -> None:
    table = keyed(*({"k": [1, 2], "v": [i, i]} for i in range(4)))
    table.delete("k = 2")
    advice = table.maintenance_advice()
    assert (advice.parts, advice.small_parts, advice.hidden_rows) == (5, 5, 1)
    assert advice.read_amplification == 5.0
    (one,) = advice.recommendations
    assert (one.action, one.parts) == (AdvisedAction.COMPACT, 5)
    assert one.size_bytes == advice.size_bytes
    assert "a read looks at 5.0 parts for each row; deletes hide up to 1 rows" in one.reason
    assert advice.as_dict()["recommendations"][0]["action"] == "compact"
    assert "compact" in str(advice)
    assert "compact" in advice._repr_html_()


def test_parts_without_statistics_are_named_unless_they_are_off() -> None:
    table = keyed({"k": [1], "v": [1]}, properties={"statistics": "off"})
    assert table.maintenance_advice().parts_without_statistics == 1
    assert table.maintenance_advice().is_healthy
    table.set_properties({"statistics": "on"})
    (one,) = table.maintenance_advice().recommendations
    assert (one.action, one.parts) == (AdvisedAction.ANALYZE, 1)


def test_maintain_compacts_and_gives_space_back(tmp_path: Path) -> None:
    table = rs.create_table(
        tmp_path / "t", pa.schema([("k", pa.int64()), ("v", pa.int64())]), ["k"]
    )
    for i in range(40):
        table.upsert(kv((1, i), (i, i)) if i > 1 else kv((i, i)))
    before = pairs(table)
    files = len(list((tmp_path / "t/data").iterdir()))
    done = table.maintain(retain_last=1, grace_s=0)
    assert done.compaction.parts_removed == 40
    assert done.removed.files["data"] == files
    assert done.advice.is_healthy
    assert pairs(table) == before
    assert len(list((tmp_path / "t/data").iterdir())) == 1
    version = table.refresh()
    again = table.maintain(retain_last=1, grace_s=0)
    assert not again.compaction.committed
    assert table.refresh() == version


def test_read_only_table_gives_advice_but_is_not_maintained() -> None:
    table = keyed({"k": [1], "v": [1]}, {"k": [2], "v": [1]}, {"k": [3], "v": [1]})
    old = rs.open_table(table.uri, version=1)
    assert old.maintenance_advice().parts == 1
    with pytest.raises(UnsupportedOperation):
        old.maintain()


def test_maintain_collects_missing_statistics_and_says_what_it_did(tmp_path: Path) -> None:
    table = rs.create_table(
        tmp_path / "t",
        pa.schema([("k", pa.int64()), ("v", pa.int64())]),
        ["k"],
        properties={"statistics": "off", "target_part_bytes": "1"},
    )
    table.upsert(kv((1, 7)))
    table.set_properties({"statistics": "on"})
    assert not table.maintenance_advice().is_healthy
    done = table.maintain()
    assert done.analyzed is not None
    assert (done.analyzed.operation, done.analyzed.parts_added) == ("analyze", 1)
    assert done.advice.is_healthy
    assert not done.compaction.committed
    assert done.after.files == done.before.files + 2  # the commit: its entry and its parts
    assert table.scan("v = 8").explain().parts_read == 0
    files = [path for path in (tmp_path / "t").rglob("*") if path.is_file()]
    assert (done.after.files, done.after.size_bytes) == (
        len(files),
        sum(path.stat().st_size for path in files),
    )
    assert table.maintain().analyzed is None


def test_statistics_that_are_off_are_not_collected() -> None:
    table = keyed({"k": [1], "v": [1]}, properties={"statistics": "off"})
    version = table.refresh()
    assert table.maintain().analyzed is None
    assert table.refresh() == version


def test_what_a_tiered_compaction_leaves_overlapping_gets_vectors() -> None:
    table = keyed(
        {"k": range(40_000), "v": [k * 7919 % 40_009 for k in range(40_000)]},
        {"k": range(0, 40_000, 7), "v": [0] * 5_715},
        properties={"compaction": "tiered"},
    )
    before = pairs(table)
    (one,) = table.maintenance_advice().recommendations
    assert (one.action, one.parts) == (AdvisedAction.BUILD_DELETION_VECTORS, 2)
    assert "compares the keys of 2 parts" in one.reason
    done = table.maintain()
    assert not done.compaction.committed
    assert done.stored is not None
    assert done.advice.is_healthy
    assert any(table.handle.pinned.parts.vectors())
    assert pairs(table) == before
    assert table.maintain().stored is None


def test_few_new_keys_are_looked_up_and_need_no_vectors() -> None:
    table = keyed(
        {"k": range(400), "v": [1] * 400},
        {"k": [7], "v": [2]},
        properties={"compaction": "tiered"},
    )
    advised = [each.action for each in table.maintenance_advice().recommendations]
    assert AdvisedAction.BUILD_DELETION_VECTORS not in advised
    assert table.maintain().stored is None


def test_distinct_counts_are_shown_and_renewed_where_they_were_asked_for(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    rows = pa.table({"id": range(100), "v": [n % 10 for n in range(100)]})
    table = catalog.create_table("db.t", rows, ["id"])
    assert table.detail()["distinct_counts"] == {}
    assert table.maintain().analyzed is None
    catalog.call("CALL system.analyze('db', 't', distinct_counts => TRUE)")
    table.refresh()
    found = table.detail()["distinct_counts"]
    assert (abs(found["id"] - 100) < 10, found["v"]) == (True, 10)
    assert table.maintenance_advice().is_healthy

    table.upsert(pa.table({"id": range(200, 300), "v": [-1] * 100}))
    assert table.detail()["distinct_counts"] == {"id": None, "v": None}
    advice = table.maintenance_advice()
    assert advice.parts_without_distinct_counts == 1
    (_, analyze) = advice.recommendations  # after compact: both parts are small
    assert (analyze.parts, analyze.action.value) == (1, "analyze")
    assert "distinct counts are unknown: 1 parts" in analyze.reason

    done = table.maintain()
    assert (done.analyzed, done.advice.is_healthy) == (None, True)  # compacting made them
    found = table.detail()["distinct_counts"]
    assert (abs(found["id"] - 200) < 20, found["v"]) == (True, 11)
    assert table.maintain().analyzed is None

    table.rename_column("v", "w")
    table.upsert(pa.table({"id": [500], "w": [77]}))
    done = table.maintain()
    assert (done.advice.is_healthy, table.detail()["distinct_counts"]["w"]) == (True, 12)


def test_parts_that_need_no_compaction_are_analyzed(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    big = {"target_part_bytes": "1"}  # no part is small
    table = catalog.create_table("db.t", pa.table({"id": [1], "v": [1]}), ["id"], properties=big)
    catalog.call("CALL system.analyze('db', 't', distinct_counts => TRUE)")
    table.upsert(pa.table({"id": [2], "v": [2]}))
    done = table.maintain()
    assert (done.compaction.committed, done.analyzed is not None) == (False, True)
    assert table.distinct_counts() == {"id": 2, "v": 2}


def test_parts_with_older_columns_are_not_counted_without_end(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    big = {"target_part_bytes": "1"}  # no part is small
    table = catalog.create_table("db.t", pa.table({"id": [1], "v": [1]}), ["id"], properties=big)
    catalog.call("CALL system.analyze('db', 't', distinct_counts => TRUE)")
    table.upsert(pa.table({"id": [2], "v": [2]}))
    table.add_column("x", "int64")
    advice = table.maintenance_advice()
    assert (advice.is_healthy, advice.parts_without_distinct_counts) == (True, 0)
    assert not table.maintain().compaction.committed
    assert table.detail()["distinct_counts"] == {"id": None, "v": None}
