"""Random histories of lists in a table: actors append by updates and read, others clean up."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from rowsieve import Scan
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
from tests.simulation.world import URI, Setting, World, with_drawn_storage

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
    setting = Setting(keyed=draws.random() < 0.6, checkpoint_interval=draws.choice([1, 3]))
    setting = with_drawn_storage(setting, f"history {seed}")
    world = World(f"history {seed}", setting, scheduler)
    found: list[Transaction] = []
    with world.entered():
        schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
        rows = pa.table({"k": list(KEYS), "v": [""] * len(KEYS)}, schema=schema)
        create_table(URI, rows, key=["k"] if setting.keyed else None, properties=setting.properties)
        for number in range(draws.choice([2, 3])):
            plan = FaultPlan(draws.choice(FAULTS))
            process = world.process(f"p{number}", plan)
            actor = Appender(world, f"a{number}", process, found, OneTable)
            scheduler.spawn(actor.process, actor.name, partial(actor.run, each, transacts))
        keeper = world.process("keeper")
        scheduler.spawn(keeper, "keeper", lambda: _keep(world, keeper, random.Random(seed)))
        problems = finished(world, found, OneTable)
    return History(seed, found, problems)


def finished(
    world: World,
    found: list[Transaction],
    open_place: Callable[[World, SimulatedProcess], Place],
) -> list[str]:
    """Run the actors, read all lists, and return what is wrong."""

    def read_all() -> None:
        now = world.scheduler.now_us + 1
        lists = open_place(world, world.judge).read()
        found.append(Transaction(READ_ALL_AT_THE_END, now, now + 1, read=lists))

    world.run()
    world.judge_by(read_all)
    return world.problems or anomalies(found)


class Place(Protocol):
    """Where lists are."""

    def read(self) -> Lists:
        """Read all lists of the newest version."""
        ...

    def append(self, keys: Sequence[int], element: int) -> int:
        """Append to some lists in one statement or transaction; to how many."""
        ...

    def transact(self, asked: Sequence[int], keys: Sequence[int], element: int) -> Lists:
        """Read some lists, append to others, and commit both as one transaction."""
        ...


class OneTable:
    """The lists of one table."""

    def __init__(self, world: World, process: SimulatedProcess) -> None:
        self._table = world.table(process)

    def read(self) -> Lists:
        """Read all lists of the newest version."""
        return lists_of(self._table.scan())

    def append(self, keys: Sequence[int], element: int) -> int:
        """Append by one statement."""
        commit = self._table.update(appended(element), where=any_of(keys))
        return commit.rows_written

    def transact(self, asked: Sequence[int], keys: Sequence[int], element: int) -> Lists:
        """Append by a statement for each list."""
        with self._table.transaction() as tx:
            lists = lists_of(tx.scan(any_of(asked)))
            for key in keys:
                tx.update(appended(element), where=f"k = {key}")
        return lists


def appended(element: int) -> dict[str, str]:
    """The assignment that appends to a list."""
    return {"v": f"concat(v, '{element},')"}


def any_of(keys: Sequence[int]) -> str:
    """The condition for the rows of some lists."""
    return " OR ".join(f"k = {key}" for key in keys)


class Appender:
    """An actor that appends to lists and reads them."""

    def __init__(
        self,
        world: World,
        name: str,
        process: SimulatedProcess,
        found: list[Transaction],
        open_place: Callable[[World, SimulatedProcess], Place],
    ) -> None:
        self.name, self.process, self._open = name, process, open_place
        self._world, self._found = world, found
        self._draws = random.Random(f"{world.seed} {name}")

    def run(self, count: int, transacts: float) -> None:
        """Make so many transactions."""
        place = self._open(self._world, self.process)
        for number in range(count):
            if transacts and self._draws.random() < transacts:
                self._transact(place, number)
                continue
            if self._draws.random() < 0.35:
                self._read(place, number)
            else:
                self._append(place, number)

    def _read(self, place: Place, number: int) -> None:
        begun = self._now()
        try:
            lists = place.read()
        except (StoreError, CorruptData):
            return
        self._found.append(Transaction(f"{self.name}.{number}", begun, self._now(), read=lists))

    def _append(self, place: Place, number: int) -> None:
        keys = sorted(self._draws.sample(KEYS, self._draws.randint(1, 2)))
        element = 100 * (1 + int(self.name[1:])) + number
        begun, ended, refused = self._now(), None, False
        injected = self._injected()
        try:
            rows = place.append(keys, element)
            ended = self._now()
            assert rows == len(keys)
        except CommitConflict:
            refused = self._injected() == injected
        except RowsieveError as error:
            if self._injected() == injected:
                self._world.problems.append(f"{self.name}.{number}: {error!r}")
        name = f"{self.name}.{number}"
        self._found.append(Transaction(name, begun, ended, element, keys, is_refused=refused))

    def _transact(self, place: Place, number: int) -> None:
        """Read some lists, append to others, and commit both as one transaction."""
        keys = sorted(self._draws.sample(KEYS, self._draws.randint(1, 2)))
        asked = self._draws.sample(KEYS, self._draws.randint(1, 3))
        element = 100 * (1 + int(self.name[1:])) + number
        begun, ended, refused, injected = self._now(), None, False, self._injected()
        lists: Lists = {}
        try:
            lists, ended = place.transact(asked, keys, element), self._now()
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


def lists_of(scan: Scan) -> Lists:
    """Read lists."""
    rows = scan.to_arrow().to_pylist()
    return {row["k"]: [int(text) for text in row["v"].split(",") if text] for row in rows}


def _chosen(draws: random.Random, ready: Sequence[Task]) -> Task:
    return draws.choice(ready)
