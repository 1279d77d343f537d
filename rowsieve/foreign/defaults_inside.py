"""Let fields inside columns with an initial default be those of a table that added them later.

A field of a struct has no constant in the mapping of a file, as a column has. But a table of ours
may add one with a fill default, which rows of older schemas have. So each such field gets a schema
of its own, in the order of field ids, and each file the last schema whose fields it has.

Soundness: a file counts as older than a field exactly if it lacks the field. Files that lack an
earlier field and have a later one have no place in this order, and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rowsieve.errors import UnsupportedOperation
from rowsieve.foreign.footers import Footer
from rowsieve.foreign.joined_columns import JoinedColumns
from rowsieve.types import logical
from rowsieve.types.field_paths import children
from rowsieve.types.schema import Schema


def with_added_defaults(joined: JoinedColumns, footers: Mapping[int, Footer]) -> JoinedColumns:
    """The same columns; fields inside them with a default are of later schemas than files without.

    `footers`: one for each distinct file schema, by its identity. UnsupportedOperation for files
    that have no such order.
    """
    ids = sorted(
        field.id for column in joined.schema for field in _inside(column) if field.fill is not None
    )
    if not ids:
        return joined
    added = {field_id: number for number, field_id in enumerate(ids, 1)}
    columns = tuple(replace(each, type=_added(each.type, added)) for each in joined.schema)
    schema = Schema(len(ids), columns)
    written_with = {
        place: _written_with(schema, joined.nested_in(footer), footer.uri)
        for place, footer in footers.items()
    }
    return replace(joined, schema=schema, written_with=written_with)


def _inside(field: logical.Field) -> Iterator[logical.Field]:
    for _, child in children(field.type):
        yield child
        yield from _inside(child)


def _added(type_: logical.LogicalType, added: Mapping[int, int]) -> logical.LogicalType:
    """The type with the schema of each field inside it that has a default."""

    def changed(field: logical.Field) -> logical.Field:
        return replace(field, type=_added(field.type, added), added=added.get(field.id, 0))

    match type_:
        case logical.Struct(fields=fields):
            return logical.Struct(tuple(changed(each) for each in fields))
        case logical.List(element=element):
            return logical.List(changed(element))
        case logical.Map(key=key, value=value):
            return logical.Map(changed(key), changed(value))
        case _:
            return type_


def _written_with(schema: Schema, nested: Schema, uri: str) -> int:
    """The schema of a file, whose nested columns these are."""
    stored = {each.id: each for each in nested}
    present: list[int] = []
    lacking: list[logical.Field] = []
    for column in schema:
        if column.id in stored:
            _compare(column, stored[column.id], present, lacking)
    first = min((field.added for field in lacking), default=schema.id + 1)
    if max(present, default=0) > first:
        name = next(field.name for field in lacking if field.added == first)
        raise UnsupportedOperation(
            f"import_iceberg: {uri} lacks the field {name!r}, which has an initial default, and "
            "has a field that was added later; open the table with from_iceberg, or rewrite its "
            "files, which then have the values"
        )
    return first - 1


def _compare(
    field: logical.Field, stored: logical.Field, present: list[int], lacking: list[logical.Field]
) -> None:
    """Sort the fields inside a column by whether the file has them, where it has what is around."""
    stored_children = {child.id: child for _, child in children(stored.type)}
    for _, child in children(field.type):
        if child.id in stored_children:
            present.append(child.added)
            _compare(child, stored_children[child.id], present, lacking)
        elif child.added:
            lacking.append(child)
