"""The columns of an event order: which may be, and which of their values have an order.

Soundness: what is refused here would be ordered otherwise than its source orders it, as some text
is (`sequence_texts`). NaN has no place in an order of events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.event_order.sequence_texts import check_texts
from rowsieve.errors import InvalidData, InvalidInput, SchemaMismatch
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import EVENT_ORDER, ORDER_WRITER, Snapshot, TableInfo
from rowsieve.types.logical import Binary, Bool, Enum, Float, String, is_ordered, type_name
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema


def with_event_order(info: TableInfo, schema: Schema, sequence: Sequence[str]) -> TableInfo:
    """Return the information of a new table whose keys are ordered by these columns."""
    if not info.key:
        raise InvalidInput(
            "create_table: sequence= orders the versions of a key, and the table has none; give "
            "key= as well"
        )
    names = tuple(schema.field(name).name for name in sequence)
    if len(set(names)) < len(names) or set(names) & set(info.key):
        raise InvalidInput(
            f"create_table: sequence=({', '.join(names)}) names a column twice, or one of the key "
            f"({', '.join(info.key)}); name other columns"
        )
    for field in map(schema.field, names):
        if isinstance(field.type, Bool | Enum) or not is_ordered(field.type):
            raise InvalidInput(
                f"create_table: column {field.name!r} of type {type_name(field.type)} cannot order "
                "the versions of a key; use a number, a time, text or bytes of one length"
            )
    return replace(
        info,
        sequence=names,
        writer_version=max(info.writer_version, ORDER_WRITER),
        features=tuple(sorted({*info.features, EVENT_ORDER})),
    )


def sequence_names(
    sequence: str | Sequence[str] | None, table_order: Sequence[str]
) -> tuple[str, ...]:
    """The sequence columns of a change stream: those given, or those of the table's event order."""
    names = (sequence,) if isinstance(sequence, str) else tuple(sequence or ())
    if not table_order:
        if not names:
            raise InvalidInput(
                "apply_changes: sequence= is missing; name the column that orders the changes, or "
                "create the table with sequence="
            )
        return names
    if names and [name.lower() for name in names] != [name.lower() for name in table_order]:
        raise InvalidInput(
            f"apply_changes: sequence=({', '.join(names)}) is not the table's, which orders "
            f"changes by ({', '.join(table_order)}); leave it out"
        )
    return names or tuple(table_order)


def has_sequences(keys: pa.Table, table_order: Sequence[str], operation: str) -> bool:
    """Return whether keys to delete have their sequences; SchemaMismatch if only some columns."""
    folded = {name.lower() for name in keys.column_names}
    present = [name for name in table_order if name.lower() in folded]
    if present and len(present) < len(table_order):
        raise SchemaMismatch(
            f"{operation}: the keys have the sequence columns ({', '.join(present)}) and lack "
            f"others of ({', '.join(table_order)}); give all of them, or none"
        )
    return bool(present)


def order_of(snapshot: Snapshot) -> KeyOrder:
    """The order of the sequences of a table that has an event order."""
    return KeyOrder(snapshot.sequence_fields)


def check_sequences(
    rows: pa.Table, order: KeyOrder, operation: str, parts: PartTable | None = None
) -> None:
    """Raise unless each row or tombstone, in the table's types, has a sequence with an order.

    `parts`: those of the table, if it has any.
    """
    for field in order.fields:
        if field.name not in rows.column_names:
            raise SchemaMismatch(
                f"{operation}: the data lacks the sequence column {field.name!r}, by which the "
                f"table orders changes; it has ({', '.join(rows.column_names)})"
            )
        column = rows.column(field.name)
        if column.null_count:
            raise InvalidData(
                f"{operation}: sequence column {field.name!r} is NULL in {column.null_count} of "
                f"{rows.num_rows} rows; every change needs a sequence. Nothing was written"
            )
        if isinstance(field.type, Float) and pc.any(pc.is_nan(column)).as_py():
            raise InvalidData(
                f"{operation}: sequence column {field.name!r} holds NaN, which has no order; give "
                "every change a number. Nothing was written"
            )
        if isinstance(field.type, String | Binary):
            check_texts(column, field, parts, operation)
