"""Calls of a writer, and their data as changes of the table.

A call with one row is prepared together with its neighbours in the queue, all others alone, in the
thread of the caller. What a call brings is checked completely before it is written to the log, so
that neither replay nor flush can fail on it: types, NULL and repeated keys, constraints, sequences.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

import pyarrow as pa

from rowsieve.changes.data.ingest import (
    Changes,
    prepare_appended,
    prepare_keys,
    prepare_rows,
    read_data,
)
from rowsieve.changes.event_order.sequence_columns import check_sequences, has_sequences
from rowsieve.changes.event_order.too_late import ON_TOO_LATE, floor_of
from rowsieve.errors import InvalidData, UnsupportedOperation
from rowsieve.properties import COMBINE, HISTORY, is_by_column
from rowsieve.storage.constraints import RowChecks
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Binary, String
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.ordering.sequences import is_above
from rowsieve.types.schema import Schema
from rowsieve.writer.acknowledgements import Acknowledgement
from rowsieve.writer.records import Form, adapted

Action = Literal["upsert", "append", "delete"]


@dataclass(slots=True)
class QueuedCall:
    """One call: its data as one row that is not prepared yet, or prepared."""

    action: Action
    rows: int
    acknowledgement: Acknowledgement
    row: Mapping[str, Any] | None = None
    changes: Changes | None = None
    form: Form | None = None
    begun_s: float = field(default_factory=time.perf_counter)


class Preparation:
    """Prepares the data of calls for one version of the table's columns and properties."""

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        is_logged: bool,
        storage_options: Mapping[str, Any],
        earlier: Preparation | None = None,
    ) -> None:
        self.snapshot = snapshot
        self._storage_options = storage_options
        self.form = Form.of(snapshot)
        self._is_logged = is_logged
        key = tuple(map(snapshot.schema.field, snapshot.table.key))
        self._checks = RowChecks(snapshot.table.properties, snapshot.schema, key)
        self._order = self.form.order if key else None
        self._floor = floor_of(snapshot)
        fields = () if self.form.sequences is None else self.form.sequences.fields
        self._texts = KeyOrder(tuple(f for f in fields if isinstance(f.type, String | Binary)))
        self._first_texts: pa.Table | None = None if earlier is None else earlier._first_texts

    def check_action(self, action: Action) -> None:
        """Raise UnsupportedOperation for an action that this table does not have."""
        has_key = bool(self.form.key)
        if action == "append" and has_key:
            raise UnsupportedOperation(
                f"append: the table has the key ({', '.join(self.form.key)}), and appended rows "
                "could duplicate existing keys; use upsert"
            )
        if action != "append" and not has_key:
            raise UnsupportedOperation(
                f"{action}: the table has no key; use append, or create a table with key="
            )
        properties = self.snapshot.table.properties
        if is_by_column(properties):
            raise UnsupportedOperation(
                f"{action}: events of the table change the columns that nothing newer has set "
                "(column_order='each'), so they read the rows that they meet, which a writer does "
                f"not; use Table.{action}"
            )
        if action == "upsert" and COMBINE in properties:
            raise UnsupportedOperation(
                "upsert: the table combines values by its property combine, so an upsert reads the "
                "rows that it meets, which a writer does not; use Table.upsert"
            )
        if HISTORY in properties:
            raise UnsupportedOperation(
                f"{action}: the table keeps the history of its rows in ({properties[HISTORY]}), "
                "and a writer closes no interval; use Table.apply_changes"
            )

    def single(self, data: Any) -> Mapping[str, Any] | None:
        """Return the row of data that is one row; None for any other data."""
        if type(data) is list and len(data) == 1 and isinstance(data[0], Mapping):
            return dict(data[0])  # the caller may change it before it is prepared
        if isinstance(data, Mapping) and data:
            names = self.form.key[:1] or tuple(data)
            if any(_is_one_value(data.get(name)) for name in names):
                return dict(data)
        return None

    def _read(self, data: Any, action: Action, schema: Schema) -> pa.Table:
        appends, options = action == "append", self._storage_options
        return read_data(data, action, schema, appends=appends, storage_options=options)

    def changes(self, action: Action, data: Any, *, one_each: bool = False) -> Changes:
        """Check and convert data; `one_each`: it is rows of several calls, in their order."""
        schema = self.form.schema
        if action == "append":
            table = self._read(data, action, schema)
            return self._checked(Changes(prepare_appended(table, schema), None), action)
        assert self._order is not None
        sequence = self.form.sequence
        if action == "upsert":
            table = self._read(data, action, schema)
            on_duplicate: Literal["last", "error"] = "last" if one_each else "error"
            rows = prepare_rows(table, schema, self._order, on_duplicate, action, sequence)
            return self._checked(Changes(rows, None), action)
        key_rows = self._read(data, action, self.form.deleted)
        if sequence and not has_sequences(key_rows, sequence, action):
            raise UnsupportedOperation(
                "delete: the table has an event order, and keys without its sequence columns "
                f"({', '.join(sequence)}) delete the rows that are there, which a writer does not "
                "read; give them, or use Table.delete"
            )
        keys = prepare_keys(key_rows, schema, self._order, action, sequence)
        return self._checked(Changes(None, keys), action)

    def _checked(self, changes: Changes, action: Action) -> Changes:
        if changes.rows is not None:
            self._checks.check(changes.rows)
        if (sequences := self.form.sequences) is not None:
            for table in (changes.rows, changes.deletes):
                if table is not None and table.num_rows:
                    check_sequences(table, sequences, action, self.snapshot.parts)
                    self._check_floor(table, action)
        return changes

    def admit(self, changes: Changes, action: str) -> None:
        """Check sequences of text with those of the changes that were admitted before these.

        Changes that are not committed yet are compared with each other, so their texts must have
        one length, too. Only for the thread that takes the calls from the queue.
        """
        for text in self._texts_of(changes):
            first = text.slice(0, 1) if self._first_texts is None else self._first_texts
            first = first.rename_columns(text.column_names).cast(text.schema)
            check_sequences(pa.concat_tables([first, text]), self._texts, action)
        self.note(changes)

    def note(self, changes: Changes) -> None:
        """Later changes are compared with these, which were admitted by another writer."""
        for text in self._texts_of(changes):
            if self._first_texts is None:
                self._first_texts = text.slice(0, 1)

    def _texts_of(self, changes: Changes) -> list[pa.Table]:
        tables = [table for table in (changes.rows, changes.deletes) if table is not None]
        names = list(self._texts.names)
        return [table.select(names) for table in tables if names and table.num_rows]

    def _check_floor(self, table: pa.Table, action: Action) -> None:
        """Refuse actions that are not above the floor of the event order: they may be too late.

        The flush leaves them out and counts them, which is what the property "drop" asks for.
        """
        sequences = self.form.sequences
        if self._floor is None or sequences is None or not self._is_logged:
            return
        if self.snapshot.table.properties.get(ON_TOO_LATE) == "drop":
            return
        above = is_above(sequences.columns(table), sequences.columns(self._floor))
        if not above.all():
            raise InvalidData(
                f"{action}: {int((~above).sum())} changes are not above the floor of the table's "
                "event order: deletes up to it are forgotten since late_horizon has passed, and "
                "the write-ahead log takes no change that may be too late. Use Table.upsert, or "
                "set the property on_too_late to drop, which leaves them out"
            )


_SCALARS = (str, bytes, bytearray)


def _is_one_value(value: Any) -> bool:
    """Return whether this is a value of one row, not a column of values."""
    return value is None or isinstance(value, _SCALARS) or not hasattr(value, "__len__")


def prepared(
    calls: Sequence[QueuedCall],
    preparation: Preparation,
    fail: Callable[[QueuedCall, BaseException], None],
) -> Iterator[tuple[list[QueuedCall], Changes]]:
    """Yield calls that succeed with their changes, in order; `fail` is told of each other one."""
    for (action, is_single), group in groupby(calls, lambda c: (c.action, c.row is not None)):
        members = list(group)
        if not is_single:
            for call in members:
                assert call.changes is not None
                assert call.form is not None
                changes = adapted(call.changes, call.form, preparation.form)
                try:
                    preparation.admit(changes, action)
                except InvalidData as error:
                    fail(call, error)
                else:
                    yield [call], changes
            continue
        yield from _singles(action, members, preparation, fail)


def _singles(
    action: Action,
    calls: list[QueuedCall],
    preparation: Preparation,
    fail: Callable[[QueuedCall, BaseException], None],
) -> Iterator[tuple[list[QueuedCall], Changes]]:
    """Prepare calls of one row together; after an error each alone, so that only bad ones fail."""
    try:
        together = preparation.changes(action, [call.row for call in calls], one_each=True)
        preparation.admit(together, action)
    except Exception as error:  # also a fault of ours: it must not end the thread
        if len(calls) == 1:
            fail(calls[0], error)
            return
        for call in calls:
            yield from _singles(action, [call], preparation, fail)
    else:
        yield calls, together
