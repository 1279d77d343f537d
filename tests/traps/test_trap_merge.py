"""The traps of merging versions: T1 to T6, each by its smallest story."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionContext

from rowsieve import Table
from tests.small_tables import KV, appended, apply, keyed, kv, pairs


def through_datafusion(table: Table, where: str) -> list[tuple[object, object]]:
    context = SessionContext()
    table.refresh()
    context.register_table("t", table)
    rows = context.sql(f"SELECT k, v FROM t WHERE {where}").to_arrow_table().to_pylist()
    return sorted((row["k"], row["v"]) for row in rows)


@pytest.fixture
def changed() -> Table:
    """Key 1 went from v=1 to v=2, which only the newer part says."""
    return keyed({"k": [1], "v": [1]}, {"k": [1], "v": [2]})


def test_t1_a_stale_version_never_comes_back(changed: Table) -> None:
    assert pairs(changed, "v = 1") == []
    assert pairs(changed, "v = 2") == [(1, 2)]
    assert through_datafusion(changed, "v = 1") == []


def test_t1_a_stale_version_is_not_deleted_or_updated(changed: Table) -> None:
    assert changed.delete("v = 1").rows_deleted == 0
    assert changed.update({"v": "7"}, where="v = 1").rows_written == 0
    assert pairs(changed) == [(1, 2)]


def test_t1_a_group_goes_only_when_every_source_in_it_is_refuted(changed: Table) -> None:
    scan = changed.scan("v = 1")
    assert scan.to_arrow().num_rows == 0
    assert scan.metrics.parts_pruned == 0
    scan = changed.scan("v = 3")
    assert scan.to_arrow().num_rows == 0
    assert scan.metrics.parts_pruned == 2


def test_t1_the_key_stage_knows_key_columns_only(changed: Table) -> None:
    """A condition on the key runs the key stage, which must not see that the newer v refutes it."""
    assert pairs(changed, "k = 1 AND v = 1") == []
    assert pairs(changed, "k BETWEEN 0 AND 9 AND v < 2") == []
    assert through_datafusion(changed, "k = 1 AND v = 1") == []
    assert changed.delete("k = 1 AND v = 1").rows_deleted == 0


def test_t1_null_in_the_stale_version() -> None:
    table = keyed({"k": [1], "v": [None]}, {"k": [1], "v": [2]})
    assert pairs(table, "v IS NULL") == []
    assert through_datafusion(table, "v IS NULL") == []


def test_t2_tombstones_stay_when_their_part_is_refuted() -> None:
    table = keyed({"k": [1, 3], "v": [5, 5]})
    apply(table, ("d", 1, None), ("u", 2, 1))  # one part: row 2 with v=1, tombstone 1
    assert pairs(table, "v = 5") == [(3, 5)]
    assert through_datafusion(table, "v = 5") == [(3, 5)]


def test_t2_tombstones_stay_when_a_part_holds_nothing_else() -> None:
    table = keyed({"k": [1, 3], "v": [5, 5]})
    table.delete(keys=pa.table({"k": [1]}))
    assert pairs(table, "v = 5") == [(3, 5)]
    assert pairs(table) == [(3, 5)]


def test_t3_versions_above_the_snapshot_hide_nothing() -> None:
    table = keyed({"k": [1, 2], "v": [1, 1]}, {"k": [1], "v": [2]})
    table.delete(keys=pa.table({"k": [2]}))
    assert pairs(table, version=1) == [(1, 1), (2, 1)]
    assert pairs(table, version=2) == [(1, 2), (2, 1)]
    assert pairs(table, "v = 1", version=2) == [(2, 1)]
    assert pairs(table) == [(1, 2)]


def test_t4_key_statistics_cover_tombstones() -> None:
    table = keyed({"k": [1, 50, 100], "v": [1, 1, 1]})
    apply(table, ("u", 60, 1), ("d", 1, None), ("d", 100, None))  # rows 60..60, keys 1..100
    for key in (1, 100):
        assert pairs(table, f"k = {key}") == []
        assert through_datafusion(table, f"k = {key}") == []
    assert pairs(table, "k < 50") == []
    assert pairs(table, "k >= 50") == [(50, 1), (60, 1)]


@pytest.mark.parametrize("statistics", ["on", "off"])
@pytest.mark.parametrize(("row", "gone", "left"), [(60, 1, 50), (-60, 50, 1)])
def test_t4_key_bounds_cover_tombstones(row: int, gone: int, left: int, statistics: str) -> None:
    """The newer part's row lies outside the older part's keys, its tombstone among them."""
    table = keyed({"k": [1, 50], "v": [1, 1]}, properties={"statistics": statistics})
    apply(table, ("u", row, 2), ("d", gone, None))
    assert pairs(table) == sorted([(row, 2), (left, 1)])
    assert pairs(table, f"k = {gone}") == []
    assert pairs(table, "v = 1") == [(left, 1)]
    assert through_datafusion(table, "v = 1") == [(left, 1)]


LONG = "x" * 150  # longer than any bound kept


@pytest.mark.parametrize(
    ("type_", "keys"),
    [
        (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
        (pa.int8(), [-128, -1, 0, 127]),
        (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
        (pa.float64(), [float("-inf"), -1.5, 0.0, 1e-300, 2.0, float("inf"), float("nan")]),
        (pa.string(), ["", "B", "a", "ab", LONG + "a", LONG + "b", "é", "\uffff", "\U0010ffff"]),
        (pa.binary(), [b"", b"\x00", b"\x7f", b"\xff", b"\xff\xff", b"\xff" * 150]),
    ],
    ids=["int64", "int8", "uint64", "float64", "string", "binary"],
)
def test_t5_keys_are_compared_decoded(type_: pa.DataType, keys: list[object]) -> None:
    schema = pa.schema([pa.field("k", type_, nullable=False), pa.field("v", pa.int64())])
    table = keyed(schema=schema)
    for version, k in enumerate([keys, keys[1:-1], keys[::2], *[[key] for key in keys]]):
        table.upsert(pa.table({"k": k, "v": [version] * len(k)}, schema=schema))
    last = table.version - 1
    assert table.scan("v < 3").count() == 0  # each key has been written alone, last
    found = table.scan(order_by_key=True).to_arrow()
    assert [repr(key) for key in found["k"].to_pylist()] == [repr(key) for key in keys]
    assert found["v"].to_pylist() == list(range(last - len(keys) + 1, last + 1))


def test_t5_an_overlap_group_is_never_split() -> None:
    count = 200_000  # four row groups each
    base = pa.table({"k": range(count), "v": [1] * count}, schema=KV)
    table = keyed(properties={"target_part_bytes": "1000"})
    table.upsert(base)
    table.upsert(pa.table({"k": range(0, count, 2), "v": [2] * (count // 2)}, schema=KV))
    context = SessionContext()
    context.register_table("t", table)
    rows = context.sql("SELECT v, count(*) AS n FROM t GROUP BY v ORDER BY v").to_arrow_table()
    assert rows.to_pylist() == [{"v": 1, "n": count // 2}, {"v": 2, "n": count // 2}]


def test_t6_the_limit_comes_after_the_merge_and_the_filter() -> None:
    old = [(k, 1) for k in range(20)]
    new = [(k, 2) for k in range(19)]
    table = keyed()
    table.upsert(kv(*old))
    table.upsert(kv(*new))
    assert table.scan("v = 1", limit=1).to_arrow().to_pylist() == [{"k": 19, "v": 1}]
    assert table.scan("v = 1", limit=1).count() == 1
    context = SessionContext()
    context.register_table("t", table)
    assert context.sql("SELECT k FROM t WHERE v = 1 LIMIT 1").to_arrow_table()["k"][0].as_py() == 19


def test_t6_the_limit_comes_after_deletion_vectors() -> None:
    table = appended({"k": list(range(10)), "v": [1] * 9 + [2]})
    table.delete("k < 9")
    assert table.scan(limit=3).to_arrow().to_pylist() == [{"k": 9, "v": 2}]
    assert table.scan(limit=3).count() == 1
