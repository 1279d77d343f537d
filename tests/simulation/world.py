"""One simulated table with its processes; a start of a table that many runs share."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

import pytest

from rowsieve import Table
from rowsieve.changes.table_handle import Handle
from rowsieve.compaction import slices as cut
from rowsieve.errors import CommitConflict, CorruptData, RowsieveError, StalePlan, StoreError
from rowsieve.objects import NotCreated
from rowsieve.opening import create_table
from rowsieve.storage.log import checkpoint_turns
from rowsieve.storage.log.commit_log import CommitLog
from tests.faults.vocabulary import Crash
from tests.simulation import (
    merge_calls,
    publish_calls,
    reader_calls,
    upkeep_calls,
    writer_calls,
)
from tests.simulation.bucket import Bucket, FaultPlan, SimulatedStore
from tests.simulation.calls import (
    FIRST_APPENDED,
    KEYS,
    Actor,
    Call,
    Observations,
    Operation,
    operations_of,
)
from tests.simulation.model import EXPIRED, table_of
from tests.simulation.processes import SimulatedProcess, replaced_world
from tests.simulation.scheduler import Scheduler, Stuck, Task

FAMILIES: Final = (
    writer_calls,
    merge_calls,
    upkeep_calls,
    publish_calls,
    reader_calls,
)  # imported for their operations
URI: Final = "memory:///simulation"
FIRST_OLD: Final = 900
FEW_COMMITS: Final = 1  # newer than the oldest one of a group: more of them become a slice
ATTEMPTS: Final = 4  # of a call with a token after errors
REPEATED: Final = 0.5  # of the calls with a token that succeeded
UNLUCKY: Final = (CommitConflict, StalePlan)
INLINE_BYTES: Final = (0, 620, None)
"""Files for all changes (and an older protocol), for those of several rows, for none of a run."""
FIRST_TURN: Final = 2  # incremental checkpoints begin at such a version, as elsewhere at 8
OVERLAPPING: Final = 0.2  # of the runs, those whose stores send requests at once
OVERLAPPING_BY_DEFAULT: Final = 0.6  # the same, where only such stores have early checkpoints


@dataclass(frozen=True)
class Setting:
    """The table that a run starts with."""

    keyed: bool
    checkpoint_interval: int | None = 2
    """None: not stated, so that stores whose requests overlap have early checkpoints."""
    inline_bytes: int | None = None
    """The most bytes of a change that its entry holds; None: not stated."""
    statistics_inline_bytes: int = 8192
    is_small: bool = True
    """Whether its list counts as small; another one has incremental checkpoints."""
    visibility: str = "lazy"
    history: int = 3
    """Changes before the run, one after the other."""
    compacts: bool = True
    """Whether compactions are among these changes."""
    expires: bool = False
    """Whether rows expire by the condition `EXPIRED`."""

    @property
    def properties(self) -> dict[str, str]:
        """The properties that the table is created with."""
        properties: dict[str, object] = {
            "checkpoint_interval": self.checkpoint_interval,
            "inline_bytes": self.inline_bytes,
            "statistics_inline_bytes": self.statistics_inline_bytes,
            "expire_rows_when": EXPIRED if self.expires else None,
            "visibility": self.visibility if self.keyed else None,
        }
        return {name: str(value) for name, value in properties.items() if value is not None}

    @property
    def overlapping(self) -> float:
        """How often the stores of a run over such a table send requests at once."""
        return OVERLAPPING if self.checkpoint_interval else OVERLAPPING_BY_DEFAULT


def with_drawn_storage(setting: Setting, seed: str) -> Setting:
    """Draw in which objects changes and checkpoints of a table are stored.

    By numbers of its own, so that the run of a seed draws the rest as before.
    """
    draws = random.Random(f"storage {seed}")
    return replace(
        setting,
        inline_bytes=draws.choice(INLINE_BYTES),
        checkpoint_interval=draws.choice([setting.checkpoint_interval, None]),
        is_small=draws.random() < 0.5,
    )


@dataclass
class Outcomes:
    """What callers were told, by the mark of the call."""

    calls: dict[str, Call] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    """Calls after which their actor went on, whatever it was told."""
    repeated: set[str] = field(default_factory=set)
    """Those of them that a successor made again."""
    seen: Observations = field(default_factory=Observations)
    next_key: int = FIRST_APPENDED
    first_version: int = 0
    """The head when the run began."""
    keys: dict[str, range] = field(default_factory=dict)

    def fresh_keys(self, mark: str, count: int) -> range:
        """Return keys that no other call has used."""
        if mark not in self.keys:
            self.next_key += count
            self.keys[mark] = range(self.next_key - count, self.next_key)
        return self.keys[mark]

    def copied(self) -> Outcomes:
        """Copy the outcomes for another run."""
        return Outcomes(
            dict(self.calls),
            dict(self.acknowledged),
            set(self.refused),
            next_key=self.next_key,
            first_version=max(self.acknowledged.values(), default=0),
        )


class World:
    """A bucket, the processes that use it, and what they were told."""

    def __init__(
        self,
        seed: str,
        setting: Setting,
        scheduler: Scheduler,
        *,
        overlaps: bool = False,
        slices: bool = False,
    ) -> None:
        self.seed, self.setting, self.scheduler = seed, setting, scheduler
        self.overlaps, self.slices = overlaps, slices
        self.bucket = Bucket(scheduler)
        self.outcomes = Outcomes()
        self.judge = self.process("judge", overlaps=False)

    @contextmanager
    def entered(self, ids: str = "") -> Iterator[World]:
        """Own the clock, the ids and the stores of the interpreter until the end of the block.

        `ids` tells runs of one seed apart: an id names one thing, also in caches of the code. With
        `slices`, compaction merges a few commits with one another, as elsewhere hundreds of them.
        """
        with (
            replaced_world(self.scheduler, f"{self.seed} {ids}", lambda: self.judge),
            pytest.MonkeyPatch.context() as patch,
        ):
            if self.slices:
                patch.setattr(cut, "MAX_COMMITS", FEW_COMMITS)
                patch.setattr(cut, "MIN_COMMITS", FEW_COMMITS + 1)
            if not self.setting.is_small:
                patch.setattr(checkpoint_turns, "_SMALL_BYTES", -1)
                patch.setattr(checkpoint_turns, "_FIRST_TURN", FIRST_TURN)
            self.judge.install()
            yield self

    @property
    def problems(self) -> list[str]:
        """What is wrong, as far as it is known."""
        return self.outcomes.seen.problems

    def run(self, *last: Callable[[], object]) -> None:
        """Run all actors to their end, then each of `last` as a process of its own.

        What waits for ever is a problem, and so is an error that ends an actor.
        """
        try:
            self.scheduler.run()
            for step in last:
                self.scheduler.spawn(self._judging(), step.__name__, step)
                self.scheduler.run()
        except Stuck as error:
            self.problems.append(f"stuck: {error}")
        self.problems.extend(f"{name}: {error!r}" for name, error in self.scheduler.errors)
        self.scheduler.end()

    def judge_by(self, check: Callable[[], object]) -> None:
        """Check a finished run as a new process; an error while checking is a problem, too."""
        self._judging().install()
        try:
            check()
        except Exception as error:
            lines = "".join(traceback.format_exception(error)[-4:])
            self.problems.append(f"judging failed: {type(error).__name__} {lines}")

    def _judging(self) -> SimulatedProcess:
        """Begin a process that meets no fault, once all late requests have been applied."""
        while self.bucket.late:
            self.bucket.apply_late(0)
        self.judge = self.process("judge", overlaps=False)
        return self.judge

    def process(
        self, name: str, plan: FaultPlan | None = None, *, overlaps: bool | None = None
    ) -> SimulatedProcess:
        """Start a process with a store of its own."""
        process = SimulatedProcess(name)
        process.store = SimulatedStore(
            self.bucket,
            self.scheduler,
            process,
            URI,
            overlaps=self.overlaps if overlaps is None else overlaps,
            plan=plan or FaultPlan(),
            draws=random.Random(f"{self.seed} {name} faults"),
        )
        return process

    def table(self, process: SimulatedProcess) -> Table:
        """Open the table as the process."""
        assert process.store is not None
        log = CommitLog(process.store)
        return Table(Handle(process.store, log, log.latest()))

    def actor(self, name: str, process: SimulatedProcess, tokens: float = 0.0) -> Actor:
        """Open the table for a new actor of a process."""
        return Actor(
            name,
            self.table(process),
            self.seed,
            self.setting.keyed,
            self.scheduler,
            self.outcomes.seen,
            self.outcomes.fresh_keys,
            tokens,
        )

    def act(self, actor: Actor, operation: Operation) -> None:
        """Let an actor make its next call, and note what it is told."""
        actor.begin(actor.number + 1)
        if self._is_over(actor.mark):
            return
        try:
            call = operation.draw(actor)
        except RowsieveError:
            return  # it read the table before the call; nothing can have happened
        if call is None:
            return
        self.outcomes.calls[actor.mark] = call
        self._make(actor, operation.name, call)
        self.outcomes.ended.add(actor.mark)

    def _make(self, actor: Actor, name: str, call: Call) -> None:
        """Make a call, again after errors if its token finds its commit."""
        mark, injected = actor.mark, _injected(actor)
        if mark in self.outcomes.ended:
            self.outcomes.repeated.add(mark)
        for attempt in range(ATTEMPTS):
            try:
                commit = call.run()
            except RowsieveError as error:
                is_clean = _injected(actor) == injected and not attempt
                if self._is_settled(call, mark, error, is_clean=is_clean):
                    return
            except Exception as error:
                lines = "".join(traceback.format_exception(error)[-3:])
                self.problems.append(f"{mark} {name}: {type(error).__name__} {lines}")
                return
            else:
                self._note_commit(call, mark, commit)
                self._repeat(actor, call, commit)
                return

    def _is_over(self, mark: str) -> bool:
        """Return whether a predecessor made the call, and it must not be made again."""
        call = self.outcomes.calls.get(mark)
        return call is not None and (not call.has_token or mark in self.outcomes.acknowledged)

    def _is_settled(self, call: Call, mark: str, error: RowsieveError, *, is_clean: bool) -> bool:
        """Note an error; False if the call is repeated because its token finds its commit."""
        is_of_store = isinstance(error, StoreError | NotCreated | CorruptData)
        if is_of_store and not is_clean:
            return not call.has_token
        if isinstance(error, (*UNLUCKY, *call.refusals)):
            if is_clean:
                self.outcomes.refused.add(mark)
            return True
        lines = "".join(traceback.format_exception(error)[-3:])
        self.problems.append(f"{mark}: {type(error).__name__} {lines}")
        return True

    def _repeat(self, actor: Actor, call: Call, commit: Any) -> None:
        """Deliver a call with a token once more, sometimes; its commit must be the same."""
        if not call.has_token or not commit.committed or actor.draws.random() > REPEATED:
            return
        try:
            again = call.run()
        except RowsieveError:
            return  # the first commit counts, whatever the second call meets
        if again.version != commit.version:
            self.problems.append(f"{actor.mark}: {commit.version}, repeated {again.version}")

    def _note_commit(self, call: Call, mark: str, commit: Any) -> None:
        if not call.acknowledges:
            return
        if commit.committed:
            self.outcomes.acknowledged[mark] = commit.version
        else:
            self.outcomes.refused.add(mark)


def _injected(actor: Actor) -> int:
    store = actor.table.handle.store
    assert isinstance(store, SimulatedStore)
    return store.injected


@cache
def started(setting: Setting) -> World:
    """Create a table and its history once; other worlds begin with copies of it."""
    world = World(f"start {setting}", setting, Scheduler(lambda ready: ready[0]))
    draws = random.Random(f"start {setting}")
    first = sorted(draws.sample(KEYS, 5)) if setting.keyed else range(FIRST_OLD, FIRST_OLD + 5)
    pairs = [(key, draws.randrange(20)) for key in first]
    with world.entered():
        create_table(
            URI,
            table_of(pairs),
            key=["k"] if setting.keyed else None,
            properties=setting.properties,
            metadata={"mark": "first"},
        )
        world.outcomes.calls["first"] = Call(
            lambda: None, lambda state, versions, entry: state.with_rows(pairs)
        )
        actor = world.actor("start", world.judge)
        known = operations_of(keyed=setting.keyed)
        wanted = ("upsert", "append", "delete_keys", "update", "compact")
        unwanted = () if setting.compacts else ("compact",)
        names = [name for name in wanted if name in known and name not in unwanted]
        for _ in range(setting.history):
            world.act(actor, known[draws.choice(names)])
    assert not world.problems, world.problems
    return world


def begun(
    seed: str,
    setting: Setting,
    scheduler: Scheduler,
    *,
    overlaps: bool = False,
    slices: bool = False,
) -> World:
    """Make a world that begins with the table of a setting."""
    world = World(seed, setting, scheduler, overlaps=overlaps, slices=slices)
    origin = started(setting)
    scheduler.now_us = origin.scheduler.now_us
    world.bucket = origin.bucket.restored(scheduler)
    world.outcomes = origin.outcomes.copied()
    world.judge = world.process("judge", overlaps=False)
    return world


def acting(
    world: World,
    actor_name: str,
    process: SimulatedProcess,
    calls: Sequence[Operation],
    tokens: float,
    predecessor: Task | None = None,
) -> None:
    """Be an actor: open the table, whatever it takes, and make the calls.

    A successor waits until its predecessor dies, and makes the calls that are left: what that one
    did not begin, and what has a token.
    """
    if predecessor is not None:
        world.scheduler.park("take over", lambda: predecessor.has_ended)
        if not predecessor.process.is_dead:
            return
    while True:
        try:
            actor = world.actor(actor_name, process, tokens)
            break
        except (StoreError, CorruptData):
            assert process.store is not None
            if not process.store.injected:
                raise
    for each in calls:
        world.act(actor, each)


__all__ = ["Crash", "Outcomes", "Setting", "World", "acting", "begun", "started"]
