"""The candidate rows of a file are cached with the predicate, for the same scan only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rowsieve import Table
from rowsieve.bridges.where import to_predicate
from rowsieve.executor import execute
from rowsieve.planner import candidates
from rowsieve.planner.candidates import find_candidates
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.storage.manifests.manifest import FileRef
from tests.planner.test_one_form import calls_of
from tests.small_tables import keyed


def made() -> tuple[Table, list[FileRef]]:
    table = keyed({"k": [1, 2, 3], "v": [10, 20, 30]}, {"k": [4, 5], "v": [40, 50]})
    parts = table.handle.pinned.parts
    files = [entry.data for i in range(len(parts)) if (entry := parts.entry(i)).data is not None]
    return table, [file for file in files if file is not None]


def bound(table: Table, text: str) -> BoundPredicate:
    return bind(to_predicate(text), table.handle.pinned.schema)


def ask(table: Table, files: list[FileRef], predicate: BoundPredicate, **options: Any) -> Any:
    schema = table.handle.pinned.schema
    return find_candidates(table.handle.store, files, predicate, schema, **options)


def opened(work: Callable[[], Any]) -> int:
    return calls_of(work)["read_tail"]


def test_a_file_is_opened_once_for_a_predicate() -> None:
    table, files = made()
    predicate = bound(table, "v > 25")
    assert opened(lambda: ask(table, files[:1], predicate)) == 1
    assert opened(lambda: ask(table, files, predicate)) == 1  # the other one
    assert opened(lambda: ask(table, files, predicate)) == 0
    assert [len(each.rows) for each in ask(table, files[::-1], predicate)] == [2, 3]
    fresh = bound(table, "v > 25")
    assert ask(table, files, predicate) == ask(table, files, fresh)


@pytest.mark.parametrize("text", ["v > 35", "k > 3"])
def test_another_predicate_has_answers_of_its_own(text: str) -> None:
    table, files = made()
    ask(table, files, bound(table, "v > 0"))
    assert [each.rows.is_empty for each in ask(table, files, bound(table, text))] == [True, False]


def test_columns_that_may_prune_are_a_part_of_the_question() -> None:
    table, files = made()
    predicate = bound(table, "v > 35 AND k > 0")
    key = frozenset({table.handle.pinned.schema.field("k").id})
    for _ in range(2):
        assert [len(each.rows) for each in ask(table, files, predicate)] == [0, 2]
        assert [len(each.rows) for each in ask(table, files, predicate, only=key)] == [3, 2]


def test_files_beyond_the_cache_limit_are_pruned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MAX_REMEMBERED", 1)
    table, files = made()
    predicate = bound(table, "v > 25")
    first = ask(table, files, predicate)
    assert opened(lambda: ask(table, files, predicate)) == 1
    assert ask(table, files, predicate) == first
    key = ("candidates", table.handle.store.uri, predicate.schema_id, None)
    known = predicate.remembered[key]
    assert len(known) == 1


def test_predicates_are_equal_by_content_not_by_their_caches() -> None:
    table, files = made()
    one, other = bound(table, "v > 25"), bound(table, "v > 25")
    ask(table, files, one)
    assert one == other
    assert hash(one) == hash(other)
    assert not other.remembered


def test_a_repeated_scan_opens_no_footer_for_pruning() -> None:
    table, _ = made()
    first = table.scan("v > 25 AND v < 45")
    rows = first.to_arrow()
    again = table.scan("v > 25 AND v < 45")
    calls = calls_of(again.to_arrow)
    assert calls["prune_row_groups"] == 0
    assert again.to_arrow().equals(rows)
    assert again.metrics.row_groups_considered == first.metrics.row_groups_considered


def disjoint(parts: int) -> Table:
    return keyed(*({"k": [10 * i, 10 * i + 1], "v": [i, -1]} for i in range(parts)))


def test_parts_that_overlap_no_other_are_interpreted_together() -> None:
    table = disjoint(execute.PARTS_TOGETHER + 5)
    scan = table.scan("v >= 0 AND v < 30")
    found: list[Any] = []
    calls = calls_of(lambda: found.append(scan.to_arrow()))
    assert calls["prune_row_groups"] == 2  # of sixteen, and of five
    assert sorted(found[0].column("v").to_pylist()) == list(range(execute.PARTS_TOGETHER + 5))
    assert scan.metrics.row_groups_considered == execute.PARTS_TOGETHER + 5


def test_a_limit_opens_no_part_that_is_not_read() -> None:
    scans = [disjoint(parts).scan("v >= 0 AND v < 30", limit=1) for parts in (1, 5)]
    assert opened(scans[0].to_arrow) == opened(scans[1].to_arrow) > 0
