"""Converts a nested column of a file to the fields that the table has now.

Fields inside structs, lists and maps are looked up by id, as columns are: one that was dropped is
not read, one that was added later is a constant, a renamed one is read, a widened one is cast.
Lists and maps keep their offsets; nothing is done per row in Python.

Soundness: a field added later is NULL where its struct is NULL. A file that lacks another field is
damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import CorruptData
from rowsieve.parquet.leaf_columns import leaf_count
from rowsieve.parquet.stored_forms import check_form, form_of
from rowsieve.predicate.arrays import as_type, repeated
from rowsieve.types.encodings import FIELD_ID_KEY, arrow_field, arrow_type
from rowsieve.types.logical import Field, List, Map, Struct
from rowsieve.types.stored_defaults import constant
from rowsieve.types.widening import holds_all_of

Convert: TypeAlias = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class NestedColumn:
    """Reads a column: its leaves, counted from its first one; `convert`: None if unchanged.

    The leaves are those of the fields that the table still has.
    """

    leaves: tuple[int, ...]
    convert: Convert | None

    def adapted(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return the decoded column in the table's type; the same object if it is unchanged."""
        if self.convert is None:
            return column
        chunks = column.chunks or [pa.array([], column.type)]
        return pa.chunked_array([self.convert(chunk) for chunk in chunks])


def nested_column(
    stored: pa.Field, field: Field, written_with: int | None, path: str, *, foreign: bool = False
) -> NestedColumn:
    """Match a file's column with the table's; `written_with` is the file's schema id.

    CorruptData, which names the file `path`, if the file lacks a field that its schema has. In a
    `foreign` file, of another writer, such a field is NULL.
    """
    if stored.equals(arrow_field(field), check_metadata=True):
        return NestedColumn(tuple(range(leaf_count(stored.type))), None)
    leaves, convert = _Matching(written_with, path, foreign).match(stored, field, 0)
    return NestedColumn(tuple(sorted(leaves)), convert)


@dataclass(frozen=True, slots=True)
class _Matching:
    written_with: int | None
    path: str
    foreign: bool

    def match(self, stored: pa.Field, field: Field, first: int) -> tuple[list[int], Convert | None]:
        """The leaves of a field whose leaves begin at `first`, and its conversion."""
        type_ = stored.type
        match field.type:
            case Struct(fields=fields) if pa.types.is_struct(type_):
                return self._struct(type_, fields, arrow_type(field.type), first)
            case List(element=element) if pa.types.is_list(type_):
                leaves, convert = self.match(type_.value_field, element, first)
                same = convert is None and type_ == arrow_type(field.type)
                return leaves, None if same else _list_converter(convert, arrow_type(field.type))
            case Map(key=key, value=value) if pa.types.is_map(type_):
                return self._map(type_, key, value, first)
            case _:
                self._check_form(stored, field)
                leaves = list(range(first, first + leaf_count(type_)))  # a number has two leaves
                return leaves, self._flat(type_, field)

    def _struct(
        self, type_: pa.DataType, fields: Sequence[Field], target: pa.DataType, first: int
    ) -> tuple[list[int], Convert | None]:
        members = [type_.field(i) for i in range(type_.num_fields)]
        starts = accumulate((leaf_count(member.type) for member in members), initial=first)
        by_id = {_id_of(member): (member, at) for member, at in zip(members, starts, strict=False)}
        leaves: list[int] = []
        sources: list[_Source] = []
        for field, now in zip(fields, target, strict=True):
            if (known := by_id.get(field.id)) is None:
                sources.append((None, constant(self._fill(field), field.type), now))
                continue
            matched, convert = self.match(known[0], field, known[1])
            leaves += matched
            sources.append((known[0].name, convert, now))
        unchanged = type_ == target and all(each is None for _, each, _ in sources)
        same_ids = [_id_of(member) for member in members] == [field.id for field in fields]
        if unchanged and same_ids:
            return leaves, None
        return leaves or [first], _struct_converter(sources, target)  # any leaf shows its NULLs

    def _map(
        self, type_: pa.DataType, key: Field, value: Field, first: int
    ) -> tuple[list[int], Convert | None]:
        leaves, of_keys = self.match(type_.key_field, key, first)
        more, of_values = self.match(
            type_.item_field, value, first + leaf_count(type_.key_field.type)
        )
        target = arrow_type(Map(key, value))
        if of_keys is None and of_values is None and type_ == target:
            return leaves + more, None
        return leaves + more, _map_converter(of_keys, of_values, target)

    def _check_form(self, stored: pa.Field, field: Field) -> None:
        """Refuse forms that only top-level columns have, and those of newer versions."""
        form = form_of(stored)
        if form is not None and check_form(form, field, self.path):
            raise CorruptData(
                f"{self.path} has the field {field.name!r} (field id {field.id}) as "
                f"{form.decode()}, which only whole columns may have; restore the file from a copy"
            )

    def _flat(self, type_: pa.DataType, field: Field) -> Convert | None:
        target = arrow_type(field.type)
        if type_ == target:
            return None
        if not holds_all_of(target, type_):
            raise CorruptData(
                f"{self.path} has {type_} for the field {field.name!r} (field id {field.id}), "
                f"which is {target} in the table; restore the file from a copy"
            )
        return lambda values: as_type(values, target)

    def _fill(self, field: Field) -> str | None:
        if self.written_with is None or self.written_with >= field.added:
            if self.foreign:  # the fill of a field that was not added here is its initial default
                return None if field.added else field.fill
            raise CorruptData(
                f"{self.path} lacks the field {field.name!r} (field id {field.id}), which the "
                f"schema {self.written_with} that it was written with has; restore the file from "
                "a copy"
            )
        return field.fill


_Source: TypeAlias = tuple[str | None, Any, pa.Field]
"""A field of a struct: its name in the file and its conversion, or None and a constant."""


def _struct_converter(sources: Sequence[_Source], target: pa.DataType) -> Convert:
    def convert(values: pa.Array) -> pa.Array:
        present = values.is_valid() if values.null_count else None
        children = [_child(values, present, source) for source in sources]
        mask = None if present is None else pc.invert(present)
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)

    return convert


def _child(values: pa.Array, present: pa.Array | None, source: _Source) -> pa.Array:
    name, change, now = source
    if name is None:
        filled = repeated(change, len(values))
        return _where(present, filled) if change.is_valid else filled
    place = values.type.get_field_index(name)
    child = values.field(place)
    if not values.type.field(place).nullable:
        child = _where(present, child)  # a file has no NULL in a field that is NOT NULL
    return as_type(child if change is None else change(child), now.type)


def _where(present: pa.Array | None, values: pa.Array) -> pa.Array:
    """The values, NULL where their struct is NULL: engines read a field without its struct."""
    return values if present is None else pc.if_else(present, values, pa.scalar(None, values.type))


def _list_converter(of_items: Convert | None, target: pa.DataType) -> Convert:
    def convert(values: pa.Array) -> pa.Array:
        items = values.values if of_items is None else of_items(values.values)
        return with_items(values, as_type(items, target.value_type), target)

    return convert


def _map_converter(
    of_keys: Convert | None, of_values: Convert | None, target: pa.DataType
) -> Convert:
    members = [target.key_field, target.item_field]

    def convert(values: pa.Array) -> pa.Array:
        keys = values.keys if of_keys is None else of_keys(values.keys)
        items = values.items if of_values is None else of_values(values.items)
        children = [as_type(keys, members[0].type), as_type(items, members[1].type)]
        return with_items(values, pa.StructArray.from_arrays(children, fields=members), target)

    return convert


def with_items(values: pa.Array, items: pa.Array, target: pa.DataType) -> pa.Array:
    """The same lists or maps with other items: offsets and NULLs are shared."""
    return pa.Array.from_buffers(
        target, len(values), values.buffers()[:2], values.null_count, values.offset, [items]
    )


def _id_of(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(FIELD_ID_KEY)
    return None if text is None else int(text)
