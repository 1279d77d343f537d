"""The description of one write, as plain values that Spark sends from the driver to the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.change import Question
from rowsieve.changes.data.ingest import (
    Changes,
    prepare_appended,
    prepare_keys,
    prepare_rows,
)
from rowsieve.changes.event_order.sequence_columns import check_sequences
from rowsieve.changes.new_tables import NewTable
from rowsieve.changes.operations import check_inside
from rowsieve.errors import KeyViolation, SchemaMismatch
from rowsieve.providers.spark.row_types import from_spark
from rowsieve.types.conform import canonical_key
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema, schema_from_json
from rowsieve.types.shown_values import shown_row


@dataclass(frozen=True, slots=True)
class WriteJob:
    """One write of a DataFrame; `done`: a commit with its token exists already."""

    table_uri: str
    storage: Mapping[str, str] = field(repr=False)  # may contain secrets
    operation: str
    table_uuid: str
    base_version: int
    schema_json: Mapping[str, Any]
    key: tuple[str, ...]
    properties: Mapping[str, str]
    token: tuple[str, int] | None
    metadata: Mapping[str, Any]
    done: bool
    op: str | None = None  # the column of actions, in a change stream
    sequence: str | None = None
    keeps_missing: bool = False  # a column that the changes lack keeps its value
    event_order: tuple[str, ...] = ()  # the sequence columns of the table
    inline_bytes: int = 0  # rows that the commit stores in its entry
    creates: NewTable | None = None  # the table that the commit creates
    ignores_existing: bool = False  # commit nothing if another process has created the table
    replaces: Question | None = None  # an overwrite of the rows that match it
    one_pass: bool = False  # commit nothing if the tasks' key ranges overlap

    @property
    def schema(self) -> Schema:
        """The table's schema when the write began."""
        return schema_from_json(self.schema_json)

    @property
    def order(self) -> KeyOrder | None:
        """The order of the table's keys; None for a table without a key."""
        return KeyOrder.of(self.schema, self.key) if self.key else None

    @property
    def deletes(self) -> bool:
        """True if its rows are keys to delete."""
        return self.operation == "delete_keys"

    @property
    def merges(self) -> bool:
        """True if its rows are those of a merge: rows to write, and keys to delete."""
        return self.operation == "merge"

    def check_columns(self, schema: pa.Schema) -> None:
        """Raise SchemaMismatch unless rows with these columns can be written."""
        rows = schema.empty_table()
        if self.op is None or self.merges:
            self.changes_of(rows)
            return
        for name, role in ((self.op, "op"), (self.sequence, "sequence")):
            if name is not None and name not in schema.names:
                raise SchemaMismatch(
                    f"changes: no column {name!r} (option {role}) in the data, which has "
                    f"({', '.join(schema.names)})"
                )
        if not self.keeps_missing:
            self.prepare(rows.drop_columns(self._beside(rows)))

    def _beside(self, rows: pa.Table) -> list[str]:
        """The columns of a change stream that the table does not have."""
        return [
            name
            for name in rows.column_names
            if name in (self.op, self.sequence) and name not in self.schema.names
        ]

    def changes_of(self, rows: pa.Table) -> Changes:
        """Convert Spark's rows to rows to write and keys to delete, each sorted by key."""
        if self.merges:
            return self._merged(rows)
        prepared = self.prepare(rows)
        if self.creates is not None and self.creates.info.sequence:
            fields = tuple(map(self.schema.field, self.creates.info.sequence))
            check_sequences(prepared, KeyOrder(fields), self.operation)
        if self.deletes:
            return Changes(None, prepared)
        self._check_replaced(prepared)
        return Changes(prepared, None)

    def _merged(self, rows: pa.Table) -> Changes:
        assert self.op is not None
        order = self.order
        assert order is not None
        is_delete = rows.column(self.op)
        written = self.prepare(rows.drop_columns([self.op]).filter(pc.invert(is_delete)))
        fields = (*order.fields, *map(self.schema.field, self.event_order))
        gone = rows.filter(is_delete).select([field.name for field in fields])
        keys = from_spark(gone, fields)
        deleted = prepare_keys(keys, self.schema, order, self.operation, self.event_order)
        if deleted.num_rows < keys.num_rows:
            raise repeated_key_error(self.operation, _example(keys, order))
        if written.num_rows and deleted.num_rows:
            names = list(order.names)
            both = pa.concat_tables([written.select(names), deleted.select(names)])
            if repeated := _example(both, order):
                raise repeated_key_error(self.operation, repeated)
        return Changes(written, deleted)

    def prepare(self, rows: pa.Table) -> pa.Table:
        """Convert Spark's rows or keys to the table's types and sort them by key."""
        schema, order = self.schema, self.order
        rows = from_spark(rows, schema.fields)
        if order is None:
            return prepare_appended(rows, schema)
        if self.deletes:
            sequence = tuple(name for name in self.event_order if name in rows.column_names)
            return prepare_keys(rows, schema, order, "delete", sequence)
        once = prepare_rows(rows, schema, order, "last", self.operation)
        if once.num_rows < rows.num_rows:
            raise repeated_key_error(self.operation, _example(rows, order))
        return once

    def _check_replaced(self, rows: pa.Table) -> None:
        """Raise InvalidData if a row does not match the condition of a conditional overwrite."""
        if self.replaces is not None:
            check_inside(rows, self.replaces, self.schema)


def repeated_key_error(operation: str, key: Mapping[str, Any]) -> KeyViolation:
    """Build the error for two rows with one key: unordered rows have no last one to keep."""
    if operation == "merge":
        return KeyViolation(
            f"merge: clauses apply to two rows of the source with the key {dict(key)}, so the "
            "result would depend on their order; nothing was committed. Keep one row per key, for "
            "example with dropDuplicates"
        )
    return KeyViolation(
        f"{operation}: two rows of the DataFrame have the key {dict(key)}; nothing was committed. "
        "Keep one row per key, for example with dropDuplicates"
    )


def _example(rows: pa.Table, order: KeyOrder) -> dict[str, Any]:
    """A key that occurs more than once."""
    wanted = {name.lower() for name in order.names}
    names = [name for name in rows.column_names if name.lower() in wanted]
    rows = pa.table({name: canonical_key(rows.column(name)) for name in names})
    counts = rows.group_by(names).aggregate([([], "count_all")])
    repeated = counts.filter(pc.greater(counts.column("count_all"), 1)).select(names).slice(0, 1)
    return shown_row(repeated, 0) if repeated.num_rows else {}
