"""Random runs of a catalog: tables are created, written, renamed, dropped and purged concurrently.

python -m tests.simulation.catalogs FIRST LAST [SECONDS]   runs seeds and prints what is wrong

Calls on names must have a serial order (`name_history.py`). A table that nobody purged has all
rows that were acknowledged, under whichever name or none; one that was purged does not open, and
nothing is left of it but what writers or late requests put there after the purge listed its files.
"""

from __future__ import annotations

import random
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from rowsieve import Catalog, Database, Table
from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    NamespaceNotFound,
    RowsieveError,
    SnapshotExpired,
    StoreError,
    TableExists,
    TableMoved,
    TableNotFound,
    UnsupportedOperation,
)
from rowsieve.objects import NotCreated
from rowsieve.opening import create_table, open_table
from tests.simulation.commands import main
from tests.simulation.name_history import OUTSIDE, NameCall, is_serial, split_purges
from tests.simulation.processes import SimulatedProcess
from tests.simulation.scheduler import Scheduler
from tests.simulation.seeds import Run, applying_late, chooser, fault_plan
from tests.simulation.world import Setting, World

LAKE: Final = "memory:///lake"
FOREIGN: Final = "foreign"
"""A table that is outside of the database when a run begins."""
NAMES: Final = ("db.a", "db.b", "db.c", "other.a")
CALLS: Final = {
    "create": 4, "drop": 2, "purge": 4, "rename": 4, "drop_namespace": 3, "append": 4, "read": 3,
}  # fmt: skip
DATABASE_CALLS: Final = {
    "create": 4, "drop": 4, "rename": 4, "drop_namespace": 3, "append": 6, "read": 3, "vacuum": 4,
    "move_out": 3, "move_in": 3,
}  # fmt: skip
LOSING: Final = {
    "catalog": ("purge",),
    "database": ("drop", "drop_namespace", "move_out", "move_in"),
}
"""Calls after which an open table may be gone, or elsewhere."""
FAULTS: Final = ("none", "none", "answers", "late", "stale", "death")
DAY_US: Final = 86_400_000_000


@dataclass
class Tables:
    """What callers know of tables, by the mark of their creation."""

    uris: dict[str, str] = field(default_factory=dict)
    rows: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Marks of rows that were acknowledged."""


def run_catalog(seed: int, kind: str = "catalog") -> Run:
    """Run a seed of a catalog, or of a database, and judge it."""
    draws = random.Random(f"{kind} {seed}")
    scheduler = Scheduler(chooser(random.Random(f"order {seed}"), draws.choice([0, 0.6, 0.93])))
    world = World(f"{kind} {seed}", Setting(keyed=True), scheduler, overlaps=draws.random() < 0.2)
    lake = Lake(world, kind)
    weights = CALLS if kind == "catalog" else DATABASE_CALLS
    with world.entered():
        lake.begin()
        faults = draws.choice(FAULTS)
        lake.leaves_files = faults != "none"
        for number in range(draws.choice([2, 2, 3])):
            process = world.process(f"p{number}", fault_plan(faults, draws))
            calls = draws.choices([*weights], [*weights.values()], k=draws.randint(1, 3))
            scheduler.spawn(process, f"a{number}", lake.actor(f"a{number}", process, calls))
        scheduler.before_step = applying_late(world, random.Random(f"late {seed}"))
        world.run()
        if not world.problems:
            world.judge_by(lake.judge)
    shape = f"{kind}, faults {faults}, overlaps {world.overlaps}: {lake.calls}"
    return Run(seed, shape, world.problems, scheduler.trace, len(lake.calls))


class Lake:
    """A catalog or database of a simulated world, and what its users were told."""

    def __init__(self, world: World, kind: str) -> None:
        self._kind = kind
        self.calls: list[NameCall] = []
        self._world, self._tables = world, Tables()
        self.leaves_files = False
        """Whether a purge may leave files: of writers, or of requests that came late."""
        self._start: dict[str, str] = {}

    def _opened(self) -> Catalog | Database:
        return Catalog(LAKE) if self._kind == "catalog" else Database(LAKE)

    def begin(self) -> None:
        """Create two tables."""
        catalog = self._opened()
        for name in NAMES[:2]:
            self._start[name] = f"first {name}"
            self._note(self._start[name], _created(catalog, name, self._start[name]))
        if self._kind == "database":
            self._start[f"{OUTSIDE}{FOREIGN}"] = FOREIGN
            self._note(FOREIGN, create_table("memory:///foreign", _first_row(FOREIGN), key=["k"]))

    def _movable(self) -> list[str]:
        """Tables that may be outside, by the marks of their creations; else any."""
        left = [each.table for each in self.calls if each.what == "move_out" and each.table]
        return sorted({FOREIGN, *left, *list(self._tables.uris)[-1:]})

    def actor(
        self, name: str, process: SimulatedProcess, calls: Sequence[str]
    ) -> Callable[[], None]:
        """Return the body of an actor that makes these calls."""

        def body() -> None:
            for number, what in enumerate(calls):
                self._call(f"{name}.{number}", what, process)

        return body

    def _call(self, mark: str, what: str, process: SimulatedProcess) -> None:
        draws = random.Random(f"{self._world.seed} {mark}")
        name, new_name = draws.sample(NAMES, 2)
        if what == "drop_namespace":
            name = name.partition(".")[0]
        is_use = what in ("append", "read")
        call = NameCall(mark, "open" if is_use else what, name, self._now(), new_name)
        self.calls.append(call)
        assert process.store is not None
        injected, table = process.store.injected, None
        try:
            table = self._made(call, self._opened())
        except RowsieveError as error:
            call.told = _verdict(error, is_clean=process.store.injected == injected)
            if call.told == "wrong":
                self._wrong(f"{mark} {call.what} {name}", error)
        else:
            call.told = "done"
        call.ended = self._now() if call.told else call.ended
        if is_use and table is not None:
            self._use(what, mark, call.table, table, process)

    def _made(self, call: NameCall, catalog: Catalog | Database) -> Table | None:
        """Make a call on names."""
        match call.what:
            case "create":
                call.table = call.mark
                self._note(call.table, _created(catalog, call.name, call.mark))
            case "open":
                table = catalog.open_table(call.name)
                call.table = table.schema.names[1]
                return table
            case "drop":
                catalog.drop_table(call.name)
            case "purge":
                catalog.drop_table(call.name, purge=True)
            case "rename":
                catalog.rename_table(call.name, call.new_name)
            case "drop_namespace":
                catalog.drop_namespace(call.name, cascade=True)
            case "move_out":
                assert isinstance(catalog, Database)
                call.table = catalog.open_table(call.name).schema.names[1]
                catalog.move_out(call.name)
            case "move_in":
                assert isinstance(catalog, Database)
                call.table = random.Random(call.mark).choice(self._movable())
                catalog.move_in(call.name, self._tables.uris[call.table])
            case "vacuum":
                assert isinstance(catalog, Database)
                catalog.vacuum(retain_s=0)
        return None

    def _use(
        self, what: str, mark: str, name: str, table: Table, process: SimulatedProcess
    ) -> None:
        """Write into an open table, or read it."""
        assert process.store is not None
        known, injected = set(self._tables.rows[name]), process.store.injected
        try:
            if what == "append":
                self.leaves_files = True
                table.upsert(pa.table({"k": [mark], name: ["written"]}))
                self._tables.rows[name].add(mark)
                return
            rows = _rows(table)
        except RowsieveError as error:
            is_lost = any(each.what in LOSING[self._kind] for each in self.calls)
            is_gone = is_lost and isinstance(error, TableNotFound | SnapshotExpired | TableMoved)
            if process.store.injected == injected and not is_gone:
                self._wrong(f"{mark} {what} {name}", error)
        else:
            if not known <= rows:
                self._world.problems.append(f"{mark} read {rows} of {name}, not all of {known}")

    def judge(self) -> None:
        """Note what is wrong after a run."""
        world = self._world
        world.scheduler.now_us += 2 * DAY_US  # the leases of dead processes are over
        catalog = self._opened()
        end = {}
        for name in catalog.tables():
            try:
                table = catalog.open_table(name)
            except TableNotFound:
                unclear = any(each.what == "create" and not each.told for each in self.calls)
                if unclear:  # the folder of a creation that died is listed
                    continue
                raise
            end[name] = mark = table.schema.names[1]
            self._check_rows(mark, table)
        calls = [each for each in self.calls if each.what != "vacuum"]
        if not is_serial(self._start, split_purges(calls), end):
            world.problems.append(f"no serial order: {self._start}, {self.calls}, {end}")
        if self._kind == "database":
            self._check_outside(set(end.values()))
        is_purged = any(each.what == "purge" for each in self.calls)
        free = [name for name in NAMES if is_purged and name not in end]
        for name in free:  # ends what was begun
            catalog.drop_table(name, purge=True, if_absent="ignore")
        if (free or not is_purged) and self._kind == "catalog":
            self._check_folders(set(end.values()), is_purged=is_purged)

    def _check_rows(self, mark: str, table: Table) -> None:
        rows, wanted = _rows(table), self._tables.rows[mark] | {mark}
        if not wanted <= rows:
            self._world.problems.append(f"{mark} at {table.uri} has {rows}, not all of {wanted}")

    def _check_outside(self, named: set[str]) -> None:
        """Tables that moved out, and were never dropped, are whole at their place, or on a way."""
        if any(each.what in ("drop", "drop_namespace") for each in self.calls):
            return
        for mark, uri in self._tables.uris.items():
            if mark not in named:
                try:
                    self._check_rows(mark, open_table(uri))
                except TableMoved:  # a move in that ended halfway goes on
                    self._check_rows(mark, self._opened().register_table(f"db.{mark[-1]}", uri))

    def _check_folders(self, named: set[str], *, is_purged: bool) -> None:
        """Tables without a name are whole, or nothing is left of them."""
        for mark, uri in self._tables.uris.items():
            folder = f"{uri.removeprefix('memory:///')}/"
            files = [path for path in self._world.bucket.objects if path.startswith(folder)]
            if mark in named or (files and not is_purged):
                self._check_rows(mark, open_table(uri))
            elif files:
                try:
                    self._check_rows(mark, open_table(uri))
                except (TableNotFound, SnapshotExpired, CorruptData):
                    if self.leaves_files:
                        continue
                    self._world.problems.append(f"{mark} was purged, and {files[:3]} are left")
            elif not is_purged:
                self._world.problems.append(f"{mark} is gone, and nobody purged a table")

    def _note(self, mark: str, table: Table) -> None:
        self._tables.uris[mark] = table.uri

    def _now(self) -> int:
        return self._world.scheduler.steps

    def _wrong(self, what: str, error: Exception) -> None:
        lines = "".join(traceback.format_exception(error)[-3:])
        self._world.problems.append(f"{what}: {type(error).__name__} {lines}")


def _created(catalog: Catalog | Database, name: str, mark: str) -> Table:
    """Create a table whose second column is called like its creation."""
    return catalog.create_table(name, _first_row(mark), key=["k"])


def _first_row(mark: str) -> pa.Table:
    schema = pa.schema([pa.field("k", pa.string(), nullable=False), pa.field(mark, pa.string())])
    return pa.table([[mark], [None]], schema=schema)


def _rows(table: Table) -> set[str]:
    return set(table.scan().to_arrow().column("k").to_pylist())


def _verdict(error: RowsieveError, *, is_clean: bool) -> str:
    """What an error says of the call: "" if it may have had its effect, "wrong" if it must not."""
    match error:
        case TableExists():
            return "exists"
        case TableNotFound():
            return "absent"
        case NamespaceNotFound() | CommitConflict() | UnsupportedOperation():
            return "refused"
        case StoreError() | NotCreated() | CorruptData() if not is_clean:
            return ""
        case _:
            return "wrong"


if __name__ == "__main__":
    main(lambda seed: [run_catalog(seed, kind) for kind in LOSING])
