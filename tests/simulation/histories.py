"""Random histories of lists in a table: actors append by updates and read, others clean up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import pyarrow as pa

from rowsieve import Table
from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    RowsieveError,
    SnapshotExpired,
    StoreError,
)
from rowsieve.opening import create_table
from tests.faults.vocabulary import Fault
from tests.simulation.bucket import FaultPlan
from tests.simulation.list_append import READ_ALL_AT_THE_END, Lists, Transaction, anomalies
from tests.simulation.processes import SimulatedProcess
from tests.simulation.scheduler import Scheduler, Task
from tests.simulation.world import URI, Setting, World

KEYS: Final = range(4)
FAULTS: Final[Sequence[dict[Fault, float]]] = (
    {},
    {},
    {Fault.LOST_ANSWER: 0.08, Fault.EXISTS_AFTER: 0.05},
    {Fault.APPLIED_LATE: 0.1, Fault.DUPLICATE: 0.05},
)


class History(NamedTuple):
    """A history and what no serial execution explains in it."""

    seed: int
    transactions: Sequence[Transaction]
    problems: Sequence[str]


def run_history(seed: int, *, each: int = 4, transacts: float = 0.0) -> History:
    """Run a random history, in which an actor makes so many transactions.

    `transacts`: the share of those that are made by several calls, which read before they append.
    """
    draws = random.Random(f"history {seed}")
    scheduler = Scheduler(lambda ready: _chosen(draws, ready))
    setting = Setting(keyed=draws.random() < 0.6, interval=draws.choice([1, 3]))
    world = World(f"history {seed}", setting, scheduler)
    found: list[Transaction] = []
    with world.entered():
        schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
        rows = pa.table({"k": list(KEYS), "v": [""] * len(KEYS)}, schema=schema)
        create_table(URI, rows, key=["k"] if setting.keyed else None, properties=setting.properties)
        for number in range(draws.choice([2, 3])):
            plan = FaultPlan(draws.choice(FAULTS))
            actor = _Appender(world, f"a{number}", world.process(f"p{number}", plan), found)
            scheduler.spawn(actor.process, actor.name, partial(actor.run, each, transacts))
        keeper = world.process("keeper")
        scheduler.spawn(keeper, "keeper", lambda: _keep(world, keeper, random.Random(seed)))
        problems = _finished(world, found)
    return History(seed, found, problems)


def _finished(world: World, found: list[Transaction]) -> list[str]:
    def read_all() -> None:
        now = world.scheduler.now_us + 1
        lists = lists_of(world.table(world.judge))
        found.append(Transaction(READ_ALL_AT_THE_END, now, now + 1, read=lists))

    world.run()
    world.judge_by(read_all)
    return world.problems or anomalies(found)


class _Appender:
    """An actor that appends to lists and reads them."""

    def __init__(
        self, world: World, name: str, process: SimulatedProcess, found: list[Transaction]
    ) -> None:
        self.name, self.process = name, process
        self._world, self._found = world, found
        self._draws = random.Random(f"{world.seed} {name}")

    def run(self, count: int, transacts: float) -> None:
        """Make so many transactions."""
        table = self._world.table(self.process)
        for number in range(count):
            if transacts and self._draws.random() < transacts:
                self._transact(table, number)
                continue
            if self._draws.random() < 0.35:
                self._read(table, number)
            else:
                self._append(table, number)

    def _read(self, table: Table, number: int) -> None:
        begun = self._now()
        try:
            lists = lists_of(table)
        except (StoreError, CorruptData):
            return
        self._found.append(Transaction(f"{self.name}.{number}", begun, self._now(), read=lists))

    def _append(self, table: Table, number: int) -> None:
        keys = sorted(self._draws.sample(KEYS, self._draws.randint(1, 2)))
        element = 100 * (1 + int(self.name[1:])) + number
        where = " OR ".join(f"k = {key}" for key in keys)
        begun, ended, refused = self._now(), None, False
        injected = self._injected()
        try:
            commit = table.update({"v": f"concat(v, '{element},')"}, where=where)
            ended = self._now()
            assert commit.rows_written == len(keys)
        except CommitConflict:
            refused = self._injected() == injected
        except RowsieveError as error:
            if self._injected() == injected:
                self._world.problems.append(f"{self.name}.{number}: {error!r}")
        name = f"{self.name}.{number}"
        self._found.append(Transaction(name, begun, ended, element, keys, is_refused=refused))

    def _transact(self, table: Table, number: int) -> None:
        """Read some lists, append to others, and commit both as one transaction."""
        keys = sorted(self._draws.sample(KEYS, self._draws.randint(1, 2)))
        asked = self._draws.sample(KEYS, self._draws.randint(1, 3))
        element = 100 * (1 + int(self.name[1:])) + number
        begun, ended, refused, injected = self._now(), None, False, self._injected()
        lists: Lists = {}
        try:
            with table.transaction() as tx:
                read = lists_of(tx, " OR ".join(f"k = {key}" for key in asked))
                for key in keys:
                    tx.update({"v": f"concat(v, '{element},')"}, where=f"k = {key}")
            lists, ended = read, self._now()
        except CommitConflict:
            refused = self._injected() == injected
        except RowsieveError as error:
            if self._injected() == injected and not isinstance(error, SnapshotExpired):
                self._world.problems.append(f"{self.name}.{number}: {error!r}")
        name = f"{self.name}.{number}"
        self._found.append(Transaction(name, begun, ended, element, keys, lists, refused))

    def _now(self) -> int:
        return self._world.scheduler.now_us

    def _injected(self) -> int:
        assert self.process.store is not None
        return self.process.store.injected


def _keep(world: World, process: SimulatedProcess, draws: random.Random) -> None:
    table = world.table(process)
    for _ in range(3):
        match draws.randrange(3):
            case 0:
                table.compact()
            case 1:
                table.vacuum(retain_last=2, grace_s=0)
            case _:
                table.analyze()


def lists_of(table: Table, where: str | None = None) -> Lists:
    """Read lists of the newest version."""
    rows = table.scan(where).to_arrow().to_pylist()
    return {row["k"]: [int(text) for text in row["v"].split(",") if text] for row in rows}


def _chosen(draws: random.Random, ready: Sequence[Task]) -> Task:
    return draws.choice(ready)
