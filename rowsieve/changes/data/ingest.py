"""Prepare user data for writing: check it, convert it to the table's types, sort it by key.

Nothing is written before the whole data has been checked, so invalid data leaves no trace. Keys are
canonical (invariant I5), not NULL and unique. Change streams are reduced to the last action per key
before they become rows and tombstones (invariant 9).
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.change_sequences import comparable_sequences
from rowsieve.changes.data.absent_values import DELETES, RequiredNames
from rowsieve.changes.data.newest_per_key import newest_per_key, newest_rows
from rowsieve.changes.data.pandas_data import from_pandas, is_pandas
from rowsieve.changes.data.polars_data import refuse_polars_objects
from rowsieve.changes.data.python_data import from_python, gives, is_python_data, kind_of
from rowsieve.changes.data.spark_data import from_spark_frame, is_spark
from rowsieve.changes.defaults import with_defaults
from rowsieve.changes.event_order.sequence_columns import check_sequences
from rowsieve.errors import InvalidData, InvalidInput, KeyViolation, SchemaMismatch
from rowsieve.input_files.given_paths import Paths, is_paths, rows_of_paths
from rowsieve.types.conform import canonical_key, conform
from rowsieve.types.encodings import arrow_schema, check_nesting
from rowsieve.types.logical import Float
from rowsieve.types.ordering.keys import KeyColumns, KeyOrder, flat
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import shown_row

OnDuplicate = Literal["error", "last"]

_ALWAYS_VALID = frozenset(
    type_.id
    for type_ in (
        *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.string(), pa.large_string()),
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"), pa.timestamp("us")),
        *(pa.duration("us"), pa.month_day_nano_interval()),
    )
)
"""Types of plain columns whose values are all valid, or are checked when they are converted."""
_TYPE_ID = attrgetter("type.id")
_UPSERTS = frozenset({"i", "u", "c", "r", "insert", "update", "upsert", "create", "read"})


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows to write and keys to delete in a keyed table: disjoint, each sorted by key."""

    rows: pa.Table | None
    deletes: pa.Table | None

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to write and nothing to delete."""
        has_rows = self.rows is not None and self.rows.num_rows > 0
        return not has_rows and (self.deletes is None or not self.deletes.num_rows)


_TO_ROWS: Final = {
    "collect": "; call its method collect first",
    "scanner": "; give its scanner().to_reader()",
}
"""How to convert an object that is not accepted as data, by a method that identifies it."""


def read_data(
    data: Any,
    operation: str,
    schema: Schema | None = None,
    *,
    appends: bool = False,
    op: str | None = None,
    keeps: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Convert data of any supported kind to an Arrow table; `schema` is the table's, if it exists.

    A path, a glob or a list of these is read as the command line reads files, URIs of stores with
    `storage_options`, which are the table's.

    Data without rows and columns gets the columns of the table. SchemaMismatch for a dict that
    lacks a name which others have, see `RequiredNames`; with `keeps`, only inside of structs.
    """
    required = None
    if schema is not None:
        required = RequiredNames(schema, operation, appends, op, keeps)
    table = _read(data, operation, required, storage_options)
    if len(set(table.column_names)) < table.num_columns:
        raise _repeated_columns(table.column_names, operation)
    others: list[pa.Field] = []
    if not _ALWAYS_VALID.issuperset(map(_TYPE_ID, table.schema)):
        others = [field for field in table.schema if field.type.id not in _ALWAYS_VALID]
    for field in others:
        check_nesting(field)
    for field in others:
        _refuse_invalid_array(field, table.column(field.name), operation)
    if schema is not None and not table.num_rows:
        return _without_rows(table, schema)
    return _plain(table) if others else table


def _read(
    data: Any,
    operation: str,
    required: RequiredNames | None,
    storage_options: Mapping[str, Any] | None,
) -> pa.Table:
    """Convert data of any supported kind to an Arrow table, not checked yet."""
    if isinstance(data, dict):
        return from_python(data, operation, required)
    if is_paths(data):
        data = _from_paths(data, operation, required, storage_options)
    if isinstance(data, pa.Table):
        table = data
    elif isinstance(data, pa.RecordBatch):
        table = pa.Table.from_batches([data])
    elif is_pandas(data):
        table = from_pandas(data, operation, required)
    elif is_spark(data):
        table = from_spark_frame(data, operation)
    elif gives(data, "__arrow_c_stream__"):
        table = _from_stream(data, operation)
    elif isinstance(data, np.ndarray) and data.dtype.names and data.ndim == 1:
        table = from_python({name: data[name] for name in data.dtype.names}, operation, required)
    elif is_python_data(data):
        table = from_python(data, operation, required)
    else:
        first = next((remedy for name, remedy in _TO_ROWS.items() if gives(data, name)), "")
        raise InvalidInput(
            f"{operation} takes Arrow data (a pyarrow Table or reader, a Polars or pandas "
            "DataFrame, a DuckDB or DataFusion result), a list of dicts, a dict of lists, a "
            f"structured NumPy array or paths of files, not {kind_of(data)}{first}"
        )
    return table


def _from_paths(
    data: Paths,
    operation: str,
    required: RequiredNames | None,
    storage_options: Mapping[str, Any] | None,
) -> pa.Table:
    """Read files; a row of JSON must have the names that others have: absent would become NULL."""
    if required is None:
        return rows_of_paths(data, operation, storage_options=storage_options)
    check = replace(required, keeps=False).check_rows
    return rows_of_paths(data, operation, arrow_schema(required.schema), check, storage_options)


def _from_stream(data: Any, operation: str) -> pa.Table:
    refuse_polars_objects(data, operation)
    if isinstance(data, pa.RecordBatchReader):
        return _from_reader(data, operation)
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidData(
            f"{operation}: the {type(data).__name__} could not be read as Arrow rows: {error}"
        ) from error


def _from_reader(reader: pa.RecordBatchReader, operation: str) -> pa.Table:
    """Read all batches of a reader; a generator of the caller may produce them.

    pyarrow does not check batches against the reader's schema. A batch of another type would be
    read as wrong values, so each batch is checked here.
    """
    schema = reader.schema
    batches: list[pa.RecordBatch] = []
    try:
        for batch in reader:
            if (batch.schema.names, batch.schema.types) != (schema.names, schema.types):
                raise InvalidData(
                    f"{operation}: batch {len(batches)} of the RecordBatchReader has the columns "
                    f"{_columns_shown(batch.schema)}, but the reader's schema has "
                    f"{_columns_shown(schema)}; nothing was written. Give batches with the "
                    "reader's schema"
                )
            batches.append(batch)
    except InvalidData:
        raise
    except Exception as error:
        raise InvalidData(
            f"{operation}: the RecordBatchReader failed after {len(batches)} batches, nothing was "
            f"written: {type(error).__name__}: {error}; correct the reader and try again"
        ) from error
    return pa.Table.from_batches(batches, schema)


def _columns_shown(schema: pa.Schema) -> str:
    shown = [f"{field.name} {field.type}" for field in list(schema)[:8]]
    return f"({', '.join(shown)}{', …' if len(schema) > len(shown) else ''})"


def _decoded(column: pa.ChunkedArray, plain: pa.DataType) -> pa.ChunkedArray:
    """Decode a dictionary column; cast the dictionary to `plain` first: `take` rejects views."""
    chunks = [chunk.dictionary.cast(plain).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, plain)


def _without_rows(table: pa.Table, schema: Schema) -> pa.Table:
    """Replace the columns by ones of type null: libraries guess the types of empty DataFrames.

    Data without columns gets the table's columns.
    """
    if not table.num_columns:
        return arrow_schema(schema).empty_table()
    return pa.Table.from_arrays([pa.nulls(0)] * table.num_columns, table.column_names)


def _repeated_columns(names: Sequence[str], operation: str) -> SchemaMismatch:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    return SchemaMismatch(
        f"{operation}: the data has {', '.join(map(repr, repeated[:5]))} more than once among "
        "its columns; rename or drop the duplicates"
    )


def _refuse_invalid_array(field: pa.Field, column: pa.ChunkedArray, operation: str) -> None:
    """Check what kernels trust: digits of decimals, offsets, and the indices of dictionaries.

    Parquet has fewer bytes for a decimal of few digits, and would cut a longer number. Text and
    times of day are checked when they are converted; 5 ms for a million values.
    """
    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        raise InvalidData(
            f"{operation}: column {field.name!r} of type {field.type} is not a valid Arrow "
            f"array: {error}; nothing was written. A library that made it without checks, or a "
            "calculation that overflowed, gives such data: compute it again with checks"
        ) from error


def _plain(table: pa.Table) -> pa.Table:
    """Decode views and dictionaries of text and bytes, which few kernels support."""
    for place, field in enumerate(table.schema):
        plain = field.type
        if pa.types.is_dictionary(plain):
            plain = plain.value_type
        if pa.types.is_string_view(plain):
            plain = pa.string()
        elif pa.types.is_binary_view(plain):
            plain = pa.binary()
        if plain != field.type and not pa.types.is_nested(plain):
            column = table.column(place)
            if pa.types.is_dictionary(field.type):
                column = _decoded(column, plain)
            table = table.set_column(place, field.with_type(plain), column.cast(plain))
    return table


def prepare_rows(
    table: pa.Table,
    schema: Schema,
    order: KeyOrder,
    on_duplicate: OnDuplicate,
    operation: str,
    sequence: Sequence[str] = (),
) -> pa.Table:
    """Convert rows to the schema's types, and sort them by key; each key occurs once.

    With `sequence`, the columns of an event order, the newest row of each key remains.
    """
    if on_duplicate not in ("error", "last"):
        raise InvalidInput(
            f"{operation}: on_duplicate must be 'error' or 'last', not {on_duplicate!r}"
        )
    refuse_null_keys(table, order, operation)
    rows = canonical_keys(conform(table, schema), order)
    if sequence and rows.num_rows:
        sequences = KeyOrder(tuple(map(schema.field, sequence)))
        check_sequences(rows, sequences, operation)  # before they are compared with each other
        last_wins = on_duplicate == "last"
        rows = newest_rows(rows, order, sequences, last_wins=last_wins, operation=operation)
    return _sorted(rows, order, on_duplicate, operation)


def prepare_appended(table: pa.Table, schema: Schema) -> pa.Table:
    """Convert rows of a table without a key to the schema's types; see `with_defaults`."""
    return conform(with_defaults(table, schema), schema)


def prepare_keys(
    table: pa.Table,
    schema: Schema,
    order: KeyOrder,
    operation: str,
    sequence: Sequence[str] = (),
) -> pa.Table:
    """Return the keys of rows to delete, with their sequences, sorted and unique.

    Other columns are rejected.
    """
    refuse_null_keys(table, order, operation)
    keys = canonical_keys(conform(table, schema.select((*order.names, *sequence))), order)
    if sequence and keys.num_rows:
        sequences = KeyOrder(tuple(map(schema.field, sequence)))
        check_sequences(keys, sequences, operation)
        keys = newest_rows(keys, order, sequences, last_wins=True, operation=operation)
    return _sorted(keys, order, "last", operation)


def reduce_changes(
    table: pa.Table,
    schema: Schema,
    order: KeyOrder,
    *,
    op: str,
    sequence: str | Sequence[str],
    table_order: Sequence[str] = (),
) -> Changes:
    """Reduce a change stream to the last action per key, by its sequence columns.

    `op` names the column of actions, in any case: i, u, c, r, insert, update, upsert, create and
    read write the row; d and delete remove its key. A change that occurs twice counts once.
    KeyViolation for two different changes of one key with the same sequence, because their order is
    unknown. `table_order` are the sequence columns of a table with an event order: tombstones keep
    them, and they are ordered by the table's types.
    """
    if not table.num_rows:
        return Changes(None, None)
    names = (sequence,) if isinstance(sequence, str) else tuple(sequence)
    check_change_columns(table, {op: "op", **dict.fromkeys(names, "sequence")})
    refuse_null_keys(table, order, "apply_changes")
    deletes = deletes_in(table.column(op), op)
    key_columns = table.select(key_names(table, order))
    keys = canonical_keys(conform(key_columns, schema.select(order.names)), order)
    sequences = sequences_of(table, schema, names, table_order)
    beside = {op, *names}.difference(schema.names)
    last = newest_per_key(
        table.drop_columns(sorted({op, *beside})),
        order.columns(keys),
        sequences,
        deletes=deletes,
        operation="apply_changes",
        names=names,
    )
    deleted = deletes[last]
    row_columns = [name for name in table.column_names if name not in beside]
    rows = table.select(row_columns).take(pa.array(last[~deleted]))
    columns = [*key_names(table, order), *(names if table_order else ())]
    gone = table.select(columns).take(pa.array(last[deleted]))
    return Changes(
        prepare_rows(rows, schema, order, "error", "apply_changes") if rows.num_rows else None,
        prepare_keys(gone, schema, order, "apply_changes", table_order) if gone.num_rows else None,
    )


def check_change_columns(table: pa.Table, roles: Mapping[str, str]) -> None:
    """Raise unless each row has a value in these columns, whose roles are names of arguments."""
    for name, role in roles.items():
        if name not in table.column_names:
            raise SchemaMismatch(
                f"apply_changes: no column {name!r} ({role}=) in the data, "
                f"which has ({', '.join(table.column_names)})"
            )
        if table.column(name).null_count:
            raise InvalidData(
                f"apply_changes: column {name!r} ({role}=) is NULL in "
                f"{table.column(name).null_count} rows; every change needs one"
            )


def sequences_of(
    table: pa.Table, schema: Schema, names: Sequence[str], table_order: Sequence[str]
) -> KeyColumns:
    """The sequences of changes in a form that sorts and compares as they do."""
    if table_order:
        conformed = conform(table.select(list(names)), schema.select(tuple(table_order)))
        sequences = KeyOrder(tuple(map(schema.field, table_order)))
        check_sequences(conformed, sequences, "apply_changes")
        return sequences.columns(conformed)
    columns = [comparable_sequences(table.column(name), name) for name in names]
    return KeyColumns(tuple(flat(column) for column in columns))


def deletes_in(column: pa.ChunkedArray, op: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """(n,) whether each action of a change stream deletes its key; see `reduce_changes`."""
    try:
        actions = pc.utf8_lower(column.cast(pa.string())).combine_chunks().dictionary_encode()
    except (pa.ArrowException, NotImplementedError) as error:
        raise SchemaMismatch(
            f"apply_changes: column {op!r} (op=) must be text, not {column.type}"
        ) from error
    words = actions.dictionary.to_pylist()
    if unknown := sorted(set(words) - _UPSERTS - DELETES):
        raise InvalidData(
            f"apply_changes: column {op!r} (op=) holds the unknown actions "
            f"{', '.join(map(repr, unknown[:5]))}; valid are "
            f"{', '.join(sorted(_UPSERTS | DELETES))}"
        )
    is_delete = np.array([word in DELETES for word in words], dtype=bool)
    return np.asarray(is_delete[actions.indices.to_numpy()], dtype=bool)


def key_names(table: pa.Table, order: KeyOrder) -> list[str]:
    """Return the key columns' names as the data spells them; SchemaMismatch if it lacks one."""
    if set(order.names).issubset(table.column_names):
        return list(order.names)
    folded: Mapping[str, str] = {name.lower(): name for name in table.column_names}
    names = [
        name if name in table.column_names else folded.get(name.lower()) for name in order.names
    ]
    if missing := [name for name, actual in zip(order.names, names, strict=True) if actual is None]:
        raise SchemaMismatch(
            f"the data lacks the key column{'s' if len(missing) > 1 else ''} "
            f"{', '.join(map(repr, missing))}; it has ({', '.join(table.column_names)})"
        )
    return [name for name in names if name is not None]


def refuse_null_keys(table: pa.Table, order: KeyOrder, operation: str) -> None:
    """Raise KeyViolation for NULL in a key column, SchemaMismatch if the data lacks one."""
    for name in key_names(table, order):
        if nulls := table.column(name).null_count:
            raise KeyViolation(
                f"{operation}: key column {name!r} is NULL in {nulls} of {table.num_rows} rows, "
                f"such as {_row_without(table, name)}; a key identifies its row and cannot be NULL"
            )


def _row_without(table: pa.Table, column: str) -> str:
    """One row in which the column is NULL, as text of bounded length."""
    row = shown_row(table.filter(pc.is_null(table.column(column))), 0)
    return textwrap.shorten(str(row), 200, placeholder=" …}")


def canonical_keys(table: pa.Table, order: KeyOrder) -> pa.Table:
    """Give equal keys equal bits, in rows of the table's types."""
    for field in order.fields:
        if not isinstance(field.type, Float):
            continue
        index = table.column_names.index(field.name)
        column = table.column(index)
        canonical = canonical_key(column)
        if canonical is not column:
            table = table.set_column(index, table.schema.field(index), canonical)
    return table


def _sorted(table: pa.Table, order: KeyOrder, on_duplicate: str, operation: str) -> pa.Table:
    if table.num_rows < 2:
        return table
    columns = order.columns(table)
    in_order = columns.is_sorted()
    positions = np.arange(len(columns), dtype=np.int64) if in_order else columns.sort()
    repeats = columns.repeats(None if in_order else positions)
    if not repeats.any():
        return table if in_order else table.take(pa.array(positions))
    if on_duplicate != "last":
        row = int(positions[np.flatnonzero(repeats)[0]])
        key = shown_row(table.select(list(order.names)), row, order.fields)
        remedy = "Pass on_duplicate='last' to keep the last of them"
        if operation == "create_table":
            remedy = "Create the table from the schema, and upsert with on_duplicate='last'"
        elif operation != "upsert":
            remedy = "Remove the duplicates"
        raise KeyViolation(
            f"{operation}: {int(repeats.sum())} rows repeat the key of another row, such as {key}; "
            f"nothing was written. {remedy}"
        )
    last = np.ones(len(positions), dtype=bool)
    last[:-1] = ~repeats[1:]
    return table.take(pa.array(positions[last]))
