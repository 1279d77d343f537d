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

from rowsieve.changes.data.ingest import OnDuplicate, canonical_keys, key_names, refuse_null_keys
from rowsieve.changes.partial.given_values import GivenValues, Mask
from rowsieve.errors import KeyViolation, SchemaMismatch, did_you_mean
from rowsieve.types.conform import conform
from rowsieve.types.encodings import arrow_field
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import shown_row

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Events:
    """Changes by key, those of one key in the order in which they apply.

    `keys` are sorted and unique; `owners` (m,) is the place of each event's key among them, and
    `deletes` (m,) whether it deletes the row. `values` has the columns that some event gives, in
    the table's types; `given` (m,) says which events give a column, and the others have NULL.
    """

    keys: pa.Table
    owners: Places
    deletes: Mask
    values: pa.Table
    given: Mapping[str, Mask]

    def __len__(self) -> int:
        return len(self.owners)

    def select(self, kept: Mask) -> Events:
        """The events where `kept` (m,) is true; keys without one are dropped."""
        owners = self.owners[kept]
        has_events = np.zeros(self.keys.num_rows, dtype=bool)
        has_events[owners] = True
        chosen = pa.array(kept)
        return Events(
            self.keys.filter(pa.array(has_events)),
            (np.cumsum(has_events) - 1)[owners],
            self.deletes[kept],
            self.values.filter(chosen),
            {name: mask[kept] for name, mask in self.given.items()},
        )


def prepare_events(
    given: GivenValues,
    schema: Schema,
    order: KeyOrder,
    operation: str,
    *,
    deletes: Mask | None = None,
    sequences: KeyColumns | None = None,
    on_duplicate: OnDuplicate = "error",
    control: Sequence[str] = (),
) -> Events:
    """Check and convert the rows, and order them by key and sequence.

    Without `sequences` they apply in their own order, and a repeated key is a KeyViolation unless
    `on_duplicate="last"`. `control` are columns that are not the table's.
    """
    table = given.table
    names = key_names(table, order)
    for name in order.names:
        _refuse_absent_key(given, name, operation)
    refuse_null_keys(table, order, operation)
    keys = canonical_keys(conform(table.select(names), schema.select(order.names)), order)
    columns = order.columns(keys)
    both = columns if sequences is None else KeyColumns((*columns.arrays, *sequences.arrays))
    ordered = both.sort()  # stable
    if sequences is not None or on_duplicate == "error":
        _refuse_ties(keys, both, ordered, operation, has_sequences=sequences is not None)
    is_delete = np.zeros(table.num_rows, dtype=bool) if deletes is None else deletes
    others = table.drop_columns([*names, *control])
    values, gives = _values(given, others, schema, order, ~is_delete, operation)
    starts = ~columns.repeats(ordered)
    return Events(
        keys.take(pa.array(ordered[starts])),
        np.cumsum(starts) - 1,
        is_delete[ordered],
        values.take(pa.array(ordered)),
        {name: mask[ordered] for name, mask in gives.items()},
    )


def _values(
    given: GivenValues,
    others: pa.Table,
    schema: Schema,
    order: KeyOrder,
    is_row: Mask,
    operation: str,
) -> tuple[pa.Table, dict[str, Mask]]:
    """The given columns in the table's types, and the rows that give each."""
    _refuse_unknown(others, schema)
    folded = {name.lower() for name in others.column_names}
    fields = [field for field in schema if field.name not in order.names]
    if given.keeps or not is_row.any():
        fields = [field for field in fields if field.name.lower() in folded]
    gives = {}
    for name in others.column_names:
        absent = given.absent_in(name)
        mask = is_row if absent is None else is_row & ~absent
        if mask.all():
            gives[name.lower()] = mask
        elif mask.any():
            gives[name.lower()] = mask
            place = others.column_names.index(name)
            kept = pa.array(np.arange(len(mask)), mask=~mask)
            others = others.set_column(place, others.field(place), others.column(place).take(kept))
        else:
            others = others.drop_columns([name])
            fields = [field for field in fields if field.name.lower() != name.lower()]
    relaxed = Schema(schema.id, tuple(replace(field, nullable=True) for field in fields))
    values = conform(others, relaxed)
    by_name = {field.name: gives[field.name.lower()] for field in fields}
    for field in fields:
        if not field.nullable:
            _refuse_nulls(given.table, order, values, field, by_name[field.name], operation)
    columns = [values.column(field.name) for field in fields]
    return pa.table(columns, schema=pa.schema([arrow_field(f) for f in relaxed])), by_name


def _refuse_unknown(others: pa.Table, schema: Schema) -> None:
    known = {name.lower() for name in schema.names}
    for name in others.column_names:
        if name.lower() not in known:
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
        key = shown_row(table.select(key_names(table, order)), int(np.argmax(nulls)))
        raise SchemaMismatch(
            f"{operation}: column {field.name!r} is NOT NULL, but {int(nulls.sum())} rows give "
            f"NULL for it, such as that of {key}; nothing was written. Give them values, or leave "
            "the column out of them to keep what the table has"
        )


def _refuse_absent_key(given: GivenValues, name: str, operation: str) -> None:
    absent = given.absent_in(name)
    if absent is not None and absent.any():
        raise KeyViolation(
            f"{operation}: row {int(np.argmax(absent))}, counted from 0, does not give the key "
            f"column {name!r}; a key identifies its row, so each change has it"
        )


def _refuse_ties(
    keys: pa.Table, both: KeyColumns, ordered: Places, operation: str, *, has_sequences: bool
) -> None:
    repeats = both.repeats(ordered)
    if not repeats.any():
        return
    key = shown_row(keys, int(ordered[np.argmax(repeats)]))
    if has_sequences:
        raise KeyViolation(
            f"{operation}: two changes of the key {key} have the same sequence, so their order is "
            "unknown; make the sequence unique per key"
        )
    raise KeyViolation(
        f"{operation}: {int(repeats.sum())} rows repeat the key of another row, such as {key}; "
        "nothing was written. Pass on_duplicate='last' to apply them in their order"
    )
