"""Explanations word by word (golden files), and the same facts as counters and plans have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Scan, Table
from rowsieve.executor.part_sources import PartSource, candidates_of
from rowsieve.planner.explain import explain
from rowsieve.planner.explanation import MAX_LINES
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from tests.random_tables import tiny_row_groups
from tests.small_tables import appended, keyed, kv

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def _tiny_row_groups() -> Iterator[None]:
    yield from tiny_row_groups(4)


def merged() -> Table:
    """Two parts that share keys and a delete, one part that stands alone, one that goes by key."""
    table = keyed({"k": [*range(12)], "v": [*range(12)]}, {"k": [3, 4, 20], "v": [50, 60, 70]})
    table.delete(keys=pa.table({"k": [5]}))
    table.upsert(kv((30, 1), (31, 2), (32, 3)))
    table.upsert(kv((100, 1), (101, None)))
    return table


def with_text() -> Table:
    """Every third text, in several row groups, with a bloom filter on the key."""
    schema = pa.schema([pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int64())])
    data: dict[str, list[Any]] = {"k": [f"k{i:03d}" for i in range(0, 60, 3)], "v": [1] * 20}
    return keyed(data, schema=schema)


CASES: dict[str, Callable[[], Scan]] = {
    "everything": lambda: merged().scan(),
    "by_key": lambda: merged().scan("k < 25"),
    "by_statistics": lambda: merged().scan("v > 2 AND k < 90"),
    "nothing_matches": lambda: merged().scan("v = 1000"),
    "all_rows_match": lambda: appended({"k": [1], "v": [1]}, {"k": [2], "v": [9]}).scan("v > 5"),
    "limit": lambda: merged().scan("k >= 30", limit=2),
    "pruning_off": lambda: merged().scan("k < 25", pruning="off"),
    "computed": lambda: merged().scan("v * 2 = 100 AND v % 7 = 1"),
}
WITH_ROW_GROUPS: dict[str, Callable[[], Scan]] = {
    "row_groups": lambda: merged().scan("v > 9 AND k < 25"),
    "row_groups_by_bloom": lambda: with_text().scan("k = 'k007'"),
}


@pytest.mark.parametrize("name", [*CASES, *WITH_ROW_GROUPS])
def test_an_explanation_reads(name: str) -> None:
    if name in CASES:
        found = str(CASES[name]().explain())
    else:
        found = str(WITH_ROW_GROUPS[name]().explain(row_groups=True))
    assert masked(found) == (GOLDEN / f"{name}.txt").read_text().rstrip("\n")


def masked(text: str) -> str:
    """The text without what differs by run or by version of a writer: names, ids and bytes."""
    text = re.sub(r"memory:///\w+", "memory:///...", text)
    text = re.sub(r"part [0-9a-f]{8}\b", "part ...", text)
    text = re.sub(r"[\d,]+ of [\d,]+ bytes", "... of ... bytes", text)
    text = re.sub(r"[\d,]+ bytes", "... bytes", text)
    return re.sub(r"(?m)^  bytes .*$", "  bytes ...", text)


def test_a_dictionary_has_the_same_facts() -> None:
    scan = merged().scan("v > 2 AND k < 90")
    found = json.loads(json.dumps(scan.explain(row_groups=True).as_dict()))
    metrics = scan.metrics
    assert found["parts_considered"] == metrics.parts_considered == 5
    assert found["parts_considered"] - found["parts_read"] == metrics.parts_pruned
    assert found["bytes_considered"] - found["bytes_read"] == metrics.bytes_pruned
    assert sum(part["size_bytes"] for part in found["skipped"]) == metrics.bytes_pruned
    assert sum(group["size_bytes"] for group in found["groups"]) == found["bytes_read"]
    by = [part["by"] for part in found["skipped"]]
    assert {reason: by.count(reason) for reason in by} == metrics.pruned_by
    assert all(condition["parts_refuted"] for condition in found["conditions"])


@pytest.mark.parametrize(
    "where", ["k = 7", "v > 10", "k < 5 AND v > 3", "v % 2 = 0", "k IN (1, 9)"]
)
def test_row_groups_are_those_that_a_read_keeps(where: str) -> None:
    table = merged()
    scan = table.scan(where)
    snapshot = table.handle.pinned
    predicate = bind(scan.plan().predicate, snapshot.schema, now_us=0)
    planned = {p.part_id: p for s in scan.plan().splits for piece in s.pieces for p in piece.parts}
    found = [part for group in scan.explain(row_groups=True).groups for part in group.parts]
    assert found
    for part in found:
        assert (part.row_groups is not None) == part.read
        if part.row_groups is not None:
            source = PartSource(table.handle.store, planned[part.part_id], snapshot.schema)
            kept = candidates_of([source], predicate)[0][1].rows
            groups = {row // 4 for row in kept}
            gone = sum(reason.row_groups for reason in part.row_groups.skipped)
            assert part.row_groups.read == part.row_groups.total - gone >= len(groups)
            assert part.row_groups.pages_read == len(kept)  # of one row each
            assert part.row_groups.pages >= part.row_groups.pages_read
            assert part.row_groups.bytes_read <= part.row_groups.bytes_total


def test_pieces_that_were_cut_are_one_group() -> None:
    table = keyed({"k": [*range(40)], "v": [*range(40)]}, {"k": [1, 39], "v": [0, 0]})
    snapshot = table.handle.pinned
    for in_process in (True, False):
        plan = plan_scan(snapshot, table.uri, now_us=0, split_bytes=500, in_process=in_process)
        assert len(plan.splits) > 1
        (group,) = explain(plan, snapshot, str).groups
        assert [part.read for part in group.parts] == [True, True]


def test_what_another_engine_evaluates_is_named() -> None:
    table = merged()
    snapshot = table.handle.pinned
    known = ir.Comparison(ir.ComparisonOp.GT, ir.Column("k"), ir.Literal(90))
    predicate = ir.And((known, ir.Opaque("my_udf(v)", "spark", ("v",))))
    plan = plan_scan(snapshot, table.uri, predicate=predicate, now_us=0)
    one, other = explain(plan, snapshot, str).conditions
    assert (one.parts_refuted, one.note) == (4, "")
    assert (other.parts_refuted, other.note) == (0, "another engine evaluates part of it")


def test_long_texts_are_cut_and_dictionaries_are_not() -> None:
    table = appended(*({"k": [i], "v": [i]} for i in range(MAX_LINES + 5)))
    found = table.scan("k = -1").explain()
    assert len(found.skipped) == len(found.as_dict()["skipped"]) == MAX_LINES + 5
    assert str(found).endswith("and 5 more parts skipped")


def test_bounds_beyond_python_are_numbers() -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.timestamp("us"))])
    data = {"k": [1], "v": pa.array([2**62]).cast(pa.timestamp("us"))}
    table = appended(data, schema=schema)
    (reason,) = table.scan("v < TIMESTAMP '2020-01-01'").explain().skipped
    assert reason.bounds == {"v": f"[{2**62}, {2**62}], 0 NULL"}


def test_a_plan_read_again_explains_itself() -> None:
    table = merged()
    plan = table.scan("v > 2 AND k < 90").plan()
    table.delete("TRUE")
    assert masked(str(table.scan(plan=rs.ScanPlan.from_bytes(plan.to_bytes())).explain())) == (
        GOLDEN / "by_statistics.txt"
    ).read_text().rstrip("\n")


def test_the_time_is_that_of_the_plan() -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.timestamp("us", tz="UTC"))])
    table = appended({"k": [1], "v": [0]}, schema=schema)
    (reason,) = table.scan("v > now() - interval '1 day'").explain().skipped
    assert "1970-01-01" in reason.bounds["v"]
