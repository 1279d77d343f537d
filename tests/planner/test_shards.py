"""Plans of parts in shards are those of the same parts in memory, and read only what they need."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate
from rowsieve.errors import RowsieveError
from rowsieve.planner.part_facts import PartFacts, refuted_by_unions
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.planner.prune_parts import prune_parts
from rowsieve.predicate.bind import bind
from rowsieve.predicate.ir import Predicate
from rowsieve.storage.snapshot import Snapshot
from tests.profiles import examples
from tests.small_tables import appended, keyed, kv
from tests.storage.sharded import in_shards, source_of, tiny_shards
from tests.strategies import predicates
from tests.tables.test_random_scans import KEYS, table

pytestmark = pytest.mark.usefixtures("tiny_row_groups")


@functools.cache
def snapshots(number: int, parts: int) -> tuple[Snapshot, Snapshot]:
    whole = table(number)[0].handle.pinned
    return whole, in_shards(whole, parts)


def planned(snapshot: Snapshot, predicate: Predicate, limit: int | None) -> ScanPlan:
    return plan_scan(snapshot, "memory:///t", predicate=predicate, limit=limit, now_us=0)


@given(
    st.integers(0, len(KEYS) - 1), predicates(), st.sampled_from([1, 2, 5]), st.none() | st.just(3)
)
@examples(300)
def test_plans_are_the_same(
    number: int, predicate: Predicate, parts: int, limit: int | None
) -> None:
    whole, sharded = snapshots(number, parts)
    try:
        expected = planned(whole, predicate, limit)
    except RowsieveError:
        reject()
    assert planned(sharded, predicate, limit) == expected


def asked(text: str, snapshot: Snapshot) -> ScanPlan:
    return planned(snapshot, parse_predicate(text), None)


def loaded(snapshot: Snapshot) -> set[tuple[str, int]]:
    return set(source_of(snapshot)._segments)


def test_a_refuted_shard_is_not_read() -> None:
    """Six parts of rising keys and values in three shards."""
    made = keyed(*({"k": [10 * i, 10 * i + 5], "v": [i, i]} for i in range(6)))
    fresh = functools.partial(in_shards, made.handle.pinned, 2)
    by_key = fresh()
    assert len(asked("k = 25", by_key).splits) == 1
    assert loaded(by_key) == {
        ("sizes", 0), ("sizes", 1), ("sizes", 2),  # what is not read is counted
        ("stats.1", 1), ("keys", 1), ("id", 1), ("files", 1),
    }  # fmt: skip
    by_value = fresh()
    assert len(asked("v = 5", by_value).splits) == 1
    assert {i for group, i in loaded(by_value) if group == "stats.2"} == {2}
    assert {i for group, i in loaded(by_value) if group == "keys"} == {0, 1, 2}  # who overlaps
    assert {i for group, i in loaded(by_value) if group == "files"} == {2}
    nothing = fresh()
    assert asked("k = 3 and k = 57", nothing).splits == ()
    assert {group for group, _ in loaded(nothing)} <= {"sizes", "stats.1"}


def test_a_union_refutes_by_key_columns_alone_before_overlap() -> None:
    """Trap T1: a newer part refuted by value still hides rows of an older one that is not."""
    made = keyed({"k": [1, 2], "v": [7, 7]}, {"k": [1, 3], "v": [8, 8]}, {"k": [50], "v": [9]})
    whole = made.handle.pinned
    for parts in (1, 2, 3):
        sharded = in_shards(whole, parts)
        for text in ("v = 7", "k < 40 AND v = 7"):  # the second asks the unions about the key, too
            assert asked(text, sharded) == asked(text, whole)
            (split,) = asked(text, sharded).splits
            assert [len(piece.parts) for piece in split.pieces] == [2]


def test_a_table_without_a_key_is_pruned_by_shards_too() -> None:
    made = appended(*({"k": [i], "v": [i]} for i in range(6)))
    sharded = in_shards(made.handle.pinned, 3)
    plan = asked("v = 5", sharded)
    assert plan == asked("v = 5", made.handle.pinned)
    assert {i for group, i in loaded(sharded) if group == "stats.2"} == {1}


def test_parts_after_the_checkpoint_and_parts_that_are_gone() -> None:
    made = keyed(
        *({"k": [10 * i], "v": [i]} for i in range(5)), properties={"target_part_bytes": "1"}
    )
    for _ in tiny_shards():
        made.upsert(kv((60, 60)))
    snapshot = made.handle.pinned
    base = in_shards(snapshot, 2)
    changed = snapshot.parts.without(snapshot.parts.part_ids[1:2]).append(snapshot.parts.take([1]))
    lying = base.parts.without(base.parts.part_ids[1:2]).append(snapshot.parts.take([1]))
    assert lying == changed
    schema = snapshot.schema
    for text in ("k = 10", "k = 40", "v >= 4", "k + v > 60", "v is null"):
        predicate = bind(parse_predicate(text), schema)
        expected = prune_parts(PartFacts(changed, schema, None), predicate)
        found = prune_parts(PartFacts(lying, schema, None), predicate)
        assert found.reasons.tolist() == expected.reasons.tolist()
    refuted = refuted_by_unions(lying, schema, bind(parse_predicate("v >= 100"), schema))
    assert refuted.tolist() == [True] * 5 + [False]


@pytest.mark.parametrize("text", ["k = 25", "v = 3", "k > 0 and v < 2"])
def test_a_damaged_union_is_unknown(text: str) -> None:
    made = keyed(*({"k": [10 * i, 10 * i + 5], "v": [i, i]} for i in range(6)))
    whole = made.handle.pinned
    sharded = in_shards(whole, 2)
    source = source_of(sharded)
    names = source.unions.column_names
    source.unions = source.unions.drop_columns([n for n in names if n.startswith("union.")])
    assert asked(text, sharded) == asked(text, whole)
