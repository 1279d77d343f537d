"""The law of an event order: whatever happens in between, a table is the fold of its events.

For any set of events, any permutation, any cutting into batches, any repetition, and any commits,
compactions, crashes, restarts and concurrent appliers in between, the rows are those of the events
applied in the order of their sequence. The oracle is a dictionary.

Events of some columns change the row that is there, and nothing if they are late.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import datafusion
import duckdb
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import rowsieve
from rowsieve import Table
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import RowsieveError
from rowsieve.providers.datafusion import SessionContext
from rowsieve.storage.log.commit_log import CommitLog
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Crash, Fault
from tests.profiles import examples
from tests.small_tables import meddled

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("major", pa.int64()),
        ("minor", pa.int64()),
        ("v", "string"),
        ("w", "string"),
    ]
)
KEYS = 30

Sequence_ = tuple[int, int]
Event = tuple[int, Sequence_, bool]
"""(id, sequence, is delete): one change of the source; its values follow from these."""

State = tuple[Sequence_, tuple[str | None, str | None] | None]
"""The sequence of a key and its values, None if it was deleted."""

EVENTS = st.tuples(
    st.integers(0, KEYS - 1),
    st.tuples(st.sampled_from((0, 1, 3)), st.integers(0, 6)),  # with gaps, and ties across keys
)
BATCHES = st.lists(EVENTS, max_size=12)
FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.UNAVAILABLE, Fault.LOST_ANSWER)


def event_of(place: tuple[int, Sequence_]) -> Event:
    """The source has one change of a key for each sequence: a fourth are deletes."""
    id_, sequence = place
    return id_, sequence, (id_ + 3 * sequence[0] + sequence[1]) % 4 == 0


def value_of(event: Event) -> str:
    id_, (major, minor), _ = event
    return f"{id_}/{major}/{minor}"


def as_rows(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [
        {
            "op": "d" if event[2] else "u",
            "id": event[0],
            "major": event[1][0],
            "minor": event[1][1],
            "v": None if event[2] else value_of(event),
            "w": None,
        }
        for event in events
    ]


def as_half_rows(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The same with a value in w alone."""
    rows = []
    for event, row in zip(events, as_rows(events), strict=True):
        del row["v"]
        rows.append({**row, "w": value_of(event)})
    return rows


class EventOrderMachine(RuleBasedStateMachine):
    """A table and the state of each key, with those of each version."""

    PROPERTIES: ClassVar[dict[str, Any]] = {"target_part_bytes": 900, "checkpoint_interval": 3}

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.catalog = rowsieve.Catalog(Path(self.folder.name))
        self.table = self.catalog.create_table(
            "db.t",
            SCHEMA,
            key=["id"],
            sequence=["major", "minor"],
            properties=self.PROPERTIES,
        )
        self.newest: dict[int, Any] = {}
        self.versions: dict[int, dict[int, Any]] = {0: {}}

    def teardown(self) -> None:
        self.folder.cleanup()

    # What the oracle says

    def fold(self, events: Sequence[Event]) -> int:
        """Fold the events into the oracle; return how many of the newest per key were late."""
        batch: dict[int, Event] = {}
        for event in events:
            if event[0] not in batch or batch[event[0]][1] < event[1]:
                batch[event[0]] = event
        late = 0
        for id_, event in batch.items():
            if id_ in self.newest and self.newest[id_][0] > event[1]:
                late += 1
            else:
                self.newest[id_] = (event[1], None if event[2] else (value_of(event), None))
        return late

    def fold_halves(self, events: Sequence[Event]) -> int:
        """Fold events of w alone into the oracle; return how many were late."""
        before, late = dict(self.newest), 0
        for event in sorted(set(events), key=lambda event: event[1]):
            id_, sequence, is_delete = event
            if id_ in before and before[id_][0] > sequence:
                late += 1
                continue
            _, values = self.newest.get(id_, (sequence, None))
            v = None if values is None else values[0]
            self.newest[id_] = (sequence, None if is_delete else (v, value_of(event)))
        return late

    def deleted(self, state: Any) -> Any:
        """The state of a key whose row is deleted as it is."""
        return state[0], None

    def noted(self) -> None:
        self.versions[self.table.refresh()] = dict(self.newest)

    def expected(self) -> list[tuple[Any, ...]]:
        rows = (
            (id_, *sequence, *values)
            for id_, (sequence, values) in self.newest.items()
            if values is not None
        )
        return sorted(rows, key=str)

    # What happens

    @rule(places=BATCHES)
    def apply(self, places: list[tuple[int, Sequence_]]) -> None:
        events = [event_of(place) for place in places]
        commit = self.table.apply_changes(as_rows(events), op="op")
        assert commit.rows_late == self.fold(events)
        self.noted()

    @rule(places=BATCHES)
    def upsert(self, places: list[tuple[int, Sequence_]]) -> None:
        events = [each for each in map(event_of, places) if not each[2]]
        commit = self.table.upsert(
            pa.Table.from_pylist(as_rows(events), schema=SCHEMA) if events else SCHEMA.empty_table()
        )
        assert commit.rows_late == self.fold(events)
        self.noted()

    @rule(places=BATCHES)
    def delete_by_key(self, places: list[tuple[int, Sequence_]]) -> None:
        events = [each for each in map(event_of, places) if each[2]]
        if events:
            keys = [{"id": i, "major": s[0], "minor": s[1]} for i, s, _ in events]
            assert self.table.delete(keys=keys).rows_late == self.fold(events)
            self.noted()

    @rule(key=st.integers(0, KEYS - 1))
    def delete_by_condition(self, key: int) -> None:
        """The delete has the sequence of the row that it saw."""
        self.table.delete(f"id = {key}")
        if key in self.newest:
            self.newest[key] = self.deleted(self.newest[key])
        self.noted()

    @rule(places=BATCHES)
    def apply_half_rows(self, places: list[tuple[int, Sequence_]]) -> None:
        events = [event_of(place) for place in places]
        commit = self.table.apply_changes(as_half_rows(events), op="op", missing="keep")
        assert commit.rows_late == self.fold_halves(events)
        self.noted()

    @rule()
    def rewrite(self) -> None:
        """As `compact` does, in tasks."""
        self.catalog.call("CALL system.rewrite_data_files('db.t')")
        self.noted()

    @rule(places=st.lists(BATCHES, min_size=2, max_size=3))
    def apply_concurrently(self, places: list[list[tuple[int, Sequence_]]]) -> None:
        """Each applier begins on the version before, and commits after another one."""
        batches = [[event_of(place) for place in each] for each in places]
        store = self.table.handle.store
        appliers = [rowsieve.open_table(store.uri) for _ in batches]
        self.chain(appliers, batches)()
        for events in batches:
            self.fold(events)
        self.noted()

    def chain(
        self, appliers: Sequence[Table], batches: Sequence[Sequence[Event]]
    ) -> Callable[[], None]:
        """Apply the first batch; right before its entry is put, the others are applied."""

        def call() -> None:
            rest, tries = self.chain(appliers[1:], batches[1:]), 0

            def meddle(number: int) -> None:
                nonlocal tries
                tries += 1
                if number == 0:
                    rest()

            meddled(appliers[0], meddle).apply_changes(as_rows(batches[0]), op="op")
            if not tries:  # nothing was committed
                rest()

        return call if appliers else lambda: None

    @rule(places=BATCHES, fault=st.sampled_from(FAULTS), after=st.integers(0, 12))
    def crash(self, places: list[tuple[int, Sequence_]], fault: Fault, after: int) -> None:
        """A process dies within a call, and its successor applies the batch again."""
        events = [event_of(place) for place in places]
        faulty: Any = FaultyStore(self.table.handle.store)
        log = CommitLog(faulty)
        table = Table(Handle(faulty, log, log.latest()))
        faulty.meet(fault, after)
        with suppress(RowsieveError, Crash):
            table.apply_changes(as_rows(events), op="op")
        self.table = rowsieve.open_table(self.table.handle.store.uri)
        self.table.apply_changes(as_rows(events), op="op")
        self.fold(events)
        self.noted()

    @rule()
    def compact(self) -> None:
        self.table.compact()
        self.noted()

    @rule()
    def store_vectors(self) -> None:
        self.table.build_deletion_vectors()
        self.noted()

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        """What happened after the restored version never happened."""
        version = data.draw(st.sampled_from(sorted(self.versions)))
        self.table.restore(version)
        self.newest = dict(self.versions[version])
        self.noted()

    @rule(places=BATCHES)
    def overwrite(self, places: list[tuple[int, Sequence_]]) -> None:
        events = [each for each in map(event_of, places) if not each[2]]
        if events:
            self.table.overwrite(pa.Table.from_pylist(as_rows(events), schema=SCHEMA))
            self.newest = {}
            self.fold(events)
            self.noted()

    @rule()
    def vacuum(self) -> None:
        self.table.vacuum(retain_last=1, grace_s=0)
        self.versions = {}
        self.noted()

    # What must hold

    @invariant()
    def every_reader_has_the_fold(self) -> None:
        expected = self.expected()
        scanned = self.table.scan().to_arrow()
        assert bag(scanned.select(SCHEMA.names)) == expected
        assert self.table.count() == len(expected)
        for session in (datafusion.SessionContext(), SessionContext()):
            session.register_table("t", self.table)
            read = session.sql("SELECT * FROM t WHERE major <= 3").to_arrow_table()
            assert bag(read.select(SCHEMA.names)) == expected
        data = self.table.to_dataset()  # noqa: F841 - DuckDB finds it by its name
        with duckdb.connect() as judge:
            read = judge.sql("SELECT * FROM data").to_arrow_table()
            assert bag(read.select(SCHEMA.names)) == expected


@dataclass(frozen=True)
class ByColumn:
    """The newest sequence of a key, whether its row is there, and (sequence, value) by column."""

    sequence: Sequence_
    is_row: bool
    values: dict[str, tuple[Sequence_, str | None]]


class ColumnOrderMachine(EventOrderMachine):
    """The same law of each column: a late event changes what nothing newer has set."""

    PROPERTIES: ClassVar[dict[str, Any]] = {
        **EventOrderMachine.PROPERTIES,
        "column_order": "each",
    }

    def fold(self, events: Sequence[Event]) -> int:
        return self.fold_columns(events, lambda event: {"v": value_of(event), "w": None})

    def fold_halves(self, events: Sequence[Event]) -> int:
        return self.fold_columns(events, lambda event: {"w": value_of(event)})

    def fold_columns(
        self, events: Sequence[Event], given: Callable[[Event], dict[str, str | None]]
    ) -> int:
        """Fold events into the oracle; return how many changed nothing of what was there."""
        before, late = dict(self.newest), 0
        for event in sorted(set(events), key=lambda event: event[1]):
            id_, sequence, is_delete = event
            values: dict[str, str | None] = {"v": None, "w": None}
            if not is_delete:
                values = given(event)
            if id_ in before and not takes_effect(before[id_], sequence, values):
                late += 1
            state = self.newest.get(id_, ByColumn((-1, 0), is_row=False, values={}))
            is_newest = sequence >= state.sequence
            set_now = {
                name: (sequence, value)
                for name, value in values.items()
                if name not in state.values or sequence >= state.values[name][0]
            }
            self.newest[id_] = ByColumn(
                max(sequence, state.sequence),
                not is_delete if is_newest else state.is_row,
                {**state.values, **set_now},
            )
        return late

    def deleted(self, state: ByColumn) -> ByColumn:
        if not state.is_row:
            return state
        cleared: tuple[Sequence_, str | None] = (state.sequence, None)
        values = dict.fromkeys(("v", "w"), cleared)
        return ByColumn(state.sequence, is_row=False, values=values)

    def expected(self) -> list[tuple[Any, ...]]:
        rows = (
            (id_, *state.sequence, *(state.values.get(name, (0, None))[1] for name in ("v", "w")))
            for id_, state in self.newest.items()
            if state.is_row
        )
        return sorted(rows, key=str)


def takes_effect(state: ByColumn, sequence: Sequence_, values: dict[str, str | None]) -> bool:
    """Whether an event is the newest of its key, or sets a value that nothing newer has set."""
    return sequence >= state.sequence or any(
        name not in state.values or sequence >= state.values[name][0] for name in values
    )


def bag(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=str)


TestEventOrder = EventOrderMachine.TestCase
TestEventOrder.settings = settings(cast("settings", examples(48)), stateful_step_count=25)

TestColumnOrder = ColumnOrderMachine.TestCase
TestColumnOrder.settings = settings(cast("settings", examples(48)), stateful_step_count=10)
