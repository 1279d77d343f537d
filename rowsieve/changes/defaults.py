"""Add the columns and fields of structs that the rows of an append lack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import repeated
from rowsieve.types.logical import Field, Struct
from rowsieve.types.schema import ColumnNames, Schema
from rowsieve.types.stored_defaults import constant


def with_defaults(table: pa.Table, schema: Schema) -> pa.Table:
    """Add the missing columns and fields with their defaults; NULL where there is none.

    Of the fields of structs, only those that were added to the table later may be missing. Items
    of lists and maps are not changed. A NOT NULL column without a default is not added.
    """
    named, stored = _ByName(schema.fields), table.columns  # pyarrow makes new objects at each call
    columns = [
        _with_fields(column, named.get(name))
        for name, column in zip(table.column_names, stored, strict=True)
    ]
    absent = _absent(schema.fields, table.column_names)
    if not absent and all(a is b for a, b in zip(columns, stored, strict=True)):
        return table
    defaults = [repeated(constant(each.default, each.type), table.num_rows) for each in absent]
    names = [*table.column_names, *(each.name for each in absent)]
    return pa.table([*columns, *defaults], names=names)


def _absent(fields: Sequence[Field], names: Sequence[str]) -> list[Field]:
    have = set(ColumnNames(each.name for each in fields).columns(names))
    return [
        each
        for each in fields
        if each.name not in have and (each.nullable or each.default is not None)
    ]


class _ByName:
    """Looks up fields by names of data."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = {each.name: each for each in fields}
        self._names = ColumnNames(self._fields)

    def get(self, name: str) -> Field | None:
        return self._fields.get(self._names.column(name))


def _with_fields(values: Any, field: Field | None) -> Any:
    """Complete the structs of a column; the same object if they lack nothing."""
    if field is None or not isinstance(field.type, Struct) or not pa.types.is_struct(values.type):
        return values
    if isinstance(values, pa.ChunkedArray):
        whole = [_with_fields(chunk, field) for chunk in values.chunks]
        if all(a is b for a, b in zip(whole, values.chunks, strict=True)):
            return values
        return pa.chunked_array(whole)
    names = [each.name for each in values.type]
    members = [values.field(i) for i in range(len(names))]
    named = _ByName(field.type.fields)
    completed = [
        _with_fields(member, named.get(name)) for name, member in zip(names, members, strict=True)
    ]
    added = [each for each in _absent(field.type.fields, names) if each.added]
    if not added and all(a is b for a, b in zip(completed, members, strict=True)):
        return values
    defaults = [repeated(constant(each.default, each.type), len(values)) for each in added]
    mask = pc.is_null(values) if values.null_count else None
    arrays = [*completed, *defaults]
    return pa.StructArray.from_arrays(arrays, [*names, *(each.name for each in added)], mask=mask)
