"""The cases of the suite; every answer is compared with the expected rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.measure import Series
from benchmarks.peers.protocol import Keys
from benchmarks.peers.registry import System
from benchmarks.result import Case, WrongAnswer, expect
from benchmarks.suite.child import read_ipc, write_ipc
from benchmarks.suite.field import Check, Field
from benchmarks.suite.sizes import Sizes

NewField = Callable[[str, Path], Field]
"""(kind, folder) -> its systems, each with an empty folder of its own."""


class Expected:
    """The rows that every system must have, in key order."""

    def __init__(self, sizes: Sizes, folder: Path) -> None:
        self.rows = data.rows(sizes.rows)
        self.folder = folder
        self._sizes = sizes
        self._files = 0

    def chunks(self) -> list[str]:
        """The rows as files to load."""
        step = -(-self.rows.num_rows // self._sizes.chunks)
        starts = range(0, self.rows.num_rows, step)
        return [self._write(self.rows.slice(start, step)) for start in starts]

    def change(self, count: int, seed: int) -> str:
        """Change random rows of the expected rows; returns the changes as a file to upsert."""
        changed = data.changes(self._sizes.rows, count, seed)
        self.rows = data.replaced(self.rows, changed)
        return self._write(changed)

    def of(self, keys: Keys) -> pa.Table:
        """The rows with these keys."""
        if keys.lower is None or keys.upper is None:
            return self.rows
        ids = self.rows.column(data.KEY).to_numpy()
        start, stop = np.searchsorted(ids, np.array([keys.lower, keys.upper + 1]))
        return self.rows.slice(int(start), int(stop - start))

    def digest_check(self, what: str, keys: Keys) -> Check:
        """A check of an answer's count and sums."""
        wanted = data.digest(self.of(keys))

        def check(system: str, answer: object) -> None:
            expect(f"{what}, {keys.sql}, by {system}", answer, wanted)

        return check

    def exact_check(self, what: str, keys: Keys, path: Path) -> Check:
        """A check of the rows themselves, which the system writes to a file."""
        wanted = self.of(keys)

        def check(system: str, answer: object) -> None:
            del answer
            if not data.same_rows(read_ipc(str(path)), wanted):
                raise WrongAnswer(f"{what}, {keys.sql}: {system} gives other rows")

        return check

    def _write(self, rows: pa.Table) -> str:
        self._files += 1
        return write_ipc(rows.combine_chunks(), self.folder / f"rows-{self._files}.arrow")


def life(sizes: Sizes, folder: Path, new_field: NewField) -> list[Case]:
    """Load a table, upsert 1% and 50%, and compact it; read it after each step."""
    expected, field = Expected(sizes, folder), new_field("systems", folder)
    changers = field.only(_has_data, "reads another system's table")
    with changers.fresh():
        loading = changers.each("load", rows=expected.chunks())
    cases = [field.case("load", [Series(name, samples=[s]) for name, s in loading.items()])]
    cases += _reads(sizes, expected, field, "clean")
    for share, commits in ((0.01, sizes.few_commits), (0.5, sizes.many_commits)):
        state = f"after {share:.0%}"
        cases.append(_upserts(sizes, expected, field, share, commits))
        cases += _reads(sizes, expected, field, state)
    cases.append(_compaction(expected, field))
    cases += _reads(sizes, expected, field, "compacted")[:1]
    return cases


def upsert(sizes: Sizes, folder: Path, new_field: NewField) -> list[Case]:
    """Upserts of random rows into a clean table, one after another."""
    expected, field = Expected(sizes, folder), new_field("systems", folder)
    field = field.only(_has_data, "reads another system's table")
    with field.fresh():
        field.each("load", rows=expected.chunks())
    requests = [
        {"rows": expected.change(sizes.upserted, seed=900 + turn)}
        for turn in range(sizes.repeats + 1)
    ]
    with field.fresh():
        field.each("open")
        case = field.in_turns(
            f"upsert of {sizes.upserted:,}", "upsert", requests, [_any] * len(requests)
        )
    _check_all(expected, field, "upsert")
    return [case]


def opening(sizes: Sizes, folder: Path, new_field: NewField) -> list[Case]:
    """Opening a table of some commits, warm."""
    few = Sizes(rows=100, chunks=1)
    expected, field = Expected(few, folder), new_field("systems", folder)
    field = field.only(
        lambda system: system.logged, "keeps no log of commits, or does not count them"
    )
    changes = [expected.change(10, seed=turn) for turn in range(sizes.commits)]
    with field.fresh():
        field.each("load", rows=Expected(few, folder).chunks())
        for change in changes:
            field.each("upsert", rows=change)
    with field.fresh():
        check = _equals("commits", sizes.commits)
        turns = sizes.repeats * 2 + 1
        case = field.in_turns(
            f"opening after {sizes.commits} commits", "reopen", [{}] * turns, [check] * turns
        )
    return [case]


def planning(sizes: Sizes, folder: Path, new_field: NewField) -> list[Case]:
    """Find the parts for one key among many."""
    cases = []
    for parts in sizes.parts:
        field = new_field("planners", folder / str(parts))
        with field.fresh():
            field.each("build", parts=parts)
        turns = sizes.repeats + 1
        with field.fresh():
            opened = field.in_turns(f"open {parts:,} parts", "open", [{}] * turns, [_any] * turns)
            rng = np.random.default_rng(parts)
            keys = [{"key": int(key)} for key in rng.integers(0, parts * 10_000, turns)]
            check = _equals("parts", 1)
            planned = field.in_turns(f"plan over {parts:,} parts", "plan", keys, [check] * turns)
        cases += [opened, planned]
    return cases


CASES: dict[str, Callable[[Sizes, Path, NewField], list[Case]]] = {
    "life": life,
    "upsert": upsert,
    "opening": opening,
    "planning": planning,
}


def _reads(sizes: Sizes, expected: Expected, field: Field, state: str) -> list[Case]:
    """Full, range and point reads and the count, in fresh processes; the first runs are apart."""
    rng = np.random.default_rng(len(state))
    width = sizes.rows // 100
    starts = rng.integers(0, sizes.rows - width, sizes.repeats + 1) * 2
    points = rng.integers(0, sizes.rows, sizes.points + 1) * 2
    groups = {
        "full scan": [Keys()] * (sizes.repeats + 1),
        "1% range": [Keys(int(start), int(start) + 2 * width - 1) for start in starts],
        "point": [Keys(int(key), int(key)) for key in points],
    }
    cases = []
    with field.fresh():
        field.each("open")
        for group, asked in groups.items():
            name = f"{group}, {state}"
            if group == "full scan" and sizes.rows <= sizes.compared_rows:
                path = expected.folder / "found.arrow"
                for keys in {keys for some in groups.values() for keys in some}:
                    check = expected.exact_check(name, keys, path)
                    field.each("select", check, keys=[keys.lower, keys.upper], out=str(path))
            cases.append(
                field.in_turns(
                    name,
                    "select",
                    [{"keys": [keys.lower, keys.upper]} for keys in asked],
                    [expected.digest_check(name, keys) for keys in asked],
                )
            )
        counted = _equals("count", expected.rows.num_rows)
        turns = sizes.repeats + 1
        request = {"keys": [None, None]}
        cases.append(
            field.in_turns(f"count, {state}", "count", [request] * turns, [counted] * turns)
        )
    return cases


def _upserts(sizes: Sizes, expected: Expected, field: Field, share: float, commits: int) -> Case:
    rows = int(sizes.rows * share) // commits
    for system in tuple(field.systems):
        if system.most_changed is not None and rows * commits > system.most_changed:
            field.drop(system.name, f"not measured: {system.why}")
    changers = field.only(_has_data, "reads another system's table")
    requests = [{"rows": expected.change(rows, seed=commits + i)} for i in range(commits)]
    with changers.fresh():
        changers.each("open")
        return changers.in_turns(
            f"upsert of {rows:,}, {share:.0%} in all",
            "upsert",
            requests,
            [_any] * commits,
            has_first=False,
        )


def _compaction(expected: Expected, field: Field) -> Case:
    compacting = field.only(lambda system: system.compacts, "does not compact")
    with compacting.fresh():
        compacting.each("open")
        samples = compacting.each("compact")
    series = [Series(name, samples=[sample]) for name, sample in samples.items()]
    _check_all(expected, compacting, "compaction")
    return compacting.case("compaction after 50%", series)


def _check_all(expected: Expected, field: Field, after: str) -> None:
    with field.fresh():
        field.each("open")
        check = expected.digest_check(f"after {after}", Keys())
        field.each("select", check, keys=[None, None])


def _any(system: str, answer: object) -> None:
    """Nothing to compare."""


def _equals(what: str, wanted: int) -> Check:
    return lambda system, answer: expect(f"{what} by {system}", answer, wanted)


def _has_data(system: System) -> bool:
    return system.data is None
