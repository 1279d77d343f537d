"""How the rows of a part are stored in its file: which columns, in which forms, under which names.

A file of a table with an encoding has other columns than the table, a file with opaque forms has
other types, and a file with tags other names. Every file of one writer has the same, and so have
those of other writers with the same columns and properties, which are read once for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from rowsieve.byte_cache import ByteCache, cached_in
from rowsieve.encodings.file_encoding import WRITE_ENCODING
from rowsieve.errors import InvalidInput
from rowsieve.parquet.codec_columns import CodecColumns
from rowsieve.parquet.leaf_columns import member_paths
from rowsieve.parquet.shredded_columns import Shredding
from rowsieve.parquet.stored_forms import ENCODED_FORMAT, OPAQUE_FORMAT, STRUCTURED_FORMAT
from rowsieve.properties import CONSTRAINTS
from rowsieve.stats.selection import StatisticsOptions, statistics_options
from rowsieve.storage.parts.encoded_rows import EncodedRows, encoding_of_columns
from rowsieve.storage.parts.row_versions import without_versions
from rowsieve.storage.parts.shredded_rows import ShreddedRows
from rowsieve.types.logical import Field, Float
from rowsieve.types.opaque_forms import has_opaque_forms, opaque, opaque_rows
from rowsieve.types.ordering.sort_order import CLUSTER_BY
from rowsieve.types.schema import Schema
from rowsieve.types.stored_names import has_tags, tagged, tagged_rows

TARGET_PART_BYTES: Final = 128 * 1024 * 1024
_FORM_BYTES: Final = 4_096
_BYTES_PER_COLUMN: Final = 2_048  # of four schemas and the key


@dataclass(frozen=True, slots=True)
class FileForms:
    """The forms of the files of one writer, their size, and the statistics of their columns.

    `columns` are the table's columns that files have as columns, `with_forms` the same with the
    types that they have in files, and `schema` with their names there too.
    """

    columns: Schema
    with_forms: Schema
    schema: Schema
    key: tuple[Field, ...]
    encoding: str | None
    format_version: int
    is_whole: bool
    """Whether `columns` are all columns of the table: none is in the bytes of a codec alone."""
    has_tags: bool
    encoded: EncodedRows | None
    shredded: ShreddedRows | None
    target_bytes: int
    statistics: StatisticsOptions
    collected: Schema
    """The columns whose statistics the manifest has, with the types that they have in files."""
    floats: tuple[tuple[str, ...], ...]
    """The paths of `float_paths` in `schema`."""
    has_checks: bool
    """Whether rows must obey constraints of the table."""
    is_clustered: bool
    """Whether rows are sorted before they are written."""
    is_plain: bool
    """Whether files have the rows as they are: no other form, name, member or codec."""

    @classmethod
    def of(
        cls,
        properties: Mapping[str, str],
        schema: Schema,
        key: Sequence[Field],
        sequence: Sequence[Field] = (),
    ) -> FileForms:
        """The forms that a table's properties ask for; InvalidInput if they fit no columns."""
        columns = schema, tuple(key), tuple(sequence)
        if properties.get(WRITE_ENCODING, "columns") != "columns":
            return _read(properties.items(), *columns)  # a codec may be registered anew
        return _known(frozenset(properties.items()), *columns)

    def named_schema(self, schema: Schema) -> Schema:
        """The columns with the names that they have in files."""
        return tagged(schema) if self.has_tags else schema

    def named(self, rows: pa.Table, schema: Schema) -> pa.Table:
        """The rows with the names that their columns have in files."""
        return tagged_rows(rows, schema) if self.has_tags else rows

    def rows(self, rows: pa.Table) -> pa.Table:
        """The rows with the columns, forms and names that they have in files."""
        if not self.is_whole:
            rows = rows.select(self.columns.names)
        if self.with_forms is not self.columns:
            rows = opaque_rows(rows, self.columns, self.with_forms)
        return self.named(rows, self.with_forms)

    def row_group(self, rows: pa.Table) -> tuple[pa.Table, Shredding | None, CodecColumns | None]:
        """The rows as `rows` has them, and the columns that shredding and a codec add."""
        stored, shredding, codec = self.rows(rows), None, None
        if self.shredded is not None:
            stored, shredding = self.shredded.add_to(stored, rows), self.shredded.shredding
        if self.encoded is not None:
            stored, codec = self.encoded.add_to(stored, rows), self.encoded.columns
        return stored, shredding, codec


def _read(
    items: Any, schema: Schema, key: tuple[Field, ...], sequence: tuple[Field, ...]
) -> FileForms:
    properties = dict(items)
    encoded = EncodedRows.of(properties, schema, key, sequence)
    columns = schema if encoded is None else encoded.plain
    is_whole = columns is schema
    with_forms = columns
    if has_opaque_forms(properties):
        with_forms = opaque(columns, frozenset(field.id for field in key))
    has_names = has_tags(properties)
    stored = tagged(with_forms) if has_names else with_forms
    keys = Schema(schema.id, key)
    version = STRUCTURED_FORMAT if with_forms is columns else OPAQUE_FORMAT
    shredded = ShreddedRows.of(properties, schema, stored) if is_whole else None
    has_others = has_names or encoded is not None or shredded is not None
    return FileForms(
        columns=columns,
        with_forms=with_forms,
        schema=stored,
        key=(tagged(keys) if has_names else keys).fields,
        encoding=encoding_of_columns(properties) if encoded is None else str(encoded.encoding),
        format_version=version if is_whole else ENCODED_FORMAT,
        is_whole=is_whole,
        has_tags=has_names,
        encoded=encoded,
        shredded=shredded,
        target_bytes=target_part_bytes(properties),
        statistics=statistics_options(properties, schema, key),
        collected=without_versions(with_forms),
        floats=tuple(float_paths(stored)),
        has_checks=CONSTRAINTS in properties,
        is_clustered=not key and CLUSTER_BY in properties,
        is_plain=is_whole and with_forms is columns and not has_others,
    )


def float_paths(schema: Schema) -> Iterator[tuple[str, ...]]:
    """The paths of the columns of floats, and of such members of structs."""
    for column in schema:
        if isinstance(column.type, Float):
            yield (column.name,)
    for path, type_ in member_paths(schema):
        if isinstance(type_, Float):
            yield path


def _size_bytes(_forms: FileForms, _items: object, schema: Schema, *_keys: object) -> int:
    return _FORM_BYTES + _BYTES_PER_COLUMN * len(schema)


_FORMS: Final[ByteCache[Any, Any]] = ByteCache(4 * 1024 * 1024)
_known = cached_in(_FORMS, _size_bytes)(_read)


def target_part_bytes(properties: Mapping[str, str]) -> int:
    """Read the property `target_part_bytes`; InvalidInput unless it is a positive number."""
    text = properties.get("target_part_bytes", str(TARGET_PART_BYTES))
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise InvalidInput(
            f"property target_part_bytes is {text!r}; it is a whole number of bytes above zero, "
            f"such as {TARGET_PART_BYTES}"
        )
    return int(text)
