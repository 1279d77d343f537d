"""Concurrent changes of a tiny table give what some serial order of them gives, exactly.

Every change is run amid another's commit, up to three of them nested or one after the other. The
model runs all permutations; one must explain the rows and every answer, and keep the order of the
versions that were committed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import ANY

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rowsieve
from rowsieve import Table
from rowsieve.errors import KeyViolation, StalePlan
from tests.daily import today
from tests.profiles import IS_DEEP, examples, some
from tests.small_tables import appended, keyed, kv, meddled

State = tuple[tuple[int, int], ...]  # rows (k, v), sorted
Answer = Any  # rows written and deleted, or the error's name; ANY is not compared
Step = Callable[[State], tuple[State, Answer]]


@dataclass(frozen=True)
class Act:
    """A change, and what it means to a list of rows."""

    name: str
    run: Callable[[Table], Any]
    means: Step
    reads: bool = False

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Played:
    """What a change answered, and the version that it made."""

    act: Act
    answer: Answer
    version: int | None


def state(rows: Iterable[tuple[int, int]]) -> State:
    return tuple(sorted(rows))


def matching(rows: State, column: int, value: int) -> list[tuple[int, int]]:
    return [row for row in rows if row[column] == value]


def without(rows: State, gone: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    left = list(rows)
    for row in gone:
        left.remove(row)
    return left


def update(column: int, value: int, new: str) -> Act:
    where = f"{'kv'[column]} = {value}"

    def means(rows: State) -> tuple[State, Answer]:
        found = matching(rows, column, value)
        changed = [(k, v + 1 if new == "v + 1" else int(new)) for k, v in found]
        return state([*without(rows, found), *changed]), (len(found), ANY)

    return Act(
        f"update(v={new}, {where})", lambda t: t.update({"v": new}, where=where), means, reads=True
    )


def delete(column: int, value: int) -> Act:
    where = f"{'kv'[column]} = {value}"

    def means(rows: State) -> tuple[State, Answer]:
        found = matching(rows, column, value)
        return state(without(rows, found)), (0, len(found))

    return Act(f"delete({where})", lambda t: t.delete(where), means, reads=True)


def delete_planned(value: int) -> Act:
    """Plan, then delete what was planned: one transaction, which is refused if it was overtaken."""
    where = f"v = {value}"
    return Act(
        f"delete(plan {where})",
        lambda t: t.delete(plan=t.scan(where).plan()),
        delete(1, value).means,
        reads=True,
    )


def overwrite(value: int, *keys: int) -> Act:
    new = [(k, value) for k in keys]

    def means(rows: State) -> tuple[State, Answer]:
        found = matching(rows, 1, value)
        kept = without(rows, found)
        if {k for k, _ in kept} & set(keys):
            return rows, "KeyViolation"
        gone = [k for k, _ in found if k not in keys]
        return state([*kept, *new]), (len(new), len(gone))

    return Act(
        f"overwrite({new}, v = {value})",
        lambda t: t.overwrite(kv(*new), where=f"v = {value}"),
        means,
        reads=True,
    )


def upsert(*new: tuple[int, int]) -> Act:
    def means(rows: State) -> tuple[State, Answer]:
        return state({**dict(rows), **dict(new)}.items()), (len(new), 0)

    return Act(f"upsert({new})", lambda t: t.upsert(kv(*new)), means)


def delete_keys(*keys: int) -> Act:
    def means(rows: State) -> tuple[State, Answer]:
        return state(row for row in rows if row[0] not in keys), (0, len(keys))

    return Act(f"delete(keys={keys})", lambda t: t.delete(keys=pa.table({"k": keys})), means)


def append(*new: tuple[int, int]) -> Act:
    return Act(
        f"append({new})",
        lambda t: t.append(kv(*new)),
        lambda rows: (state([*rows, *new]), (len(new), 0)),
    )


def replace_all(*new: tuple[int, int]) -> Act:
    return Act(
        f"overwrite({new})", lambda t: t.overwrite(kv(*new)), lambda _rows: (state(new), ANY)
    )


COMPACT = Act("compact()", lambda t: t.compact(), lambda rows: (rows, ANY))
SHARED = (
    update(1, 0, "1"),
    update(1, 1, "0"),
    update(0, 1, "v + 1"),
    update(0, 2, "0"),
    delete(1, 0),
    delete(1, 1),
    delete(0, 2),
    delete_planned(1),
    replace_all((2, 1)),
    COMPACT,
)
KEYED = (
    *SHARED,
    overwrite(1, 3),
    overwrite(0, 1, 2),
    upsert((1, 0), (2, 1)),
    upsert((3, 1)),
    upsert((1, 1)),
    delete_keys(1, 3),
)
UNKEYED = (*SHARED, append((1, 1)), append((3, 0), (3, 1)))
STARTS: Mapping[bool, tuple[tuple[tuple[int, int], ...], ...]] = {
    True: (((1, 0), (2, 1)), ((1, 1), (2, 1), (3, 0))),
    False: (((1, 0), (2, 1)), ((1, 1), (2, 1), (2, 1))),
}
# Which change is run amid which try of which: change -> {try -> changes}
SHAPES: tuple[Mapping[int, Mapping[int, tuple[int, ...]]], ...] = (
    {0: {0: (1,)}, 1: {0: (2,)}},  # each amid the one before
    {0: {0: (1, 2)}},  # two in turn amid the first
    {0: {0: (1,), 1: (2,)}},  # another at each try
)


def play(table: Table, acts: Sequence[Act], shape: Any) -> list[Played]:
    """Run the first change, the others amid its tries or theirs; what happened, in no order."""
    played: list[Played] = []
    left = set(range(len(acts)))

    def start(index: int) -> None:
        if index >= len(acts) or index not in left:
            return
        left.discard(index)
        amid = shape.get(index, {})

        def meddle(attempt: int) -> None:
            for other in amid.get(attempt, ()):
                start(other)

        handle = meddled(rowsieve.open_table(table.uri), meddle)
        before = handle.version
        try:
            commit = acts[index].run(handle)
        except (KeyViolation, StalePlan) as error:
            played.append(Played(acts[index], type(error).__name__, None))
            return
        made = commit.version > before and commit.operation == table.history(1)[0].operation
        version = commit.version if made and (commit.parts_added or commit.parts_removed) else None
        played.append(Played(acts[index], (commit.rows_written, commit.rows_deleted), version))

    start(0)
    for index in sorted(left):  # a try that the shape waits for never came
        start(index)
    return played


def is_serial(start: State, end: State, played: Sequence[Played]) -> bool:
    """Whether some order of the changes explains the rows and every answer."""
    for order in itertools.permutations(played):
        versions = [each.version for each in order if each.version is not None]
        if versions != sorted(versions):
            continue
        rows, fits = start, True
        for each in order:
            if each.answer == "StalePlan":
                continue  # refused: it changed nothing and told nothing
            after, expected = each.act.means(rows)
            fits = fits and expected == each.answer
            rows = after
        if fits and rows == end:
            return True
    return False


def check(acts: Sequence[Act], shape: Any, rows: State, *, key: bool) -> None:
    values = {"k": [k for k, _ in rows], "v": [v for _, v in rows]}
    table = keyed(values) if key else appended(values)
    start = state(rows)
    played = play(table, acts, shape)
    end = state((row["k"], row["v"]) for row in table.scan().to_arrow().to_pylist())
    assert is_serial(start, end, played), (start, played, end)


@pytest.mark.parametrize("key", [True, False])
def test_every_pair_with_a_change_that_reads_has_a_serial_order(key: bool) -> None:
    acts = KEYED if key else UNKEYED
    pairs = [(ours, theirs) for ours in acts if ours.reads for theirs in acts]
    for number, pair in some([*enumerate(pairs)], 2, today().toordinal()):
        for start in STARTS[key] if IS_DEEP else [STARTS[key][number // 2 % 2]]:
            check(pair, SHAPES[0], start, key=key)


@given(
    st.booleans().flatmap(
        lambda key: st.tuples(
            st.just(key),
            st.lists(st.sampled_from(KEYED if key else UNKEYED), min_size=3, max_size=3),
            st.sampled_from(STARTS[key]),
        )
    ),
    st.sampled_from(SHAPES),
)
@example((True, [update(1, 0, "1"), update(1, 1, "0"), upsert((3, 1))], STARTS[True][0]), SHAPES[1])
@examples(25)
def test_three_concurrent_changes_have_a_serial_order(
    story: tuple[bool, list[Act], State], shape: Any
) -> None:
    key, acts, start = story
    check(acts, shape, start, key=key)


def test_the_model_tells_write_skew_from_a_serial_order() -> None:
    skew = [update(1, 0, "1"), update(1, 1, "0")]
    start, swapped = state([(1, 0), (2, 1)]), state([(1, 1), (2, 0)])
    played = [Played(act, (1, 0), version) for act, version in zip(skew, (3, 2), strict=True)]
    assert not is_serial(start, swapped, played)
    table = keyed({"k": [1], "v": [0]}, {"k": [2], "v": [1]}, properties={"isolation": "snapshot"})
    happened = play(table, skew, SHAPES[0])
    end = state((row["k"], row["v"]) for row in table.scan().to_arrow().to_pylist())
    assert (end, {each.answer for each in happened}) == (swapped, {(1, 0)})
