"""Random runs over a differential table: appenders that compete for times, and those who read.

python -m tests.simulation.differential_runs FIRST LAST     runs seeds FIRST to LAST - 1, each also
                                                            beside changes of the columns

Each version is compared with a multiset by time, replayed from the calls of the log's entries.
Readers, subscriptions and leases are held against the times that `since` and `upper` allow.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias

import pyarrow as pa

from rowsieve import Table
from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    InvalidInput,
    InvalidSchemaChange,
    SnapshotExpired,
    StoreError,
)
from rowsieve.objects import NotCreated
from rowsieve.opening import create_table
from rowsieve.storage.differential import frontiers_of
from rowsieve.storage.log.log_entry import LogEntry
from tests.simulation.commands import main
from tests.simulation.judge import chain_of
from tests.simulation.processes import SimulatedProcess
from tests.simulation.scheduler import Scheduler
from tests.simulation.seeds import FAULTS, Run, applying_late, chooser, fault_plan
from tests.simulation.world import ATTEMPTS, URI, Setting, World, with_drawn_storage

Update: TypeAlias = tuple[int, int, int, int]
"""k, v, time and difference."""
NAMES: Final = ("k", "v", "time", "diff")
SCHEMA: Final = pa.schema([("k", pa.int64()), ("v", pa.int64())])
UPDATES: Final = pa.schema(
    [*SCHEMA, pa.field("time", pa.uint64(), nullable=False), pa.field("diff", pa.int64())]
)
KINDS: Final = ("none", *sorted({*FAULTS} - {"disk"}))
CALLS: Final = {
    "append": 8, "advance": 3, "compact": 3, "vacuum": 1, "read": 4, "subscribe": 2, "lease": 1,
}  # fmt: skip
ROLES: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "any": (),
    "merging": (("subscribe",) * 2, ("append", "advance", "compact") * 3),
    "leasing": (("lease", "read") * 2, ("append", "advance") * 3),
    "racing": (("append",) * 5, ("advance",) * 5),
}
"""The calls of each actor by the style of a run; without roles they are drawn from `CALLS`."""
PAUSES: Final = (0, 20, 80)
"""Steps of others that a subscriber waits for before it asks for another item."""
CODECS: Final = ("msgpack", "json")
FORMS: Final = ("columns", "both", "codec")
READS: Final = ("columns", "codec", "shadow")
GONE: Final = (SnapshotExpired, InvalidInput)
"""What a reader of a time is told that was given up, or is not complete."""


@dataclass(frozen=True)
class State:
    """The updates of a version, and its frontiers."""

    updates: tuple[Update, ...] = ()
    since: int = 0
    upper: int = 0

    def sums(self, at: int) -> dict[tuple[int, int], int]:
        """The rows at a time with their multiplicities."""
        total: Counter[tuple[int, int]] = Counter()
        for k, v, time, diff in self.updates:
            if time <= at:
                total[k, v] += diff
        return {row: count for row, count in total.items() if count}

    def between(self, lower: int, upper: int) -> Counter[tuple[int, int, int]]:
        """The updates of [lower, upper), added up by row and time."""
        total: Counter[tuple[int, int, int]] = Counter()
        for k, v, time, diff in self.updates:
            if lower <= time < upper:
                total[k, v, time] += diff
        return Counter({row: count for row, count in total.items() if count})


@dataclass(frozen=True)
class Append:
    """Updates of [lower, upper)."""

    updates: tuple[Update, ...]
    lower: int
    upper: int


@dataclass
class Collection:
    """A run: what its calls asked for, by mark, and what its readers saw."""

    world: World
    roles: Sequence[Sequence[str]] = ()
    appends: dict[str, Append] = field(default_factory=dict)
    advances: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    reads: list[tuple[str, int, int, dict[tuple[int, int], int]]] = field(default_factory=list)
    """Mark, version, time and sums."""
    items: list[tuple[str, Any]] = field(default_factory=list)
    """Mark and an item of a subscription."""
    leases: list[tuple[int, int, int]] = field(default_factory=list)
    """The version that a lease held, and when it began and ended."""
    begun: dict[str, int] = field(default_factory=dict)
    """When each call that advances `since` began."""
    moves: list[tuple[str, int, int]] = field(default_factory=list)
    """Mark of a commit that moved `since`, its new place, and the time of the commit."""

    def act(self, name: str, process: SimulatedProcess, draws: random.Random, calls: int) -> None:
        """Be an actor."""
        assert process.store is not None
        while True:
            try:
                table = self.world.table(process)
                break
            except (StoreError, CorruptData):
                if not process.store.injected:
                    raise
        chosen: Sequence[str] = draws.choices([*CALLS], [*CALLS.values()], k=calls)
        if self.roles:
            chosen = self.roles[int(name[1:]) % len(self.roles)]
        for number, what in enumerate(chosen):
            mark, injected = f"{name}.{number}", process.store.injected
            try:
                self._call(what, mark, table, draws)
            except (StoreError, NotCreated, CorruptData):
                if process.store.injected == injected:
                    raise
            except CommitConflict:
                if process.store.injected == injected:
                    self.refused.add(mark)

    def alter(self, process: SimulatedProcess, draws: random.Random, changes: int) -> None:
        """Be an actor that adds columns, which all rows have the default of, and drops them.

        It also changes the forms of the rows in new files.
        """
        assert process.store is not None
        for number in range(changes):
            injected = process.store.injected
            try:
                table = self.world.table(process)
                if draws.random() < 0.4:
                    names = {"row_codec": CODECS, "write_encoding": FORMS, "read_encoding": READS}
                    table.set_properties({name: draws.choice(each) for name, each in names.items()})
                elif (added := table.schema.names[2:-2]) and draws.random() < 0.5:
                    table.drop_column(draws.choice(added), if_exists=True)
                else:
                    table.add_column(f"n{number}", "int64", default=number)
            except CommitConflict:
                pass
            except (StoreError, NotCreated, CorruptData, InvalidSchemaChange):
                if process.store.injected == injected:
                    raise
            self._hold(draws.choice(PAUSES))

    def _call(self, what: str, mark: str, table: Table, draws: random.Random) -> None:
        notes: dict[str, Any] = {"metadata": {"mark": mark}, "token": (mark, 1)}
        match what:
            case "append":
                if draws.random() < 0.6:
                    table.refresh()
                self._append(mark, table, draws)
            case "advance":
                to = int(table.upper) - draws.choice([1, 1, 2, 4])  # type: ignore[arg-type]
                if to >= 0:
                    self.advances[mark] = to
                    self.begun[mark] = self.world.scheduler.now_us
                    self._told(mark, lambda: table.advance_since(to, **notes))
            case "compact":
                table.compact()
            case "vacuum":
                table.vacuum(retain_last=draws.randint(1, 2), grace_s=0)
            case "read":
                self._read(mark, table, draws)
            case "subscribe":
                self._subscribe(mark, table, draws)
            case _:
                self._lease(mark, table, draws)

    def _append(self, mark: str, table: Table, draws: random.Random) -> None:
        append = draw_append(draws, int(table.upper), _removable(table))  # type: ignore[arg-type]
        self.appends[mark] = append
        data = pa.Table.from_pylist(
            [dict(zip(NAMES, each, strict=True)) for each in append.updates], UPDATES
        )
        bounds = {"lower": append.lower, "upper": append.upper}
        notes: dict[str, Any] = {"metadata": {"mark": mark}, "token": (mark, 1), **bounds}
        self._told(mark, lambda: table.append_updates(data, **notes))

    def _told(self, mark: str, call: Callable[[], Any]) -> None:
        """Make a call, again after an error of the store: its token finds its commit."""
        for attempt in range(ATTEMPTS):
            try:
                commit = call()
            except (StoreError, NotCreated, CorruptData):
                if attempt + 1 == ATTEMPTS:
                    raise
            else:
                if commit.committed:
                    self.acknowledged[mark] = commit.version
                return

    def _read(self, mark: str, table: Table, draws: random.Random) -> None:
        version = None if draws.random() < 0.7 else max(0, table.version - draws.randrange(4))
        at = max(0, int(table.upper) - 1 - draws.randrange(3))  # type: ignore[arg-type]
        try:
            scan = table.scan(at=at, version=version)
            rows = scan.to_arrow().to_pylist()
        except GONE:
            return
        self.reads.append((mark, scan.version, at, _sums(rows)))

    def _subscribe(self, mark: str, table: Table, draws: random.Random) -> None:
        start = max(0, int(table.upper) - 1 - draws.randrange(3))  # type: ignore[arg-type]
        try:
            items = table.subscribe(start, interval_s=0.001)
            for number, item in enumerate(islice(items, draws.randint(1, 4))):
                self.items.append((mark, item))
                self._hold(draws.choice(PAUSES))
                self._append(f"{mark}.{number}", table, draws)  # so that there is a next item
        except GONE:
            return

    def _lease(self, mark: str, table: Table, draws: random.Random) -> None:
        """Hold the newest version: its times stay readable."""
        with table.lease(600.0) as pinned:
            begun_us = self.world.scheduler.now_us
            self._hold(draws.randint(1, 60))
            self.leases.append((pinned.version, begun_us, self.world.scheduler.now_us))

    def _hold(self, steps: int) -> None:
        for _ in range(steps):
            self.world.scheduler.park("hold")

    # Judging

    def judge(self) -> None:
        """Replay the log; compare the versions that have not expired and the answers of readers."""
        table = self.world.table(self.world.judge)
        states: dict[int, State] = {}
        marks: dict[str, int] = {}
        state = State()
        for number, entry in enumerate(chain_of(self.world, table.handle.pinned.commit_id)):
            state = self._after(state, entry)
            states[number] = state
            if (mark := entry.metadata.get("mark")) is not None:
                if mark in marks or mark in self.refused:
                    self._wrong(f"{mark} is at {marks.get(mark)} and {number}, or was refused")
                marks[mark] = number
            try:
                self._check_version(table, number, state)
            except SnapshotExpired:
                continue
        for mark, version in self.acknowledged.items():
            if marks.get(mark) != version:
                self._wrong(f"{mark} was acknowledged at {version}, and is at {marks.get(mark)}")
        self._check_readers(states)

    def _after(self, state: State, entry: LogEntry) -> State:
        mark = entry.metadata.get("mark")
        if (append := self.appends.get(mark or "")) is not None:
            assert entry.info is not None
            if (since := frontiers_of(entry.info).since) != state.since:
                self._wrong(f"{mark} moved since from {state.since} to {since} by an append")
            if append.lower != state.upper:
                self._wrong(f"{mark} begins at {append.lower}, and upper was {state.upper}")
            return State((*state.updates, *append.updates), state.since, append.upper)
        if (to := self.advances.get(mark or "")) is not None:
            assert entry.info is not None
            since = frontiers_of(entry.info).since
            if since != state.since:  # another call may have moved it as far meanwhile
                self.moves.append((mark or "", since, entry.timestamp_us))
                if not state.since < since <= to:
                    self._wrong(f"{mark} moved since from {state.since} to {since}, not to {to}")
            return State(state.updates, since, state.upper)
        return state

    def _check_version(self, table: Table, number: int, state: State) -> None:
        for at in range(state.since, state.upper):
            rows = table.scan(at=at, version=number).to_arrow().to_pylist()
            if _sums(rows) != state.sums(at) or len(rows) > len(state.sums(at)):
                self._wrong(f"version {number} at {at}: {_sums(rows)}, not {state.sums(at)}")

    def _check_readers(self, states: Mapping[int, State]) -> None:
        for mark, version, at, sums in self.reads:
            state = states[version]
            if not state.since <= at < state.upper or sums != state.sums(at):
                self._wrong(f"{mark} read {version} at {at}: {sums}, not {state.sums(at)}")
        reached: dict[str, int] = {}
        for mark, item in self.items:
            state = states[item.version]
            if reached.setdefault(mark, item.lower) != item.lower:
                self._wrong(f"{mark}: an item begins at {item.lower}, not at {reached[mark]}")
            reached[mark] = item.upper
            found = Counter[tuple[int, int, int]]()
            for row in item.rows.to_pylist():
                found[row["k"], row["v"], row["_rowsieve_time"]] += row["_rowsieve_diff"]
            is_first = item.upper == item.lower + 1 and found == _as_item(state, item.lower)
            if found != state.between(item.lower, item.upper) and not is_first:
                self._wrong(f"{mark}: {item.lower} to {item.upper} of {item.version}: {found}")
        for held, begun_us, ended_us in self.leases:
            for mark, since, at_us in self.moves:
                is_under = begun_us < self.begun[mark] and at_us < ended_us
                if is_under and since > states[held].since:
                    self._wrong(f"{mark} moved since to {since} under a lease of {held}")

    def _wrong(self, what: str) -> None:
        self.world.problems.append(what)


def _as_item(state: State, at: int) -> Counter[tuple[int, int, int]]:
    return Counter({(k, v, at): count for (k, v), count in state.sums(at).items()})


def _sums(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], int]:
    sums: Counter[tuple[int, int]] = Counter()
    for row in rows:
        sums[row["k"], row["v"]] += row["_rowsieve_diff"]
    return dict(sums)


def _removable(table: Table) -> Sequence[tuple[int, int]]:
    """Rows before the frontier, which updates may remove: no sum becomes negative."""
    upper: Any = table.upper
    return [] if upper == table.since else sorted(_sums(table.scan().to_arrow().to_pylist()))


def draw_append(draws: random.Random, lower: int, there: Sequence[tuple[int, int]]) -> Append:
    """Draw updates from a frontier on, which add rows, and remove some that are there or added."""
    upper = lower + draws.randint(1, 2)
    updates: list[Update] = []
    for k, v in there:
        if draws.random() < 0.4:
            updates.append((k, v, draws.randrange(lower, upper), -1))
    for _ in range(draws.randrange(4)):
        k, v, time = draws.randrange(3), draws.randrange(2), draws.randrange(lower, upper)
        updates.append((k, v, time, draws.choice([1, 1, 2])))
        if draws.random() < 0.3:
            updates.append((k, v, draws.randrange(time, upper), -1))
    return Append(tuple(updates), lower, upper)


def run_seed(seed: int, *, calls: int = 5, alters: bool = False) -> Run:
    """Run a seed and judge it; `alters`: beside another actor, which changes the columns."""
    draws = random.Random(f"differential {seed}")
    setting = Setting(keyed=False, checkpoint_interval=draws.choice([1, 2, 5]))
    setting = with_drawn_storage(setting, f"differential {seed}")
    scheduler = Scheduler(chooser(random.Random(f"schedule {seed}"), draws.choice([0, 0.6, 0.93])))
    world = World(
        f"differential {seed}", setting, scheduler, overlaps=draws.random() < setting.overlapping
    )
    faults, style = draws.choice(KINDS), draws.choice([*ROLES])
    run = Collection(world, ROLES[style])
    with world.entered():
        table = create_table(URI, SCHEMA, mode="differential", properties=setting.properties)
        for number in range(3):
            mark = f"first.{number}"
            run._call("append", mark, table, random.Random(mark))
        for number in range(draws.choice([2, 2, 3])):
            process = world.process(f"p{number}", fault_plan(faults, draws))
            own = random.Random(f"differential {seed} actor {number}")
            body = partial(run.act, f"a{number}", process, own, draws.randint(1, calls))
            world.scheduler.spawn(process, f"a{number}", body)
        if alters:
            own = random.Random(f"differential {seed} columns")
            process = world.process("columns", fault_plan(faults, own))
            body = partial(run.alter, process, own, own.randint(1, calls))
            world.scheduler.spawn(process, "columns", body)
        scheduler.before_step = applying_late(world, random.Random(f"late {seed}"))
        world.run()
        world.judge_by(run.judge)
    shape = f"{setting}, {style}, faults {faults}, overlaps {world.overlaps}"
    return Run(seed, shape, world.problems, scheduler.trace, len(run.appends))


if __name__ == "__main__":
    main(lambda seed: [run_seed(seed, alters=alters) for alters in (False, True)])
