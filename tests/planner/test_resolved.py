"""Resolved plans have the row numbers to read: they return the rows of a scan without pruning."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve import ScanPlan, Table
from rowsieve.bridges.where import to_predicate
from rowsieve.checksums import checksum
from rowsieve.errors import EvaluationError, InvalidInput
from rowsieve.executor.execute import resolve
from rowsieve.planner.cache import PlanCache
from rowsieve.planner.part_rows import PartRows
from rowsieve.planner.plan import PLAN_FORMAT
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.planner.resolved import join_small_splits
from rowsieve.planner.split import Split
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.rowset import RowSet
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_schema
from tests.oracle_table import bag, to_rows
from tests.planner.test_one_form import calls_of
from tests.profiles import examples
from tests.random_tables import EVERYTHING, everything
from tests.small_tables import appended, keyed, kv, pairs
from tests.table_strategies import predicates

LOOK_UPS = ("find_candidates", "visible_rows", "read_deletion_vector", "PartSource.tombstones")


pytestmark = pytest.mark.usefixtures("tiny_row_groups")


def rows_of(data: pa.Table) -> Any:
    return bag(to_rows(data, EVERYTHING.schema))


@examples(120)
@given(
    number=st.integers(0, 3),
    where=predicates(EVERYTHING),
    ordered=st.booleans(),
    pruning=st.sampled_from(("on", "on", "on", "off")),
    split_bytes=st.sampled_from((1, 3_000, 1 << 20)),
    in_process=st.booleans(),
)
def test_a_resolved_plan_returns_what_the_scan_returns(
    number: int, where: Predicate, ordered: bool, pruning: str, split_bytes: int, in_process: bool
) -> None:
    made, _ = everything(number)
    wanted = made.scan(where, pruning="off", order_by_key=ordered)
    plan = plan_scan(
        made.handle.pinned,
        made.uri,
        predicate=where,
        semantics=Semantics.POSTGRES,
        now_us=0,
        ordered=ordered,
        pruning=pruning == "on",
        split_bytes=split_bytes,
        in_process=in_process,
    )
    resolved = made.scan(plan=plan).plan(resolve=True)
    again = ScanPlan.from_bytes(resolved.to_bytes())
    assert again == resolved
    try:
        expected = wanted.to_arrow()
    except EvaluationError:
        with pytest.raises(EvaluationError):
            made.scan(plan=again).to_arrow()
        return
    found = made.scan(plan=again)
    assert rows_of(found.to_arrow()) == rows_of(expected)
    if ordered:
        assert found.to_arrow().column("k").equals(expected.column("k"))
    assert found.count() == expected.num_rows
    assert rows_of(by_files(made, again)) == rows_of(expected)
    joined = join_small_splits(again, split_bytes)
    alone = [rs.read_split(split).read_all() for split in joined.splits_to_bytes()]
    assert rows_of(pa.concat_tables([expected.slice(0, 0), *alone])) == rows_of(expected)


def by_files(table: Table, plan: ScanPlan) -> pa.Table:
    """What an engine makes of a resolved plan that knows Parquet and the residual alone."""
    target = arrow_schema(plan.schema)
    found = [pa.table([pa.array([], type_) for type_ in target.types], schema=target)]
    seen: dict[str, RowSet] = {}
    for file in plan.files():
        assert not file.rows.is_empty
        known = seen.setdefault(file.part_id, RowSet.empty(file.rows.row_count))
        assert known.intersect(file.rows).is_empty
        seen[file.part_id] = known.union(file.rows)
        if file.content is None:
            data = pa.BufferReader(table.handle.store.get(file.path))
            whole = pq.read_table(data, schema=target)
        else:
            whole = pa.ipc.open_stream(file.content).read_all().select(target.names)
        (rows,) = whole.take(pa.array(file.rows.to_ids())).combine_chunks().to_batches()
        if file.residual and plan.filter is not None:
            rows = rows.filter(pa.array(matching(plan.filter, rows)))
        found.append(pa.Table.from_batches([rows]))
    return pa.concat_tables(found)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("where", [None, "v > 3", "k = 7", "k < 20 AND v < 5"])
def test_who_reads_a_resolved_plan_looks_nothing_up(where: str | None, ordered: bool) -> None:
    table = keyed(
        {"k": [*range(40)], "v": [*range(40)]},
        {"k": [1, 7, 39], "v": [4, 5, 6]},
    )
    table.delete(keys=pa.table({"k": [3, 7]}))
    scan = table.scan(where, order_by_key=ordered)
    plan = ScanPlan.from_bytes(scan.plan(resolve=True).to_bytes())
    expected = scan.to_arrow()
    found: list[pa.Table] = []
    calls = calls_of(lambda: found.append(table.scan(plan=plan).to_arrow()))
    assert not any(calls[name] for name in LOOK_UPS)
    assert found[0].sort_by("k").equals(expected.sort_by("k"))


def test_splits_with_few_pages_to_read_are_joined() -> None:
    table = appended(*({"k": [*range(i, i + 64)], "v": [i] * 64} for i in range(0, 320, 64)))
    part_bytes = max(table.files().column("size_bytes").to_pylist())
    cut = plan_scan(table.handle.pinned, table.uri, now_us=0, split_bytes=1)
    plan = table.scan(plan=cut).plan(resolve=True)
    counts = [len(join_small_splits(plan, part_bytes * n).splits) for n in (1, 2, 100)]
    assert (len(plan.splits), counts) == (40, [5, 3, 1])
    pages = table.scan("k = 5 OR k = 197 OR k = 261").plan(resolve=True)  # a page of each part
    cut = msgspec.structs.replace(pages, splits=tuple(Split((p,)) for p in pages.splits[0].pieces))
    assert (len(cut.splits), len(join_small_splits(cut, part_bytes).splits)) == (3, 1)


def test_a_resolved_plan_reports_what_pruned_which_rows() -> None:
    table = appended({"k": [*range(64)], "v": [*range(64)]})
    (part,) = table.scan("v BETWEEN 17 AND 19").plan(resolve=True).resolved or ()
    assert (part.row_groups, part.row_groups_by_statistics, part.row_groups_by_bloom) == (8, 7, 0)
    assert (part.pages, part.pages_by_index, part.rows_hidden) == (4, 2, 0)
    assert (part.page_rows, list(part.rows)) == (2, [16, 17, 18, 19])
    table.delete("v = 18")
    (part,) = table.scan("v BETWEEN 17 AND 19").plan(resolve=True).resolved or ()
    assert (part.rows_hidden, list(part.rows)) == (1, [16, 17, 19])


def test_keys_that_a_bloom_refutes_are_counted_as_such() -> None:
    table = keyed({"k": [*range(0, 64, 2)], "v": [0] * 32})
    scan = table.scan("k = 17")
    plan = scan.plan(resolve=True)
    (part,) = plan.resolved or ()
    refuted = (part.row_groups_by_statistics, part.row_groups_by_bloom)
    assert (refuted, len(part.rows)) in (((3, 1), 0), ((3, 0), 2))  # blooms may err on this side
    assert (part.emptied_by == "bloom") == (not len(part.rows))
    assert [each.by for each in plan.pruned] == ([] if len(part.rows) else ["bloom"])
    (part,) = table.scan("k IN (17, 40)").plan(resolve=True).resolved or ()  # 40 exists
    assert (part.row_groups_by_statistics, part.row_groups_by_bloom) in ((2, 1), (2, 0))
    assert len(part.rows)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (PartRows("p", RowSet.empty(8), 2, 2), "row_groups"),
        (PartRows("p", RowSet.empty(8), 2, 1, 1), "bloom"),
        (PartRows("p", RowSet.empty(8), 2, 1, 0, 4, 4), "pages"),
        (PartRows("p", RowSet.empty(8), 2, 1, 0, 4, 3, 2), "visibility"),
        (PartRows("p", RowSet.empty(8), rows_hidden=8), "visibility"),
    ],
)
def test_the_reason_is_the_step_that_excluded_the_last_row(part: PartRows, reason: str) -> None:
    assert part.emptied_by == reason


@pytest.mark.parametrize("where", [None, "v = 3", "v > 100", "k = 5"])
def test_parts_and_bytes_are_all_accounted_for(where: str | None) -> None:
    table = keyed({"k": [1, 5], "v": [1, 3]}, {"k": [5, 9], "v": [9, 9]}, {"k": [90], "v": [3]})
    table.delete(keys=pa.table({"k": [9]}))
    scan = table.scan(where)
    plain, resolved = scan.plan(), scan.plan(resolve=True)
    plain_metrics = table.scan(plan=plain).metrics
    metrics = table.scan(plan=resolved).metrics
    assert metrics.parts_considered == plain_metrics.parts_considered == 4
    assert metrics.bytes_considered == plain_metrics.bytes_considered
    assert metrics.parts_pruned >= plain_metrics.parts_pruned
    names = {part.part_id for split in resolved.splits for p in split.pieces for part in p.parts}
    assert metrics.parts_considered - metrics.parts_pruned == len(names)


def test_statistics_of_a_resolved_plan_are_those_of_its_rows() -> None:
    table = keyed({"k": [1, 2, 3], "v": [1, 2, 3]}, {"k": [2, 9], "v": [7, 7]})
    resolved = table.scan(plan=table.scan().plan(resolve=True)).statistics()
    assert (resolved.rows, resolved.rows_exact) == (4, True)
    plain = table.scan().statistics()
    assert (plain.rows, plain.rows_exact) == (5, False)
    assert not resolved.columns["v"].null_count_exact  # the hidden row may have been NULL


def test_a_resolved_plan_is_found_again_for_other_columns() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [2], "v": [7]})
    first = table.scan("v > 1").plan(resolve=True)
    calls = calls_of(lambda: table.scan("v > 1", columns=["k"]).plan(resolve=True))
    assert not any(calls[name] for name in LOOK_UPS)
    assert table.scan(plan=first.project(["v"])).to_arrow().to_pylist() == [{"v": 7}]


def test_a_resolved_plan_is_not_found_for_another_question() -> None:
    table, other = keyed({"k": [1, 2], "v": [1, 2]}), keyed({"k": [1, 2, 3], "v": [1, 2, 3]})
    for each, rows in ((table, 2), (other, 3)):
        empty = each.scan("v > 100").plan(resolve=True)
        assert [(group.by, group.rows) for group in empty.pruned] == [("statistics", rows)]
    nothing, deletes = keyed(), keyed()
    deletes.delete(keys=pa.table({"k": [1]}))
    assert nothing.scan().plan(resolve=True).pruned == ()
    assert [group.by for group in deletes.scan().plan(resolve=True).pruned] == ["visibility"]
    table.upsert(kv((3, 300)))
    assert table.scan(plan=table.scan("v > 100").plan(resolve=True)).count() == 1
    plan = table.scan("v > 1").plan()
    table.scan(plan=plan).plan(resolve=True)
    asked = plan.with_predicate(to_predicate("v = 1"), Semantics.SQL)
    assert asked.splits is plan.splits
    calls = calls_of(lambda: table.scan(plan=asked).plan(resolve=True))
    assert calls["find_candidates"]


def test_answers_stay_distinct_after_their_plan_is_freed() -> None:
    cache = PlanCache()
    tables = [keyed({"k": [i], "v": [i]}) for i in range(20)]
    for table in tables * 2:  # plans of one shape, each gone before the next one is made
        plan = plan_scan(table.handle.pinned, table.uri, now_us=0)
        found = cache.resolved(plan, lambda plan, table=table: resolve(plan, table.handle.store))  # type: ignore[misc]
        assert [part.part_id for part in found.resolved or ()] == table.files()["part"].to_pylist()
        del plan, found


def test_a_cached_answer_keeps_the_objects_that_identify_it() -> None:
    """Whether a freed tuple's id is used again is chance, so this counts the references."""
    table = keyed({"k": [1], "v": [1]})
    plan = plan_scan(table.handle.pinned, table.uri, now_us=0)
    cache, splits = PlanCache(), plan.splits
    before = sys.getrefcount(splits)
    found = cache.resolved(plan, lambda plan: resolve(plan, table.handle.store))
    assert found.splits is not splits
    assert sys.getrefcount(splits) == before + 1


def test_a_resolved_plan_deletes_its_rows() -> None:
    table = keyed({"k": [1, 2, 3], "v": [1, 2, 3]}, {"k": [2], "v": [9]})
    table.delete(plan=table.scan("v > 2").plan(resolve=True))
    assert pairs(table) == [(1, 1)]
    log = appended({"k": [1, 2, 3], "v": [1, 2, 3]})
    log.delete("k = 3")
    log.delete(plan=log.scan("v > 1").plan(resolve=True))
    assert pairs(log) == [(1, 1)]


def test_files_of_a_plan_without_rows_are_refused() -> None:
    plan = keyed({"k": [1], "v": [1]}).scan().plan()
    with pytest.raises(InvalidInput, match=r"plan\(resolve=True\)"):
        next(plan.files())


def test_a_resolved_plan_is_pinned_to_its_version(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), kv(*((k, k) for k in range(20))), key=["k"])
    plan = table.scan("v < 4").plan(resolve=True)
    table.upsert(kv((1, 100)))
    table.delete("k = 2")
    assert table.scan(plan=plan).to_arrow().num_rows == 4
    (split,) = plan.splits_to_bytes()
    assert rs.read_split(split).read_all().num_rows == 4


RESOLVED = appended({"k": [1, 2], "v": [1, None]}).scan("v > 0").plan(resolve=True)


def sealed(change: Any) -> bytes:
    """The plan's bytes with its row sets changed and a checksum that holds."""
    envelope = msgspec.msgpack.decode(RESOLVED.to_bytes())
    plan = envelope["plan"]
    change(plan)
    body = msgspec.msgpack.encode(plan)
    return msgspec.msgpack.encode(
        {"format": PLAN_FORMAT, "checksum": checksum(body), "plan": msgspec.Raw(body)}
    )


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda plan: plan["resolved"].clear(), id="none"),
        pytest.param(lambda plan: plan["resolved"][0].update(part_id="x"), id="another part"),
        pytest.param(lambda plan: plan["resolved"][0].update(row_count=3), id="more rows"),
        pytest.param(lambda plan: plan["resolved"][0].update(rows=b"RSRS"), id="no row set"),
        pytest.param(lambda plan: plan["resolved"][0].update(counts=[1]), id="no counts"),
        pytest.param(
            lambda plan: plan["resolved"][0].update(rows=RowSet.full(9).to_bytes(), row_count=9),
            id="rows beyond the part",
        ),
    ],
)
def test_rows_that_a_part_does_not_have_are_refused(change: Any) -> None:
    with pytest.raises(InvalidInput, match="the scan plan"):
        ScanPlan.from_bytes(sealed(change))


def test_splits_carry_the_rows_of_their_own_parts() -> None:
    table = keyed({"k": [*range(20)], "v": [1] * 20}, {"k": [30, 31], "v": [1, 1]})
    plan = plan_scan(table.handle.pinned, table.uri, now_us=0, split_bytes=1)
    resolved = table.scan(plan=plan).plan(resolve=True)
    assert len(resolved.splits) > 2
    assert Counter(len(resolved.only(i).resolved or ()) for i in range(len(resolved.splits))) == {
        1: len(resolved.splits)
    }
