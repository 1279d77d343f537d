"""What the suite measures; every answer is compared with the expected rows before it is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import data
from benchmarks.measure import Series, Work, sampled, take_turns
from benchmarks.result import Case, WrongAnswer, expect
from benchmarks.suite.systems import (
    Changer,
    Compacter,
    Keeper,
    Rowsieve,
    RowsieveInDataFusion,
    changers,
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of the table, and `repeats` per timed work."""

    rows: int = 1_000_000
    repeats: int = 5
    commits: int = 50


SMALL = Sizes()
TINY = Sizes(rows=2_000, repeats=1, commits=3)
BY_NAME = {"small": SMALL, "tiny": TINY}


def reads(sizes: Sizes, folder: Path, *, changed: float, rounds: int) -> list[Case]:
    """Full, point and range reads after `rounds` upserts of random rows, `changed` in all."""
    systems = list(changers(folder, data.rows(sizes.rows)))
    expected = _change(systems, data.rows(sizes.rows), sizes, changed, rounds)
    keepers: list[Keeper] = []
    for system in systems:
        keepers.append(system)
        if isinstance(system, Rowsieve):
            keepers.append(RowsieveInDataFusion(system))
    middle = sizes.rows - sizes.rows % 2  # a key, because keys are even and go up to 2 * rows
    conditions = {
        "full": "TRUE",
        "point": f"id = {middle}",
        "range, 1%": f"id >= {middle} AND id < {middle + sizes.rows // 50}",
    }
    state = f"after {changed:.0%} upserted" if rounds else "clean"
    cases = []
    for name, where in conditions.items():
        wanted = _matching(expected, name, middle, sizes)
        works: dict[str, Work] = {k.name: partial(k.select, where) for k in keepers}
        for keeper in keepers:
            if not data.same_rows(keeper.select(where), wanted):
                raise WrongAnswer(f"{name}, {state}: {keeper.name} gives other rows")
        cases.append(Case(f"{name} read, {state}", take_turns(works, sizes.repeats)))
    return cases


def upserts(sizes: Sizes, folder: Path) -> list[Case]:
    """Upserts of 1% random rows, one after another."""
    systems = list(changers(folder, data.rows(sizes.rows)))
    series = {system.name: Series(system.name) for system in systems}
    expected = data.rows(sizes.rows)
    for turn in range(sizes.repeats):
        rows = data.changes(sizes.rows, sizes.rows // 100, seed=turn)
        for system in systems:
            with sampled() as sample:
                system.upsert(rows)
            series[system.name].samples.append(sample)
        expected = data.replaced(expected, rows)
    _check_all(systems, expected, "upsert")
    return [Case("upsert of 1%", list(series.values()))]


def compaction(sizes: Sizes, folder: Path) -> list[Case]:
    """Rewriting after ten upserts of 1%, on a fresh table each time."""
    series: dict[str, Series] = {}
    for turn in range(max(1, sizes.repeats // 2)):
        fresh = folder / str(turn)
        fresh.mkdir()
        base = data.rows(sizes.rows)
        systems = [s for s in changers(fresh, base) if isinstance(s, Compacter)]
        expected = _change(systems, base, sizes, 0.1, 10)
        for system in systems:
            with sampled() as sample:
                system.compact()
            series.setdefault(system.name, Series(system.name)).samples.append(sample)
        _check_all(systems, expected, "compaction")
    return [Case("compaction after 10 x 1%", list(series.values()))]


def opening(sizes: Sizes, folder: Path) -> list[Case]:
    """Opening a table of some commits, warm."""
    base = data.rows(100)
    systems = [s for s in changers(folder, base) if isinstance(s, Compacter)]
    for turn in range(sizes.commits):
        for system in systems:
            system.upsert(data.changes(100, 10, seed=turn))
    for system in systems:
        expect(f"version by {system.name}", system.reopen(), sizes.commits)
    works: dict[str, Work] = {system.name: system.reopen for system in systems}
    return [Case(f"opening after {sizes.commits} commits", take_turns(works, sizes.repeats * 2))]


CASES: dict[str, Callable[[Sizes, Path], list[Case]]] = {
    "clean": partial(reads, changed=0.0, rounds=0),
    "changed_1": partial(reads, changed=0.01, rounds=1),
    "changed_50": partial(reads, changed=0.5, rounds=5),
    "upsert": upserts,
    "compaction": compaction,
    "opening": opening,
}


def _change(
    systems: Sequence[Changer], base: pa.Table, sizes: Sizes, changed: float, rounds: int
) -> pa.Table:
    expected = base
    for turn in range(rounds):
        rows = data.changes(sizes.rows, int(sizes.rows * changed) // rounds, seed=turn)
        for system in systems:
            system.upsert(rows)
        expected = data.replaced(expected, rows)
    return expected


def _check_all(systems: Sequence[Changer], expected: pa.Table, after: str) -> None:
    for system in systems:
        if not data.same_rows(system.select("TRUE"), expected):
            raise WrongAnswer(f"{after}: {system.name} does not hold the rows that it should")


def _matching(rows: pa.Table, name: str, middle: int, sizes: Sizes) -> pa.Table:
    ids = rows.column(data.KEY)
    if name == "full":
        return rows
    if name == "point":
        return rows.filter(pc.equal(ids, middle))
    stop = middle + sizes.rows // 50
    return rows.filter(pc.and_(pc.greater_equal(ids, middle), pc.less(ids, stop)))
