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
from pathlib import Path
from typing import Any, cast

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

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.catalog = rowsieve.Catalog(Path(self.folder.name))
        self.table = self.catalog.create_table(
            "db.t",
            SCHEMA,
            key=["id"],
            sequence=["major", "minor"],
            properties={"target_part_bytes": 900, "checkpoint_interval": 3},
        )
        self.newest: dict[int, State] = {}
        self.versions: dict[int, dict[int, State]] = {0: {}}

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
            self.newest[key] = (self.newest[key][0], None)
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
        assert bag(scanned) == expected
        assert self.table.count() == len(expected)
        for session in (datafusion.SessionContext(), SessionContext()):
            session.register_table("t", self.table)
            read = session.sql("SELECT * FROM t WHERE major <= 3").to_arrow_table()
            assert bag(read.select(SCHEMA.names)) == expected
        data = self.table.to_dataset()  # noqa: F841 - DuckDB finds it by its name
        with duckdb.connect() as judge:
            assert bag(judge.sql("SELECT * FROM data").to_arrow_table()) == expected


def bag(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=str)


TestEventOrder = EventOrderMachine.TestCase
TestEventOrder.settings = settings(cast("settings", examples(48)), stateful_step_count=25)
