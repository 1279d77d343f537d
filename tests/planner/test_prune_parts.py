"""Pruning over arrays of parts against the same rules part by part, over random manifests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
import rowsieve.planner.part_facts as module
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import CorruptData
from rowsieve.planner.part_facts import KnownParts, PartFacts, part_facts, planned_parts
from rowsieve.planner.pieces import pieces_of, summary
from rowsieve.planner.prune_parts import Reason, prune_parts
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.model import ColumnStatistics
from rowsieve.storage.manifests.manifest import FileRef, NewPart, PartEntry, PartTable
from rowsieve.types.logical import Field, Int
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from tests.profiles import examples
from tests.small_tables import keyed

SCHEMA = Schema(0, (Field(1, "k", Int(64), nullable=False), Field(2, "v", Int(64))))
ORDER = KeyOrder.of(SCHEMA, ("k",))
CONDITIONS = (None, "k < 6", "v > 3", "k > 2 AND v < 5", "v = 4 OR k = 1", "v >= 0", "10 / v > 1")


@dataclass(frozen=True)
class Part:
    """A part of rows and tombstones with keys in [lower, upper], values in [low, high]."""

    lower: int
    upper: int
    low: int
    high: int
    rows: int
    deletes: int


@st.composite
def some_parts(draw: st.DrawFn) -> list[Part]:
    """Up to 8 parts, oldest first."""
    number = st.integers(0, 9)
    found = draw(st.lists(st.tuples(number, number, number, number, st.sampled_from("rdb"))))
    return [
        Part(min(a, b), max(a, b), min(c, d), max(c, d), 5 * (has != "d"), 3 * (has != "r"))
        for a, b, c, d, has in found[:8]
    ]


def manifest(parts: Sequence[Part], commits: Sequence[tuple[int, int]] | None = None) -> PartTable:
    """As a table has it: part i was committed by version i + 1, unless `commits` says another."""
    commits = commits or [(i + 1, i + 1) for i in range(len(parts))]
    new = [
        NewPart(
            PartEntry(
                part_id=f"p{i}",
                base_version=0,
                schema_id=0,
                native_safe=False,
                data=ref(f"r{i}", part.rows) if part.rows else None,
                deletes=ref(f"d{i}", part.deletes) if part.deletes else None,
                key_lower=(pa.scalar(part.lower),),
                key_upper=(pa.scalar(part.upper),),
                commit_ts_min=commit[0],
                commit_ts_max=commit[1],
            ),
            {
                1: ColumnStatistics(0, None, pa.scalar(part.lower), pa.scalar(part.upper)),
                2: ColumnStatistics(0, None, pa.scalar(part.low), pa.scalar(part.high)),
            },
        )
        for i, (part, commit) in enumerate(zip(parts, commits, strict=True))
    ]
    return PartTable.of(new, SCHEMA, ORDER.fields)


def ref(name: str, rows: int) -> FileRef:
    return FileRef(f"data/{name}", rows, 100 * rows, "", 0, "")


def verdict_of(part: Part, predicate: BoundPredicate | None, *, key_alone: bool) -> Verdict:
    if predicate is None:
        return Verdict.SOME
    ids = (1,) if key_alone else None
    (found,) = interpret(predicate, PartStatistics(manifest([part]), SCHEMA, ids))
    return Verdict(found)


@dataclass(frozen=True)
class Expected:
    """Per group the parts newest first with whether each is read, and why the others go."""

    groups: list[list[tuple[int, bool]]]
    reasons: dict[int, Reason]


def obvious(parts: Sequence[Part], predicate: BoundPredicate | None, *, keyed: bool) -> Expected:
    """The rules of `prune_parts`, one part after the other; every part is newer than the last."""
    reasons: dict[int, Reason] = {}
    components: list[set[int]] = []
    for i, part in enumerate(parts):
        if keyed and verdict_of(part, predicate, key_alone=True) is Verdict.NONE:
            reasons[i] = Reason.KEY
            continue
        met = [c for c in components if keyed and any(share(parts[j], part) for j in c)]
        components = [c for c in components if c not in met] + [{i}.union(*met)]
    groups = []
    for component in components:
        newest_first = sorted(component, reverse=True)
        reads = [
            parts[i].rows > 0
            and verdict_of(parts[i], predicate, key_alone=False) is not Verdict.NONE
            for i in newest_first
        ]
        down_to = max((place for place, read in enumerate(reads) if read), default=-1) + 1
        for i in newest_first[down_to:]:
            reasons[i] = Reason.STATISTICS if parts[i].rows else Reason.VISIBILITY
        if down_to:
            groups.append([*zip(newest_first[:down_to], reads[:down_to], strict=True)])
    return Expected(groups, reasons)


def share(one: Part, other: Part) -> bool:
    return one.lower <= other.upper and other.lower <= one.upper


@pytest.mark.parametrize("made", [PartFacts, KnownParts])
@examples(200)
@given(some_parts(), st.sampled_from(CONDITIONS), st.booleans())
def test_pruning_follows_the_rules_part_by_part(
    made: type[PartFacts], parts: list[Part], where: str | None, keyed: bool
) -> None:
    bound = None if where is None else bind(to_predicate(where, "postgres"), SCHEMA)
    facts = made(manifest(parts), SCHEMA, ORDER if keyed else None)
    for other in CONDITIONS[1:3]:  # what earlier plans leave behind changes no later one
        prune_parts(facts, bind(to_predicate(other, "postgres"), SCHEMA))
    found = prune_parts(facts, bound)
    expected = obvious(parts, bound, keyed=keyed)
    reads = iter(found.reads.tolist())
    groups = [[(i, next(reads)) for i in group] for group in found.groups]
    assert sorted(groups) == sorted(expected.groups)
    assert {i: Reason(r) for i, r in enumerate(found.reasons) if r} == expected.reasons
    if keyed:
        uppers = [max(parts[i].upper for i, _ in group) for group in groups]
        lowers = [min(parts[i].lower for i, _ in group) for group in groups]
        assert all(upper < lower for upper, lower in zip(uppers, lowers[1:], strict=False))


@examples(100)
@given(some_parts(), st.sampled_from(CONDITIONS))
def test_pieces_and_counts_agree(parts: list[Part], where: str | None) -> None:
    bound = None if where is None else bind(to_predicate(where, "postgres"), SCHEMA)
    facts = KnownParts(manifest(parts), SCHEMA, ORDER)
    found = prune_parts(facts, bound)
    pieces = pieces_of(facts, found, filtered=bound is not None)
    for piece, group in zip(pieces, obvious_in_key_order(parts, bound), strict=True):
        assert [part.part_id for part in piece.parts] == [f"p{i}" for i, _ in group]
        assert [part.commit_ts for part in piece.parts] == [i + 1 for i, _ in group]
        assert [read.part for read in piece.reads] == [at for at, (_, r) in enumerate(group) if r]
        for read in piece.reads:
            verdict = verdict_of(parts[group[read.part][0]], bound, key_alone=False)
            assert read.residual == (bound is not None and verdict is not Verdict.ALL)
        assert piece.residual or not any(read.residual for read in piece.reads)
        assert piece.size_bytes == sum(stored(parts[i]) for i, _ in group)
    gone = [i for i, reason in enumerate(found.reasons) if reason]
    counted = summary(facts, found.reasons)
    assert sum(one.parts for one in counted) == len(gone)
    assert sum(one.rows for one in counted) == sum(parts[i].rows for i in gone)
    assert sum(one.size_bytes for one in counted) == sum(stored(parts[i]) for i in gone)


def obvious_in_key_order(
    parts: Sequence[Part], predicate: BoundPredicate | None
) -> list[list[tuple[int, bool]]]:
    groups = obvious(parts, predicate, keyed=True).groups
    return sorted(groups, key=lambda group: min(parts[i].lower for i, _ in group))


def stored(part: Part) -> int:
    return 100 * (part.rows + part.deletes)


def test_parts_that_share_keys_are_ordered_by_commit_as_wholes() -> None:  # invariant 11
    one = Part(0, 5, 0, 0, 5, 0)
    apart = Part(6, 9, 0, 0, 5, 0)
    for commits in ([(1, 3), (2, 4)], [(1, 3), (2, 2)], [(1, 3), (3, 4)], [(1, 3), (1, 4)]):
        with pytest.raises(CorruptData, match=r"p[01] and p[01] overlap in keys .* interleave"):
            prune_parts(PartFacts(manifest([one, one], commits), SCHEMA, ORDER), None)
        assert (
            len(prune_parts(PartFacts(manifest([one, apart], commits), SCHEMA, ORDER), None).groups)
            == 2
        )
    for commits in ([(3, 3), (3, 3)], [(1, 2), (3, 4)], [(3, 4), (1, 2)]):
        (group,) = prune_parts(PartFacts(manifest([one, one], commits), SCHEMA, ORDER), None).groups
        ages = [commits[i] for i in group]
        assert ages == sorted(ages, reverse=True)


def test_a_group_that_goes_need_not_be_in_order() -> None:
    one = Part(0, 5, 0, 0, 5, 0)
    bound = bind(to_predicate("v = 7", "postgres"), SCHEMA)
    found = prune_parts(PartFacts(manifest([one, one], [(1, 3), (2, 4)]), SCHEMA, ORDER), bound)
    assert np.all(found.reasons == Reason.STATISTICS)


def test_kept_facts_serve_one_manifest_of_one_version() -> None:  # invariant 22
    made = keyed({"k": [1], "v": [1]}, {"k": [9], "v": [9]})
    new = made.handle.pinned
    old = rs.open_table(made.uri, version=new.version - 1).handle.pinned
    fewer = replace(new, parts=new.parts.take([0]))
    known = part_facts(new)
    assert isinstance(known, KnownParts)
    assert part_facts(new) is known
    for other in (old, fewer, replace(new, schema=replace(new.schema, id=7))):
        found = part_facts(other)
        assert found is not known
        assert found.parts.blocks is other.parts.blocks
        assert found.schema is other.schema
        assert found.planned(np.arange(len(other.parts))) == planned_parts(
            other.parts, range(len(other.parts)), found.order
        )


def test_facts_of_many_parts_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = keyed({"k": [1], "v": [1]}, {"k": [9], "v": [9]}).handle.pinned
    monkeypatch.setattr(module, "MAX_PARTS", len(snapshot.parts) - 1)
    assert type(part_facts(snapshot)) is PartFacts


def test_no_parts() -> None:
    empty = PartTable.empty()
    for order in (None, ORDER):
        found = prune_parts(PartFacts(empty, SCHEMA, order), None, limit=1)
        assert len(found.groups) == 0
        assert pieces_of(PartFacts(empty, SCHEMA, order), found, filtered=False) == []


def test_a_group_is_read_down_to_its_oldest_part_that_may_match() -> None:
    table = keyed(*({"k": [n, 9 - n], "v": [n, n]} for n in (1, 2, 3)))
    assert [table.scan(f"v = {n}").explain().parts_read for n in (3, 2, 1)] == [1, 2, 3]


def test_without_a_condition_no_part_contradicts_itself() -> None:
    facts = part_facts(keyed({"k": [1], "v": [1]}).handle.newest)
    assert prune_parts(facts, None).contradicting == 0


def test_parts_that_were_not_judged_are_grouped_by_their_own_keys() -> None:
    head = keyed(*({"k": [k, k + 1], "v": [0, 0]} for k in (1, 1, 8))).handle.newest
    facts = PartFacts(head.parts, head.schema, KeyOrder.of(head.schema, ("k",)))
    condition = bind(to_predicate("v > 3", "postgres"), head.schema)
    keys = head.parts.numbers("commit_ts_max").tolist()
    first, second, other = (keys.index(version) for version in (1, 2, 3))
    facts.judge(condition, np.array([first, second]), [])
    assert len(facts.groups(np.array([first, other]))) == 2
    assert len(facts.groups(np.array([first, second]))) == 1
