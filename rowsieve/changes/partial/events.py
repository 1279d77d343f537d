"""The changes of one call in the order in which they apply to each key.

Nothing is written before all of them have been checked. What a deleted row has beside its key, and
what a row has where it gives no value, means nothing and is not converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.changes.data.ingest import (
    OnDuplicate,
    canonical_keys,
    key_names,
    refuse_null_keys,
    sequences_of,
)
from rowsieve.changes.data.newest_per_key import in_order
from rowsieve.changes.event_order.sequence_columns import check_sequences
from rowsieve.changes.partial.given_values import GivenValues, Mask
from rowsieve.errors import KeyViolation, SchemaMismatch, did_you_mean
from rowsieve.types.conform import conform
from rowsieve.types.encodings import arrow_field
from rowsieve.types.logical import Field
from rowsieve.types.ordering.column_order import COLUMN_ORDER
from rowsieve.types.ordering.keys import KeyOrder, flat
from rowsieve.types.schema import ColumnNames, Schema
from rowsieve.types.shown_values import shown_row

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Events:
    """Changes by key, those of one key in the order in which they apply.

    `keys` are sorted and unique; `owners` (m,) is the place of each event's key among them, and
    `deletes` (m,) whether it deletes the row. `values` has the columns that some event gives, in
    the table's types; `gives` (m,) says which events give a column, and the others have NULL.
    `sequences` (m,) has the sequence columns of a table with an event order, of deletes too.
    """

    keys: pa.Table
    owners: Places
    deletes: Mask
    values: pa.Table
    gives: Mapping[str, Mask]
    sequences: pa.Table | None

    def __len__(self) -> int:
        return len(self.owners)

    def select(self, chosen_events: Mask) -> Events:
        """The events where `chosen_events` (m,) is true; keys without one are dropped."""
        owners = self.owners[chosen_events]
        has_events = np.zeros(self.keys.num_rows, dtype=bool)
        has_events[owners] = True
        chosen = pa.array(chosen_events)
        return Events(
            self.keys.filter(pa.array(has_events)),
            (np.cumsum(has_events) - 1)[owners],
            self.deletes[chosen_events],
            self.values.filter(chosen) if self.gives else self.values,
            {name: mask[chosen_events] for name, mask in self.gives.items()},
            None if self.sequences is None else self.sequences.filter(chosen),
        )


def prepare_events(
    rows: GivenValues,
    schema: Schema,
    order: KeyOrder,
    operation: str,
    *,
    deletes: Mask | None = None,
    sequence: Sequence[str] = (),
    table_order: Sequence[str] = (),
    on_duplicate: OnDuplicate = "error",
    control: Sequence[str] = (),
) -> Events:
    """Check and convert the rows, and order them by key and by the columns `sequence`.

    Without those they apply in their own order, and a repeated key is a KeyViolation unless
    `on_duplicate="last"`. `table_order` are the sequence columns of a table with an event order.
    `control` are columns that are not the table's.
    """
    table = rows.table
    names, of_table = key_names(table, order), ColumnNames(schema.names)
    for name in (*order.names, *table_order):
        _refuse_absent(rows, name, of_table, operation)
    refuse_null_keys(table, order, operation)
    keys = canonical_keys(conform(table.select(names), schema.select(order.names)), order)
    columns = order.columns(keys)
    stored = _stored_sequences(table, schema, table_order, operation)
    if sequence:
        ordered = in_order(
            _compared(rows, of_table, control),
            columns,
            sequences_of(table if stored is None else stored, schema, sequence, table_order),
            deletes=deletes,
            last_wins=on_duplicate == "last",
            operation=operation,
            names=sequence,
        )
    else:
        ordered = columns.sort()  # stable
        if on_duplicate == "error":
            _refuse_repeats(keys, order, columns.repeats(ordered), ordered, operation)
    is_delete = np.zeros(table.num_rows, dtype=bool) if deletes is None else deletes
    others = table.drop_columns([*names, *control])
    values, gives = _values(rows, others, schema, order, ~is_delete, operation)
    starts = ~columns.repeats(ordered)
    return Events(
        keys.take(pa.array(ordered[starts])),
        np.cumsum(starts) - 1,
        is_delete[ordered],
        values.take(pa.array(ordered)),
        {name: mask[ordered] for name, mask in gives.items()},
        None if stored is None else stored.take(pa.array(ordered)),
    )


def _compared(rows: GivenValues, names: ColumnNames, control: Sequence[str]) -> pa.Table:
    """What two changes must have in common to be the same one, by names that a message shows.

    What stands in a column that its row keeps has no meaning.
    """
    table = rows.table.drop_columns([*control])
    for place, name in enumerate(table.column_names):
        mask = rows.absent_in(name, names)
        if mask is not None:
            present = pa.array(np.arange(len(mask)), mask=mask)
            table = table.set_column(place, name, flat(table.column(place)).take(present))
            table = table.append_column(f"{name} is kept", pa.array(mask))
    return table


def _stored_sequences(
    table: pa.Table, schema: Schema, table_order: Sequence[str], operation: str
) -> pa.Table | None:
    """The sequence columns of a table with an event order, in its types."""
    if not table_order:
        return None
    fields = schema.select(tuple(table_order))
    folded = {name.lower(): name for name in table.column_names}
    names = [folded[name.lower()] for name in table_order if name.lower() in folded]
    sequences = table
    if len(names) == len(table_order):
        sequences = conform(table.select(names), _nullable(fields))
    check_sequences(sequences, KeyOrder(fields.fields), operation)
    return sequences


def _values(
    rows: GivenValues,
    others: pa.Table,
    schema: Schema,
    order: KeyOrder,
    is_row: Mask,
    operation: str,
) -> tuple[pa.Table, dict[str, Mask]]:
    """The given columns in the table's types, and the rows that give each."""
    _refuse_unknown(others, schema)
    names = ColumnNames(schema.names)
    fields = [field for field in schema if field.name not in order.names]
    if rows.keeps or not is_row.any():
        given = set(names.columns(others.column_names))
        fields = [field for field in fields if field.name in given]
    gives = {}
    for name in others.column_names:
        column, absent = names.column(name), rows.absent_in(name, names)
        mask = is_row if absent is None else is_row & ~absent
        if mask.all():
            gives[column] = mask
        elif mask.any():
            gives[column] = mask
            place = others.column_names.index(name)
            places = pa.array(np.arange(len(mask)), mask=~mask)
            others = others.set_column(
                place, others.field(place), others.column(place).take(places)
            )
        else:
            others = others.drop_columns([name])
            fields = [field for field in fields if field.name != column]
    relaxed = _nullable(Schema(schema.id, tuple(fields)))
    values = conform(others, relaxed)
    by_name = {field.name: gives[field.name] for field in fields}
    for field in fields:
        if not field.nullable:
            _refuse_nulls(rows.table, order, values, field, by_name[field.name], operation)
    columns = [values.column(field.name) for field in fields]
    return pa.table(columns, schema=pa.schema([arrow_field(f) for f in relaxed])), by_name


def _nullable(schema: Schema) -> Schema:
    return Schema(schema.id, tuple(replace(field, nullable=True) for field in schema))


def _refuse_unknown(others: pa.Table, schema: Schema) -> None:
    names = ColumnNames(schema.names)
    if COLUMN_ORDER in others.column_names and COLUMN_ORDER not in schema.names:
        raise SchemaMismatch(
            f"the data has column {COLUMN_ORDER!r}, which says by which sequence the values of a "
            "stored row were set; an event sets all that it gives by its own. Leave it out"
        )
    for name in others.column_names:
        if names.column(name) not in schema.names:
            raise SchemaMismatch(
                f"the data has column {name!r} that the table does not have"
                f"{did_you_mean(name, schema.names)}; the table has ({', '.join(schema.names)})"
            )


def _refuse_nulls(
    table: pa.Table,
    order: KeyOrder,
    values: pa.Table,
    field: Field,
    gives: Mask,
    operation: str,
) -> None:
    nulls = gives & np.asarray(values.column(field.name).is_null().to_numpy(), dtype=bool)
    if nulls.any():
        keys = table.select(key_names(table, order))
        key = shown_row(keys, int(np.argmax(nulls)), order.fields)
        raise SchemaMismatch(
            f"{operation}: column {field.name!r} is NOT NULL, but {int(nulls.sum())} rows give "
            f"NULL for it, such as that of {key}; nothing was written. Give them values, or leave "
            "the column out of them to keep what the table has"
        )


def _refuse_absent(rows: GivenValues, name: str, names: ColumnNames, operation: str) -> None:
    absent = rows.absent_in(name, names)
    if absent is not None and absent.any():
        raise KeyViolation(
            f"{operation}: row {int(np.argmax(absent))}, counted from 0, does not give column "
            f"{name!r}; each change has its key, and its sequence in a table with an event order"
        )


def _refuse_repeats(
    keys: pa.Table, order: KeyOrder, repeats: Mask, ordered: Places, operation: str
) -> None:
    if repeats.any():
        raise KeyViolation(
            f"{operation}: {int(repeats.sum())} rows repeat the key of another row, such as "
            f"{shown_row(keys, int(ordered[np.argmax(repeats)]), order.fields)}; nothing was "
            "written. Pass on_duplicate='last' to apply them in their order"
        )
