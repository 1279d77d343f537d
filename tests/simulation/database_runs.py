"""Random runs over the tables of one database: transactions, writers, upkeep, branches, readers.

python -m tests.simulation.database_runs FIRST LAST [SECONDS]   runs seeds, prints what is wrong

Transactions over two and three tables read some and change others. A writer with a log of its own
flushes into one of the tables. Processes die at any request, and some have a successor that makes
the calls that are left, and again those with a token.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from rowsieve import Database, Table
from rowsieve.errors import (
    CommitConflict,
    CorruptData,
    InvalidInput,
    RowsieveError,
    SnapshotExpired,
    StalePlan,
    StoreError,
    TableNotFound,
    UnsupportedOperation,
    VersionNotFound,
    WriterFailed,
)
from rowsieve.objects import NotCreated
from tests.simulation.bucket import FaultPlan
from tests.simulation.commands import main
from tests.simulation.database_calls import (
    INGESTED,
    KEYS,
    NAMES,
    Plan,
    States,
    drawn_step,
    drawn_transaction,
    pinned,
    rows_of,
)
from tests.simulation.database_judge import DATABASE, FIRST, DatabaseJudge, Told
from tests.simulation.log_files import OpenWriters, steps_on_log_files
from tests.simulation.model import table_of
from tests.simulation.processes import SimulatedProcess
from tests.simulation.scheduler import Scheduler, Task
from tests.simulation.seeds import FAULTS, TAKEN_OVER, Run, applying_late, chooser, fault_plan
from tests.simulation.world import Setting, World
from tests.simulation.writer_runs import Client

CALLS: Final = {
    "transact": 12, "write": 4, "read": 5, "read_version": 2, "compact": 2, "analyze": 1,
    "expire": 2, "vacuum": 2, "branch": 3, "write_branch": 5, "publish": 4, "tag": 2,
    "drop_ref": 1, "read_branch": 2,
}  # fmt: skip
STYLES: Final = (
    ("transact", "write", "read"),
    ("transact", "read", "compact", "analyze", "expire", "vacuum", "read_version"),
    ("transact", "branch", "write_branch", "publish", "tag", "drop_ref", "read_branch"),
    tuple(CALLS),
)
KINDS: Final = ("none", *("death",) * 4, *sorted({*FAULTS} - {"death", "disk"}))
REFUSALS: Final = (
    CommitConflict,
    StalePlan,
    SnapshotExpired,
    VersionNotFound,
    TableNotFound,
    InvalidInput,
    UnsupportedOperation,
)
REF, TAG = "x", "y"
SWAPPED: Final = 0.5
"""How often a death comes late, which a transaction over tables needs to meet."""


def run_seed(seed: int) -> Run:
    """Run a seed and judge it."""
    draws = random.Random(f"database {seed}")
    scheduler = Scheduler(chooser(random.Random(f"schedule {seed}"), draws.choice([0, 0.6, 0.93])))
    overlaps = draws.random() < 0.2
    world = World(f"database {seed}", Setting(keyed=True), scheduler, overlaps=overlaps)
    room = Room(world, draws)
    folder = Path(tempfile.mkdtemp(prefix="rowsieve-log-"))
    try:
        with world.entered(), steps_on_log_files(scheduler, folder):
            room.begin()
            room.spawn(folder / "log")
            scheduler.before_step = applying_late(world, random.Random(f"late {seed}"))
            world.run(*room.last)
            if not world.problems:
                world.judge_by(room.judge)
            room.writers.give_up_locks(folder / "log")
    finally:
        shutil.rmtree(folder)
    return Run(seed, room.shape, world.problems, scheduler.trace, room.calls)


class Room:
    """A database, the processes that use it, and what they were told."""

    def __init__(self, world: World, draws: random.Random) -> None:
        self.world, self._draws = world, draws
        self.told, self.calls, self.writers = Told(), 0, OpenWriters()
        self.last: list[Callable[[], None]] = []
        self._client = Client(INGESTED // 10)
        self._first: dict[str, dict[int, int]] = {}
        self._style, self._faults = draws.choice(STYLES), draws.choice(KINDS)
        self._properties = {
            "checkpoint_interval": str(draws.choice([1, 2, 5])),
            "inline_bytes": str(draws.choice([0, 16_384, 16_384])),
        }
        self.shape = f"{self._style}, {self._properties}, faults {self._faults}"

    def begin(self) -> None:
        """Create the tables."""
        database = Database(DATABASE)
        for name in NAMES:
            rows = {key: self._draws.randrange(20) for key in self._draws.sample(KEYS, 3)}
            self._first[name] = rows
            database.create_table(
                name,
                table_of(rows.items()),
                ["k"],
                properties=self._properties,
                metadata={"mark": FIRST},
            )

    def spawn(self, log: Path) -> None:
        """Begin the actors."""
        draws = self._draws
        weights = [CALLS[each] for each in self._style]
        for number in range(draws.choice([2, 2, 3])):
            process = self.world.process(f"p{number}", self._plan())
            calls = draws.choices(self._style, weights, k=draws.randint(1, 3))
            tokens = draws.choice([0.0, 0.7])
            task = self._spawn(f"a{number}", process, calls, tokens)
            if self._faults == "death" and draws.random() < TAKEN_OVER:
                successor = self.world.process(f"s{number}")
                self._spawn(f"a{number}", successor, calls, tokens, task)
        if draws.random() < 0.3:
            self.told.ingested = draws.choice(NAMES)
            process = self.world.process("ingest", self._plan())
            self.world.scheduler.spawn(process, "ingest", partial(self._ingest, process, log))
            self.last.append(partial(self._recover, log))
            self.last[-1].__name__ = "recover"

    def judge(self) -> None:
        """Compare the run with the oracle."""
        DatabaseJudge(self.world, self.told, self._first).check()
        if name := self.told.ingested:
            rows = Counter(rows_of(Database(DATABASE).open_table(name).scan()).items())
            self.world.problems.extend(self._client.problems(rows, f"{name} at the end"))

    def _plan(self) -> FaultPlan:
        plan = fault_plan(self._faults, self._draws)
        if plan.dies_at is not None and self._draws.random() < SWAPPED:
            return FaultPlan({}, plan.dies_at * 3, plan.death)
        return plan

    def _spawn(
        self,
        name: str,
        process: SimulatedProcess,
        calls: Sequence[str],
        tokens: float,
        before: Task | None = None,
    ) -> Task:

        def body() -> None:
            if before is not None:
                self.world.scheduler.park("take over", lambda: before.has_ended)
                if not before.process.is_dead:
                    return
            for number, what in enumerate(calls):
                self._call(what, f"{name}.{number}", process, tokens)

        return self.world.scheduler.spawn(process, name if before is None else f"{name}s", body)

    def _call(self, what: str, mark: str, process: SimulatedProcess, tokens: float) -> None:
        """Make a call and note what it was told; a successor only makes it again with a token."""
        draws = random.Random(f"{self.world.seed} {mark}")
        has_token = what in ("transact", "write") and draws.random() < tokens
        if mark in self.told.plans and not has_token:
            return
        self.calls += 1
        actor, _, number = mark.partition(".")
        token = (actor, int(number)) if has_token else None
        notes: dict[str, Any] = {"metadata": {"mark": mark}, "token": token}
        assert process.store is not None
        injected = process.store.injected
        try:
            getattr(self, f"_{what}")(Database(DATABASE), mark, draws, notes)
        except RowsieveError as error:
            is_clean = process.store.injected == injected
            is_of_store = isinstance(error, StoreError | NotCreated | CorruptData)
            if is_clean and isinstance(error, REFUSALS):
                if not has_token:  # a predecessor may have committed it
                    self.told.refused.add(mark)
            elif is_clean or not (is_of_store or isinstance(error, REFUSALS)):
                self._wrong(f"{mark} {what}", error)

    def _planned(self, mark: str, draw: Callable[[], Plan]) -> Plan:
        """The plan of a call; a successor has that of its predecessor."""
        return self.told.plans.setdefault(mark, draw())

    def _transact(
        self, database: Database, mark: str, draws: random.Random, notes: dict[str, Any]
    ) -> None:
        tables, drawn = drawn_transaction(draws)
        plan = self._planned(mark, lambda: drawn)
        with database.transaction(**notes) as tx:
            plan.run({name: tx.table(name) for name in tables})
        if any(commit.committed for commit in (tx.committed or {}).values()):
            self.told.done.add(mark)

    def _write(
        self, database: Database, mark: str, draws: random.Random, notes: dict[str, Any]
    ) -> None:
        name = draws.choice(NAMES)
        drawn = Plan([drawn_step(draws, name)])
        plan = self._planned(mark, lambda: drawn)
        noted = Noted(database.open_table(name), notes)
        plan.run({name: noted})
        if noted.is_committed:
            self.told.done.add(mark)

    def _read(
        self, database: Database, mark: str, draws: random.Random, notes: dict[str, Any]
    ) -> None:
        """Read tables as a join does: all of them in one version."""
        names = draws.sample(NAMES, draws.choice((2, 3)))
        rows: States
        if draws.random() < 0.5:
            opened = database.opener()
            rows = {name: rows_of(pinned(opened(name))) for name in names}
        else:
            with database.transaction() as tx:
                rows = {name: rows_of(tx.table(name).scan()) for name in names}
        self.told.reads.append((mark, None, rows))

    def _read_version(
        self, database: Database, mark: str, draws: random.Random, notes: dict[str, Any]
    ) -> None:
        version = max(len(NAMES), database.version - draws.randrange(4))
        rows = {name: rows_of(database.open_table(name, version=version).scan()) for name in NAMES}
        self.told.reads.append((mark, version, rows))

    def _compact(self, database: Database, mark: str, draws: random.Random, notes: object) -> None:
        database.open_table(draws.choice(NAMES)).compact()

    def _analyze(self, database: Database, mark: str, draws: random.Random, notes: object) -> None:
        database.open_table(draws.choice(NAMES)).analyze()

    def _expire(self, database: Database, mark: str, draws: random.Random, notes: object) -> None:
        database.open_table(draws.choice(NAMES)).vacuum(retain_last=1, grace_s=0)

    def _vacuum(self, database: Database, mark: str, draws: random.Random, notes: object) -> None:
        database.vacuum(retain_s=0)

    def _branch(
        self, database: Database, mark: str, draws: random.Random, notes: dict[str, Any]
    ) -> None:
        database.branch(REF, metadata=notes["metadata"])

    def _tag(
        self, database: Database, mark: str, draws: random.Random, notes: dict[str, Any]
    ) -> None:
        database.tag(TAG, metadata=notes["metadata"])

    def _drop_ref(
        self, database: Database, mark: str, draws: random.Random, notes: dict[str, Any]
    ) -> None:
        database.drop_ref(draws.choice((REF, TAG)), metadata=notes["metadata"])

    def _publish(
        self, database: Database, mark: str, draws: random.Random, notes: dict[str, Any]
    ) -> None:
        database.fast_forward(REF, metadata=notes["metadata"])

    def _write_branch(
        self, database: Database, mark: str, draws: random.Random, notes: dict[str, Any]
    ) -> None:
        if not database.refs().num_rows:
            database.branch(REF)
        name = draws.choice(NAMES)
        plan = self._planned(mark, lambda: Plan([drawn_step(draws, name)]))
        plan.run({name: Noted(database.open_table(name, ref=REF), notes)})

    def _read_branch(
        self, database: Database, mark: str, draws: random.Random, notes: dict[str, Any]
    ) -> None:
        table = database.open_table(draws.choice(NAMES), ref=draws.choice((REF, TAG)))
        self.told.branch_reads.append((mark, table.uri, table.version, rows_of(pinned(table))))

    def _ingest(self, process: SimulatedProcess, log: Path) -> None:
        """Write rows through a log on a disk, which is flushed into one table."""
        draws, store = random.Random(f"{self.world.seed} ingest"), process.store
        assert store is not None
        pending: list[tuple[Any, Any]] = []
        try:
            table = Database(DATABASE).open_table(self.told.ingested)
            with table.writer(wal_dir=log, flush_rows=2, flush_interval_s=0.02) as writer:
                self.writers.note(process, writer)
                for _ in range(draws.randint(2, 6)):
                    change = self._client.change(draws, keyed=True)
                    row = {"k": change.key, "v": change.value}
                    pending.append((change, writer.upsert(row)))
                for change, acknowledgement in pending:
                    self.world.scheduler.park("acknowledgement", acknowledgement.done)
                    acknowledgement.result()
                    change.is_certain = True
        except (RowsieveError, OSError) as error:
            if not store.injected and not isinstance(error, WriterFailed):
                self._wrong("ingest", error)

    def _recover(self, log: Path) -> None:
        """Be the last process: commit what the log has."""
        self.writers.give_up_locks(log)
        Database(DATABASE).open_table(self.told.ingested).writer(wal_dir=log).close()

    def _wrong(self, what: str, error: Exception) -> None:
        lines = "".join(traceback.format_exception(error)[-3:])
        self.world.problems.append(f"{what}: {type(error).__name__} {lines}")


class Noted:
    """A table whose changes have the notes of a call."""

    def __init__(self, table: Table, notes: Mapping[str, Any]) -> None:
        self._table, self._notes, self.is_committed = table, notes, False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            commit = getattr(self._table, name)(*args, **options, **self._notes)
            self.is_committed = commit.committed
            return commit

        return called


if __name__ == "__main__":
    main(lambda seed: [run_seed(seed)])
