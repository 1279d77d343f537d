"""Adds foreign files to an existing table as parts, in place: `place_files`.

The columns of a file are looked up by name or by field id. A column that a file lacks has its
default; the directories of a file may give it a constant.

Soundness: the table stays readable after the files are added. So columns whose values may not fit
the table's type, NOT NULL columns and nested columns are read once. Keys are proved
(`rowsieve.foreign.key_proof`). The files are never ours to delete (invariants, rule 15).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rowsieve.errors import InvalidInput, SchemaMismatch, UnsupportedOperation
from rowsieve.executor.part_sources import PartSource
from rowsieve.foreign.footers import Footer, read_footers
from rowsieve.foreign.hive import Partitions
from rowsieve.foreign.joined_columns import JoinedColumns
from rowsieve.foreign.key_proof import Ends, prove_key
from rowsieve.foreign.many_keys import PlacedFile
from rowsieve.foreign.placed_parts import parts_of
from rowsieve.objects import ObjectStore
from rowsieve.parquet.foreign_values import check_foreign
from rowsieve.planner.split import PlannedPart
from rowsieve.storage.manifests.key_bounds import key_bound
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.types.aliases import is_opaque
from rowsieve.types.encodings import FIELD_ID_KEY, arrow_type, declared_size
from rowsieve.types.field_paths import children
from rowsieve.types.logical import Enum, Field, is_nested, type_name
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from rowsieve.types.widening import holds_all_of

Constants = Mapping[str, str | None]
"""The constant value of a file's columns, by name, as the text of `stored_defaults`."""


@dataclass(frozen=True, slots=True)
class PlacingTarget:
    """The table that gets the files: its columns, its key, and the version that was read."""

    schema: Schema
    key: tuple[str, ...]
    version: int
    by_field_id: bool = False


def place_files(
    store: ObjectStore, files: Mapping[str, Constants], target: PlacingTarget
) -> tuple[PartTable, Ends | None]:
    """Return a part per file that has rows, and the ends of their keys, in the order of the parts.

    `files` are URIs, with the constants that their directories give. SchemaMismatch if a file does
    not fit the table, KeyViolation if the key does not hold.
    """
    order = KeyOrder.of(target.schema, target.key) if target.key else None
    groups: dict[frozenset[str], tuple[list[Footer], list[Constants]]] = {}
    names: dict[int, dict[int, str]] = {}
    for footer, directories in zip(read_footers(store, list(files)), files.values(), strict=True):
        if id(footer.schema) not in names:
            names[id(footer.schema)] = _names_in(footer, target)
        constants = _constants(footer, names[id(footer.schema)], directories, target.schema)
        footers, values = groups.setdefault(frozenset(constants), ([], []))
        footers.append(footer)
        values.append(constants)
    parts, by_uri = PartTable.empty(), dict[str, Footer]()
    for columns, (footers, values) in groups.items():
        types = {name: arrow_type(target.schema.field(name).type) for name in columns}
        joined = JoinedColumns(target.schema, 0, names)
        entries = parts_of(footers, joined, Partitions(types, values), base_version=target.version)
        parts = parts.append(entries) if len(entries) else parts
        by_uri |= {footer.uri: footer for footer in footers}
    refs = [ref for ref in parts.files("data") if ref is not None]
    placed = [PlacedFile(by_uri[ref.path], ref) for ref in refs]
    ends = None
    if order is not None and placed:
        ends = prove_key(store, placed, target.schema, order)
        parts = with_bounds(parts, ends, order)
    _check_values(store, placed, target)
    return parts, ends


def with_bounds(parts: PartTable, ends: Ends, order: KeyOrder) -> PartTable:
    """The parts with the bounds of their keys."""
    bounds = [
        (
            key_bound(order.fields, ends.first.slice(i, 1), "lower"),
            key_bound(order.fields, ends.last.slice(i, 1), "upper"),
        )
        for i in range(len(parts))
    ]
    return parts.with_key_bounds(order.fields, bounds)


def _names_in(footer: Footer, target: PlacingTarget) -> dict[int, str]:
    """The file's column of each field id; SchemaMismatch if a column does not fit the table."""
    column_names: dict[int, str] = {}
    for column in footer.schema:
        field = _field_for(column, target, footer.uri)
        if field.id in column_names:
            raise SchemaMismatch(
                f"{footer.uri} has two columns for {field.name!r}: {column_names[field.id]!r} and "
                f"{column.name!r}; rename one of them"
            )
        if is_opaque(field.alias):
            raise UnsupportedOperation(
                f"column {field.name!r} has values that only their writer can read, which files in "
                f"place cannot have; copy the rows of {footer.uri}"
            )
        _check_sizes(column, field, footer.uri)
        try:
            check_foreign(column, field.type, field.name)
        except SchemaMismatch as error:
            raise SchemaMismatch(f"{footer.uri} does not fit the table: {error}") from error
        column_names[field.id] = column.name
    return column_names


def _check_sizes(column: pa.Field, field: Field, uri: str) -> None:
    """Raise SchemaMismatch if values in a file may have another size than the column's."""
    pending = [each for _, each in children(field.type)]
    while pending:
        inner = pending.pop()
        if inner.size is not None:
            raise SchemaMismatch(
                f"{uri} does not fit the table: {inner.name!r} inside column {field.name!r} takes "
                f"values of the size {inner.size} only, which files in place cannot prove; copy "
                "the rows of the file"
            )
        pending += [each for _, each in children(inner.type)]
    if field.size is not None and declared_size(column, field.type) != field.size:
        raise SchemaMismatch(
            f"{uri} does not fit the table: column {field.name!r} takes values of the size "
            f"{field.size} only, and the file has {column.type}; copy the rows of the file"
        )


def _field_for(column: pa.Field, target: PlacingTarget, uri: str) -> Field:
    """The table's column for a column of a file; names match exactly, or ignoring case."""
    if target.by_field_id:
        key = (column.metadata or {}).get(FIELD_ID_KEY, b"").decode()
        matches = [field for field in target.schema if str(field.id) == key]
    else:
        matches = [field for field in target.schema if field.name == column.name] or [
            field for field in target.schema if field.name.lower() == column.name.lower()
        ]
    if len(matches) == 1:
        return matches[0]
    what = "its field id" if target.by_field_id else "its name"
    raise SchemaMismatch(
        f"{uri}: the table has no column for {column.name!r} by {what}; it has "
        f"({', '.join(target.schema.names)}). Add the column first, or write the file without it"
    )


def _constants(
    footer: Footer, names: Mapping[int, str], directories: Constants, schema: Schema
) -> Constants:
    """The constants of a file: those of its directories, and defaults of columns that it lacks."""
    constants = dict(directories)
    for field in schema:
        if field.name in directories:
            if field.id in names:
                raise InvalidInput(
                    f"column {field.name!r} is in {footer.uri} and in the names of its "
                    "directories; read the directories with hive => FALSE"
                )
            text = directories[field.name]
            if isinstance(field.type, Enum) and text is not None and text not in field.type.labels:
                raise SchemaMismatch(
                    f"{footer.uri} lies in a directory for {field.name!r} of {text!r}, which is "
                    f"not a label of {type_name(field.type)}; nothing was committed"
                )
            if field.size is not None and text is not None and len(text) != 2 * field.size:
                raise SchemaMismatch(
                    f"{footer.uri} lies in a directory for {field.name!r}, which takes values of "
                    f"{field.size} bytes, of {len(text) // 2}; nothing was committed"
                )
        elif field.id not in names and (field.default is not None or not field.nullable):
            constants[field.name] = field.default
        if not field.nullable and field.id not in names and constants.get(field.name) is None:
            raise SchemaMismatch(
                f"{footer.uri} lacks the column {field.name!r}, which is NOT NULL; write the file "
                "with the column"
            )
    return constants


def _check_values(store: ObjectStore, files: Sequence[PlacedFile], target: PlacingTarget) -> None:
    """Read the columns whose values may not fit; SchemaMismatch if one does not."""
    for file in files:
        ids = file.mapping.names
        doubtful = [
            field.name
            for field in target.schema
            if field.id in ids
            and field.name not in target.key
            and _may_fail(field, file.footer.schema.field(ids[field.id]).type)
        ]
        if doubtful:
            _check_rows(store, file.ref, target.schema.select(tuple(doubtful)))


def _may_fail(field: Field, stored: pa.DataType) -> bool:
    if not field.nullable or is_nested(field.type) or isinstance(field.type, Enum):
        return True
    return not holds_all_of(arrow_type(field.type), stored)


def _check_rows(store: ObjectStore, ref: FileRef, columns: Schema) -> None:
    source = PartSource(store, PlannedPart(ref.path, 0, ref, None), columns)
    for _, batch in source.rows(columns):
        for field, column in zip(columns, batch.columns, strict=True):
            if column.null_count and not field.nullable:
                raise SchemaMismatch(
                    f"{ref.path}: column {field.name!r} is NOT NULL in the table and NULL in "
                    f"{column.null_count} of {len(column)} rows; nothing was committed"
                )
