"""Random histories of lists in two tables of one database: transactions read and append to both.

Even keys are in one table, odd ones in the other, so that most transactions are over both.
`list_append.py` finds what no serial execution explains, cycles over both tables included.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Final

import pyarrow as pa

from rowsieve import Database
from tests.simulation.bucket import FaultPlan
from tests.simulation.database_calls import pinned
from tests.simulation.database_judge import DATABASE
from tests.simulation.histories import (
    FAULTS,
    KEYS,
    Appender,
    History,
    any_of,
    appended,
    finished,
    lists_of,
)
from tests.simulation.list_append import Lists, Transaction
from tests.simulation.processes import SimulatedProcess
from tests.simulation.scheduler import Scheduler
from tests.simulation.world import Setting, World

NAMES: Final = ("even", "odd")
SCHEMA: Final = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])


class TwoTables:
    """The lists of two tables."""

    def __init__(self, world: World, process: SimulatedProcess) -> None:
        del world, process  # the store of the process that runs is opened
        self._database = Database(DATABASE)

    def read(self) -> Lists:
        """Read both tables in one version, as a join does."""
        opened = self._database.opener()
        return {key: each for name in NAMES for key, each in lists_of(pinned(opened(name))).items()}

    def append(self, keys: Sequence[int], element: int) -> int:
        """Append by a transaction that reads nothing but what it changes."""
        self.transact((), keys, element)
        return len(keys)

    def transact(self, asked: Sequence[int], keys: Sequence[int], element: int) -> Lists:
        """Read the lists that are asked for, each in its table, then append to others."""
        lists: dict[int, Sequence[int]] = {}
        with self._database.transaction() as tx:
            for name, some in _by_table(asked):
                lists |= lists_of(tx.table(name).scan(any_of(some)))
            for name, some in _by_table(keys):
                tx.table(name).update(appended(element), where=any_of(some))
        return lists


def run_history(seed: int, *, each: int = 4, transacts: float = 0.7) -> History:
    """Run a random history, in which an actor makes so many transactions."""
    draws = random.Random(f"database history {seed}")
    scheduler = Scheduler(draws.choice)
    world = World(f"database history {seed}", Setting(keyed=True), scheduler)
    transactions: list[Transaction] = []
    with world.entered():
        keyed, inline = draws.random() < 0.6, draws.choice([0, 16_384])
        database = Database(DATABASE)
        for name, keys in _by_table(KEYS):
            rows = pa.table({"k": keys, "v": [""] * len(keys)}, schema=SCHEMA)
            properties = {"inline_bytes": inline, "checkpoint_interval": draws.choice([1, 3])}
            key = ["k"] if keyed else None
            database.create_table(name, rows, key, properties=properties)
        for number in range(draws.choice([2, 3])):
            process = world.process(f"p{number}", FaultPlan(draws.choice(FAULTS)))
            actor = Appender(world, f"a{number}", process, transactions, TwoTables)
            scheduler.spawn(process, actor.name, partial(actor.run, each, transacts))
        scheduler.spawn(world.process("keeper"), "keeper", partial(_keep, random.Random(seed)))
        problems = finished(world, transactions, TwoTables)
    return History(seed, transactions, problems)


def _keep(draws: random.Random) -> None:
    database = Database(DATABASE)
    for _ in range(3):
        table = database.open_table(draws.choice(NAMES))
        match draws.randrange(4):
            case 0:
                table.compact()
            case 1:
                table.vacuum(retain_last=2, grace_s=0)
            case 2:
                table.analyze()
            case _:
                database.vacuum(retain_s=0)


def _by_table(keys: Sequence[int]) -> list[tuple[str, list[int]]]:
    """The tables of some keys, with these."""
    parts = ((name, [key for key in keys if key % 2 == i]) for i, name in enumerate(NAMES))
    return [(name, some) for name, some in parts if some]
