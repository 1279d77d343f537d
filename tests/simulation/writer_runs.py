"""Random runs of writers over one write-ahead log: their processes die, and others take the log.

python -m tests.simulation.writer_runs FIRST LAST     runs seeds FIRST to LAST - 1

A client changes keys of its own, so that each key has one order of calls. What was acknowledged is
there at the end, once; what was not may be. A process that lost its lock may go on beside its
successor. Calls on the log's files are steps of the schedule, at which the process may die, too.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from rowsieve import Table
from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    RowsieveError,
    SnapshotExpired,
    StoreError,
    WalLocked,
    WriterFailed,
    WriterFenced,
)
from rowsieve.opening import create_table
from tests.simulation.commands import main
from tests.simulation.log_files import OpenWriters, steps_on_log_files
from tests.simulation.processes import SimulatedProcess
from tests.simulation.scheduler import Scheduler, Task
from tests.simulation.seeds import FAULTS, Run, applying_late, chooser, fault_plan
from tests.simulation.world import URI, Setting, World, with_drawn_storage

SCHEMA: Final = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
KEYS: Final = 3  # of a client
CALLS: Final = {"write": 6, "delete": 2, "direct": 2, "flush": 1, "read": 3, "wait": 3}
KINDS: Final = ("none", *("death",) * 6, *sorted({*FAULTS} - {"death", "denied"}))
NO_LOCK: Final = 0.3  # how often a successor does not wait for the end of its predecessor


@dataclass
class Change:
    """A change of a key: its new value, None for a delete."""

    key: int
    value: int | None
    is_certain: bool = False
    """It was acknowledged."""


@dataclass
class Client:
    """What one client has asked for, in order. Keys and values are its own."""

    number: int
    changes: list[Change] = field(default_factory=list)

    def change(self, draws: random.Random, *, keyed: bool, deletes: bool = False) -> Change:
        """Draw the next change."""
        value = 100 * (self.number + 1) + len(self.changes)
        key = 10 * self.number + draws.randrange(KEYS) if keyed else value
        self.changes.append(Change(key, None if deletes else value))
        return self.changes[-1]

    def problems(self, rows: Counter[tuple[int, int]], where: str) -> list[str]:
        """What is wrong with the rows of the client's keys."""
        allowed: dict[int, set[int | None]] = {}
        for change in self.changes:
            before = set() if change.is_certain else allowed.get(change.key, {None})
            allowed[change.key] = before | {change.value}
        found: dict[int, list[int | None]] = {key: [] for key in allowed}
        for (key, value), count in rows.items():
            if key in found:
                found[key] += [value] * count
        return [
            f"{where}: key {key} has {values}, not one of {allowed[key]}"
            for key, values in found.items()
            if (values or [None])[0] not in allowed[key] or len(values) > 1
        ]


class Room:
    """A table, one log, and the processes that write through it."""

    def __init__(self, world: World, folder: Path, draws: random.Random) -> None:
        self.world, self.folder = world, folder
        self.keyed = world.setting.keyed
        self.clients: list[Client] = []
        self.writers = OpenWriters()
        self.settings: dict[str, Any] = {
            "flush_interval_s": draws.choice([0.002, 0.02, 1.0]),
            "flush_rows": draws.choice([1, 2, 5, 100]),
            "sync": draws.choice(["always", "always", "interval", "off"]),
            "sync_interval_s": 0.005,
            "compact": draws.random() < 0.3,
        }

    def client(self) -> Client:
        """A new client."""
        self.clients.append(Client(len(self.clients)))
        return self.clients[-1]

    def own(self, process: SimulatedProcess, seed: str, clients: int, before: Task | None) -> None:
        """Be a process: open a writer, let clients work, and close it."""
        scheduler, draws = self.world.scheduler, random.Random(seed)
        if before is not None:
            self._take_over(before, draws)
        if (table := self._opened(process)) is None:
            return
        try:
            writer = table.writer(wal_dir=self.folder, **self.settings)
        except (WalLocked, WriterFenced):
            return
        except (RowsieveError, OSError):
            if not process.store or not process.store.injected:
                raise
            return
        self.writers.note(process, writer)
        works = [
            scheduler.spawn_child(
                partial(self._work, process, self.client(), table, random.Random(f"{seed} {each}"))
            )
            for each in range(clients)
        ]
        scheduler.park("clients", lambda: all(each.is_done for each in works))
        with suppress(RowsieveError, OSError):  # what it acknowledged is in the log
            writer.close()

    def _take_over(self, before: Task, draws: random.Random) -> None:
        """Wait for the end of a predecessor, or take its log from it at some moment."""
        takes, park = draws.random() < NO_LOCK, self.world.scheduler.park
        park(
            "take over",
            lambda: before.has_ended or (takes and self.writers.has_one(before.process)),
        )
        for _ in range(draws.randrange(60) if takes else 0):
            park("take over")
        self.writers.give_up_locks(self.folder, of_living=takes)

    def _opened(self, process: SimulatedProcess) -> Table | None:
        assert process.store is not None
        try:
            return self.world.table(process)
        except (StoreError, CorruptData):
            if not process.store.injected:
                raise
            return None

    def _work(
        self, process: SimulatedProcess, client: Client, table: Table, draws: random.Random
    ) -> None:
        """Be a client of an open writer."""
        pending: list[tuple[Change, Any]] = []
        for what in draws.choices([*CALLS], [*CALLS.values()], k=draws.randint(2, 7)):
            try:
                self._call(what, client, table, draws, pending)
            except WriterFailed:
                return  # also of one that another has fenced
            except (StoreError, CorruptData, CommitConflict) as error:
                if not process.store or not process.store.injected:
                    self.world.problems.append(f"client {client.number} {what}: {error!r}")
        try:
            self._wait(pending)
        except (WriterFailed, StoreError):
            return

    def _call(
        self,
        what: str,
        client: Client,
        table: Table,
        draws: random.Random,
        pending: list[tuple[Change, Any]],
    ) -> None:
        writer: Any = table.handle.writer
        deletes = self.keyed and (what == "delete")
        match what:
            case "write" | "delete":
                change = client.change(draws, keyed=self.keyed, deletes=deletes)
                if deletes:
                    pending.append((change, writer.delete(keys={"k": change.key})))
                else:
                    add = writer.upsert if self.keyed else writer.append
                    pending.append((change, add({"k": change.key, "v": change.value})))
            case "direct":
                self._wait(pending)
                change = client.change(draws, keyed=self.keyed)
                rows = [{"k": change.key, "v": change.value}]
                (table.upsert if self.keyed else table.append)(rows)
                change.is_certain = True
            case "flush":
                writer.flush()
            case "read":
                read = rows_of(table)
                self.world.problems.extend(client.problems(read, "a read during the writer's life"))
            case _:
                self._wait(pending)

    def _wait(self, pending: list[tuple[Change, Any]]) -> None:
        while pending:
            change, acknowledgement = pending.pop(0)
            self.world.scheduler.park("acknowledgement", acknowledgement.done)
            acknowledgement.result()
            change.is_certain = True

    def keep(self, process: SimulatedProcess, seed: str) -> None:
        """Be another process, which writes keys of its own, and looks after the table."""
        draws, client = random.Random(seed), self.client()
        assert process.store is not None
        if (table := self._opened(process)) is None:
            return
        for _ in range(draws.randint(1, 4)):
            change = client.change(draws, keyed=self.keyed)
            rows = [{"k": change.key, "v": change.value}]
            try:
                (table.upsert if self.keyed else table.append)(rows)
                change.is_certain = True
                self._look_after(table, draws)
            except (RowsieveError, OSError):
                if not process.store.injected:
                    raise

    @staticmethod
    def _look_after(table: Table, draws: random.Random) -> None:
        match draws.randrange(3):
            case 0:
                table.compact()
            case 1:
                table.analyze()
            case _:
                table.vacuum(retain_last=3, grace_s=0)

    def recover(self) -> None:
        """Be the last process: commit what the log has."""
        self.writers.give_up_locks(self.folder)
        table = self.world.table(self.world.judge)
        table.writer(wal_dir=self.folder).close()

    def judge(self) -> None:
        """Check the rows at the end, and that no version lacks what an earlier one had."""
        table = self.world.table(self.world.process("after", overlaps=False))
        newest: dict[int, int] = {}
        for version in range(table.version + 1):
            try:
                rows = rows_of(table, version)
            except SnapshotExpired:
                continue
            for (key, value), count in rows.items():
                if count > 1 or value < newest.get(key, value):
                    known = newest.get(key)
                    self.world.problems.append(
                        f"version {version} has {key}: {value} {count} times after {known}"
                    )
                newest[key] = value
        for client in self.clients:
            self.world.problems.extend(client.problems(rows, "at the end"))


def rows_of(table: Table, version: int | None = None) -> Counter[tuple[int, int]]:
    """How often each row is there."""
    rows = table.scan(version=version).to_arrow().to_pylist()
    return Counter((row["k"], row["v"]) for row in rows)


def run_seed(seed: int) -> Run:
    """Run a seed and judge it."""
    draws = random.Random(f"writer {seed}")
    setting = Setting(keyed=draws.random() < 0.6, checkpoint_interval=draws.choice([1, 2, 5]))
    setting = with_drawn_storage(setting, f"writer {seed}")
    scheduler = Scheduler(chooser(random.Random(f"schedule {seed}"), draws.choice([0, 0.6, 0.93])))
    world = World(
        f"writer {seed}", setting, scheduler, overlaps=draws.random() < setting.overlapping
    )
    faults = draws.choice(KINDS)
    folder = Path(tempfile.mkdtemp(prefix="rowsieve-log-"))
    try:
        with world.entered(), steps_on_log_files(scheduler, folder):
            room = Room(world, folder / "log", draws)
            create_table(
                URI, SCHEMA, key=["k"] if setting.keyed else None, properties=setting.properties
            )
            _spawn(room, draws, faults)
            scheduler.before_step = applying_late(world, random.Random(f"late {seed}"))
            world.run(room.recover, room.judge)
            room.writers.give_up_locks(room.folder)
    finally:
        shutil.rmtree(folder)
    shape = f"{setting}, {room.settings}, faults {faults}, overlaps {world.overlaps}"
    calls = sum(len(each.changes) for each in room.clients)
    return Run(seed, shape, world.problems, scheduler.trace, calls)


def _spawn(room: Room, draws: random.Random, faults: str) -> None:
    world, before = room.world, None
    for number in range(draws.choice([1, 2, 3])):
        process = world.process(f"p{number}", fault_plan(faults, draws))
        clients = draws.choice([1, 2])
        body = partial(room.own, process, f"{world.seed} owner {number}", clients, before)
        before = world.scheduler.spawn(process, f"a{number}", body)
    if draws.random() < 0.6:
        process = world.process("other", fault_plan(faults, draws) if faults != "death" else None)
        world.scheduler.spawn(process, "other", partial(room.keep, process, f"{world.seed} other"))


if __name__ == "__main__":
    main(lambda seed: [run_seed(seed)])
