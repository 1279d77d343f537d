"""The columns that events bring, and the wider types that their values need.

Events are read for the table's columns. Those that do not fit are looked at as plain JSON: their
unknown names become columns, and their values widen the types of known ones. Then all events are
read again, until nothing more is learned. An unknown column that is NULL in all of these events
needs no column yet, and neither does one that only rows before a change have.

Soundness: types follow from the schema of the events, or else from all values of the column: a
column whose values have no common type is not added, and its events stay bad.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from rowsieve.changes.merged_columns import changes_with_data
from rowsieve.envelopes.bad_events import BadEvents
from rowsieve.envelopes.formats import Format
from rowsieve.envelopes.messages import Messages
from rowsieve.envelopes.plain_rows import names_of_rows, rows_after
from rowsieve.envelopes.reading_events import as_object, payload_of, row_names
from rowsieve.envelopes.spelling import spelled_as
from rowsieve.envelopes.values.semantic_types import column_types
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.evolution import evolve

_INT64: Final = (-(2**63), 2**63 - 1)


@dataclass(slots=True)
class SentColumns:
    """The values and the declared types of the columns of some events, by name."""

    values: dict[str, list[Any]] = field(default_factory=dict)
    types: dict[str, pa.DataType] = field(default_factory=dict)

    def table(self, *, documents: bool) -> pa.Table:
        """One column for each name whose values have a type in common, with these values."""
        columns = {}
        for name, values in self.values.items():
            column = _column(values, self.types.get(name), documents=documents)
            if column is not None:
                columns[name] = column
        longest = max(map(len, columns.values()), default=0)
        padded = [pa.concat_arrays([each, pa.nulls(longest - len(each), each.type)])
                  for each in columns.values()]  # fmt: skip
        return pa.table(padded, list(columns))

    def always_null(self) -> frozenset[str]:
        """The names whose values are all NULL, of no declared type."""
        return frozenset(
            name
            for name, values in self.values.items()
            if name not in self.types and all(value is None for value in values)
        )


def with_columns_of(
    snapshot: Snapshot, messages: Messages, bad: BadEvents, format_: Format
) -> tuple[Snapshot, frozenset[str]]:
    """The snapshot with the columns that bad events need, and the names that need no column."""
    if messages.structs is not None:
        sent_rows = _of_structs(messages.structs, format_)
        new_names = row_names(payload_of(messages.structs), format_)
        return _with_columns(snapshot, sent_rows), _unknown(
            new_names, sent_rows.column_names, snapshot
        )
    sent = SentColumns()
    names: set[str] = set()
    for event in bad.reasons:
        message = as_object(messages.texts[event])
        if not isinstance(message, dict):
            continue
        declared = column_types(message.get("schema"))
        names |= names_of_rows(message, format_)
        for row in rows_after(message, format_):
            for name, value in row.items():
                if format_.beside and (name in format_.extra or name.startswith("__")):
                    continue
                sent.values.setdefault(name, []).append(value)
                if name in declared:
                    sent.types.setdefault(name, declared[name])
    needed = sent.values.keys() - sent.always_null()
    columns = sent.table(documents=format_.rules.nested_json)
    return _with_columns(snapshot, columns), _unknown(names, needed, snapshot)


def _unknown(names: Iterable[str], needed: Collection[str], snapshot: Snapshot) -> frozenset[str]:
    """The names that are of no column of the table, and of none that it needs."""
    names = dict.fromkeys(names)
    known = spelled_as(snapshot.schema.names, names).values()
    return frozenset(names.keys() - set(needed) - set(known))


def _with_columns(snapshot: Snapshot, sent: pa.Table) -> Snapshot:
    changes = changes_with_data(snapshot.schema, sent)
    if not changes:
        return snapshot
    table = snapshot.table
    fixed = (*table.key, *table.sequence)
    schema, _ = evolve(snapshot.schema, changes, snapshot.next_field_id, fixed)
    return replace(snapshot, schema=schema)


def _of_structs(structs: pa.Table, format_: Format) -> pa.Table:
    """The rows after the change in Arrow structs."""
    table = payload_of(structs)
    names = [name for name in row_names(table, format_) if not name.startswith("__")]
    if format_.beside:
        return table.select(names)
    after = table.column(format_.after).combine_chunks()
    members = after.flatten()
    return pa.table(members, [each.name for each in after.type]).select(
        [name for name in names if after.type.get_field_index(name) >= 0]
    )


def _column(values: list[Any], declared: pa.DataType | None, *, documents: bool) -> pa.Array | None:
    """The values as a column; None without a common type.

    Values of a declared type are written in another way, and only NULLs stand for them. Objects and
    lists are `documents` of JSON, or nested values.
    """
    if declared is not None:
        return pa.nulls(len(values), declared)
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int} and any(not _INT64[0] <= value <= _INT64[1] for value in values if value):
        return None
    if kinds == {int, float}:
        return pa.array([None if each is None else float(each) for each in values], pa.float64())
    if documents and kinds and kinds <= {dict, list}:
        texts = [None if each is None else json.dumps(each) for each in values]
        return pa.array(texts, pa.json_())
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
        column = pa.array(values) if len(kinds) == 1 else None
        return None if column is None or _lacks_type(column.type) else column
    return None


def _lacks_type(type_: pa.DataType) -> bool:
    """Whether the values do not tell the type of a member, as an empty list does not."""
    members = (type_.field(place).type for place in range(type_.num_fields))
    return pa.types.is_null(type_) or any(map(_lacks_type, members))
