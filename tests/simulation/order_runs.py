"""Random runs over a table with an event order: appliers, truncates, upkeep, restores, overwrites.

Half of the tables order each column. The oracle replays the calls in the order of their commits on
a register for each key. A call that commits nothing must have been late in the version it names.

python -m tests.simulation.order_runs FIRST LAST     runs seeds FIRST to LAST - 1
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa

from rowsieve import Table
from rowsieve.errors import CommitConflict, CorruptData, StoreError
from rowsieve.objects import NotCreated
from rowsieve.opening import create_table
from rowsieve.storage.log.log_entry import decode_entry, log_path
from tests.simulation.commands import main
from tests.simulation.scheduler import Scheduler
from tests.simulation.seeds import FAULTS, Run, applying_late, chooser, fault_plan
from tests.simulation.world import ATTEMPTS, URI, Setting, World, with_drawn_storage

COLUMNS: Final = ("v", "w")
SCHEMA: Final = pa.schema(
    [("k", pa.int64()), ("lsn", pa.int64()), *((name, pa.int64()) for name in COLUMNS)]
)
KEYS: Final = 5
FLOOR: Final = -1
"""The key of a state's last truncate: events before its sequence change nothing."""
KINDS: Final = ("none", *sorted({*FAULTS} - {"disk", "death"}))

Event: TypeAlias = Mapping[str, Any]
"""k, lsn and the columns that it gives; "op" is d for a delete."""


@dataclass(frozen=True)
class Register:
    """The newest version of a key: its sequence, and its row if it was not deleted.

    `since` has the sequence of the event that set each column, where columns have an order.
    """

    lsn: int = -1
    is_row: bool = False
    values: Mapping[str, int | None] = field(default_factory=lambda: dict.fromkeys(COLUMNS))
    since: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(COLUMNS, -1))


State: TypeAlias = Mapping[int, Register]
Effect: TypeAlias = Callable[[State, Mapping[int, State]], State]
OrderCall: TypeAlias = Callable[[Table, Mapping[str, Any]], Any]
UPKEEP: Final[Mapping[str, OrderCall]] = {
    "compact": lambda table, _: table.compact(),
    "vectors": lambda table, _: table.build_deletion_vectors(),
}


def applied(state: State, events: Sequence[Event], *, by_column: bool) -> State:
    """The state after a batch of events."""
    after = dict(state)
    for event in sorted(events, key=lambda each: each["lsn"]):
        key: int = event["k"]
        lsn: int = event["lsn"]
        if lsn < state.get(FLOOR, Register()).lsn:
            continue
        old, is_delete = after.get(key, Register()), event["op"] == "d"
        if not by_column and lsn < state.get(key, Register()).lsn:
            continue
        given: dict[str, int | None] = {
            n: None if is_delete else event[n] for n in COLUMNS if is_delete or n in event
        }
        if not by_column:
            base: Mapping[str, int | None] = old.values if old.is_row else Register().values
            after[key] = Register(lsn, not is_delete, {**base, **given})
            continue
        wins = {name: value for name, value in given.items() if lsn >= old.since[name]}
        after[key] = Register(
            max(lsn, old.lsn),
            old.is_row if lsn < old.lsn else not is_delete,
            {**old.values, **wins},
            {**old.since, **dict.fromkeys(wins, lsn)},
        )
    return after


def truncated(state: State, lsn: int) -> State:
    """The state after a truncate, which removes the rows before it."""
    if lsn <= state.get(FLOOR, Register()).lsn:
        return state
    left = {
        key: each if each.lsn >= lsn else Register(each.lsn)
        for key, each in state.items()
        if key != FLOOR
    }
    return {**left, FLOOR: Register(lsn)}


def rows_of(state: State) -> list[tuple[int | None, ...]]:
    """The rows of a state, sorted."""
    return sorted(
        ((key, each.lsn, *(each.values[name] for name in COLUMNS)) for key, each in state.items()
         if each.is_row),
        key=repr,
    )  # fmt: skip


def draw_events(draws: random.Random) -> list[Event]:
    """A batch of the source's events: of one key and sequence there is one, always the same."""
    events: dict[tuple[int, int], Event] = {}
    for _ in range(draws.randint(1, 4)):
        key, number = draws.randrange(KEYS), draws.randrange(12)
        own, lsn = random.Random(f"event {key} {number}"), 2 * number
        event: dict[str, Any] = {"k": key, "lsn": lsn, "op": own.choice("uuud")}
        for name in COLUMNS if event["op"] == "u" else ():
            if own.random() < 0.6:
                event[name] = own.randrange(100)
        events[key, lsn] = event
    return list(events.values())


@dataclass
class Appliers:
    """The calls of a run: their effects by mark, and what was committed or not."""

    world: World
    by_column: bool
    effects: dict[str, Effect] = field(default_factory=dict)
    late: list[tuple[str, int]] = field(default_factory=list)
    """Marks of calls that committed nothing, with the version that they name."""

    def draw(self, draws: random.Random, mark: str) -> OrderCall:
        """A call and its effect."""
        kind = draws.choices(
            ("apply", "write", "overwrite", "restore", "compact", "vectors"), (7, 3, 1, 1, 2, 2)
        )[0]
        events = draw_events(draws)
        if kind == "vectors" and not self.by_column and draws.random() < 0.7:
            kind = "truncate"
        return self.call_of(kind, events, draws, mark)

    def call_of(
        self, kind: str, events: Sequence[Event], draws: random.Random, mark: str
    ) -> OrderCall:
        """A call of a kind; its effect is noted by its mark."""
        if kind in UPKEEP:
            return UPKEEP[kind]
        effect, call = getattr(self, f"_{kind}")(events, draws)
        self.effects[mark] = effect
        return call  # type: ignore[no-any-return]

    def _apply(self, events: Sequence[Event], _: random.Random) -> tuple[Effect, OrderCall]:
        return self._applied(events), lambda table, notes: table.apply_changes(
            events, op="op", missing="keep", **notes
        )

    def _write(self, events: Sequence[Event], _: random.Random) -> tuple[Effect, OrderCall]:
        """Whole rows, between the sequences of events."""
        rows = [{**row, "lsn": row["lsn"] + 1} for row in _whole_rows(events)]
        return self._applied(rows), lambda table, notes: table.upsert(_table_of(rows), **notes)

    def _overwrite(self, events: Sequence[Event], _: random.Random) -> tuple[Effect, OrderCall]:
        rows = _whole_rows(events)
        effect = self._applied(rows)
        return (
            lambda _, versions: effect({}, versions),
            lambda table, notes: table.overwrite(_table_of(rows), **notes),
        )

    def _restore(self, _: Sequence[Event], draws: random.Random) -> tuple[Effect, OrderCall]:
        version = draws.randrange(3)
        return (
            lambda _, versions: versions[version],
            lambda table, notes: table.restore(min(version, table.refresh()), **notes),
        )

    def _truncate(self, _: Sequence[Event], draws: random.Random) -> tuple[Effect, OrderCall]:
        lsn = 2 * draws.randrange(12)
        source = {"connector": "postgresql", "lsn": lsn, "ts_ms": 1, "snapshot": "false"}
        event = json.dumps({"before": None, "after": None, "source": source, "op": "t", "ts_ms": 1})
        return (
            lambda state, _: truncated(state, lsn),
            lambda table, notes: table.apply_events([event], format="debezium", **notes).commit,
        )

    def _applied(self, events: Sequence[Event]) -> Effect:
        return lambda state, _: applied(state, events, by_column=self.by_column)

    def act(self, name: str, process: Any, draw: Callable[[str], OrderCall], calls: int) -> None:
        """Be an actor: each call is made again after an error of the store."""
        assert process.store is not None
        while True:
            try:
                table = self.world.table(process)
                break
            except (StoreError, CorruptData):
                if not process.store.injected:
                    raise
        for number in range(calls):
            mark = f"{name}.{number}"
            call = draw(mark)
            notes = {"metadata": {"mark": mark}, "token": (name, number)}
            for _ in range(ATTEMPTS):
                injected = process.store.injected
                try:
                    commit = call(table, notes)
                except (StoreError, NotCreated, CorruptData):
                    if process.store.injected == injected:
                        raise
                except CommitConflict:
                    break
                else:
                    if not commit.committed and mark in self.effects:
                        self.late.append((mark, commit.version))
                    break

    def judge(self) -> None:
        """Replay the log, and compare each version and each call without a commit."""
        table = self.world.table(self.world.judge)
        states: dict[int, State] = {}
        state: State = {}
        marks: list[str] = []
        for number in range(table.version + 1):
            path = log_path(number)
            entry = decode_entry(self.world.bucket.ever[path], number, path)
            mark = entry.metadata.get("mark")
            if mark is not None:
                state = self.effects[mark](state, states)
                marks.append(mark)
            states[number] = state
            read = table.scan(version=number, columns=SCHEMA.names).to_arrow().to_pylist()
            found = sorted((tuple(row.values()) for row in read), key=repr)
            if found != rows_of(state):
                self.world.problems.append(
                    f"version {number}, {entry.operation} {mark}: {found}, not {rows_of(state)}"
                )
        if len(set(marks)) < len(marks):
            self.world.problems.append(f"committed twice: {marks}")
        for mark, version in self.late:
            if mark in marks:
                continue  # a repeated call with its token
            if rows_of(self.effects[mark](states[version], states)) != rows_of(states[version]):
                self.world.problems.append(f"{mark} changed nothing at {version}, and was not late")


def run_seed(seed: int, *, calls: int = 5) -> Run:
    """Run a seed and judge it."""
    draws = random.Random(f"order {seed}")
    by_column = draws.random() < 0.5
    scheduler = Scheduler(chooser(random.Random(f"schedule {seed}"), draws.choice([0, 0.6, 0.93])))
    setting = Setting(keyed=True, checkpoint_interval=draws.choice([1, 2, 5]))
    setting = with_drawn_storage(setting, f"order {seed}")
    world = World(
        f"order {seed}", setting, scheduler, overlaps=draws.random() < setting.overlapping
    )
    faults = draws.choice(KINDS)
    with world.entered():
        appliers = _begun(world, by_column=by_column)
        for number in range(draws.choice([2, 2, 3])):
            process = world.process(f"p{number}", fault_plan(faults, draws))
            own = random.Random(f"order {seed} actor {number}")
            draw = partial(appliers.draw, own)
            body = partial(appliers.act, f"a{number}", process, draw, draws.randint(1, calls))
            world.scheduler.spawn(process, f"a{number}", body)
        scheduler.before_step = applying_late(world, random.Random(f"late {seed}"))
        world.run()
        world.judge_by(appliers.judge)
    shape = f"{setting}, by column {by_column}, faults {faults}, overlaps {world.overlaps}"
    return Run(seed, shape, world.problems, scheduler.trace, len(appliers.effects))


def run_calls(
    name: str, kinds: Sequence[str], scheduler: Scheduler, *, by_column: bool
) -> Sequence[str]:
    """Run one call of each kind at once, as the scheduler chooses; return what is wrong."""
    world = World(name, Setting(keyed=True), scheduler)
    with world.entered():
        appliers = _begun(world, by_column=by_column)
        for number, kind in enumerate(kinds):
            process, own = world.process(f"p{number}"), random.Random(f"{name} {number}")
            draw = partial(appliers.call_of, kind, draw_events(own), own)
            body = partial(appliers.act, f"a{number}", process, draw, 1)
            scheduler.spawn(process, f"a{number}", body)
        world.run()
        world.judge_by(appliers.judge)
    return world.problems


def _begun(world: World, *, by_column: bool) -> Appliers:
    properties = {**world.setting.properties, "column_order": "each" if by_column else "row"}
    create_table(URI, SCHEMA, key=["k"], sequence="lsn", properties=properties)
    appliers = Appliers(world, by_column)
    for first in range(2):
        mark = f"first.{first}"
        appliers.effects[mark] = partial(_first, by_column, first)
        world.table(world.judge).apply_changes(
            _first_events(first), op="op", missing="keep", metadata={"mark": mark}
        )
    return appliers


def _whole_rows(events: Sequence[Event]) -> list[Event]:
    """The last event of each key as a row with all columns."""
    whole = [{**dict.fromkeys(COLUMNS), **each, "op": "u"} for each in events]
    return list({row["k"]: row for row in whole}.values())


def _table_of(rows: Sequence[Event]) -> pa.Table:
    return pa.Table.from_pylist([{n: row[n] for n in SCHEMA.names} for row in rows], schema=SCHEMA)


def _first_events(number: int) -> list[Event]:
    return draw_events(random.Random(f"first events {number}"))


def _first(by_column: bool, number: int, state: State, _: Mapping[int, State]) -> State:
    return applied(state, _first_events(number), by_column=by_column)


if __name__ == "__main__":
    main(lambda seed: [run_seed(seed)])
