"""Open a Delta table as a read-only table over the same files, or import them into a new table.

`from_delta` opens, `import_delta` imports without copying rows. deltalake reads the log; the files
are planned and read by us. Partition values are constant columns, deletion vectors hide rows, and
columns are looked up in the files by the names or ids of the log's column mapping, which a column's
metadata gives; without column mapping, that metadata is ignored. Times of type `timestamp` are
instants, also in INT96.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

import msgspec
import numpy as np
import pyarrow as pa

from rowsieve.arguments import checked
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Properties,
    StorageOptions,
    TableUri,
)
from rowsieve.bridges.extras import imported
from rowsieve.errors import CorruptData, InvalidInput, NotFound, UnsupportedOperation
from rowsieve.foreign.created_in_place import PlacedFiles, TableInPlace, check_outside
from rowsieve.foreign.delta_collations import refuse_collations
from rowsieve.foreign.footers import Footer, read_footers
from rowsieve.foreign.hive import Partitions
from rowsieve.foreign.joined_columns import JoinedColumns
from rowsieve.foreign.names_in_files import names_in_file
from rowsieve.foreign.nested_in_files import (
    by_name,
    columns_in_file,
    one_by_one,
    refuse_without_ids,
)
from rowsieve.foreign.nullable_fields import nullable_field
from rowsieve.foreign.open_parquet import view_of
from rowsieve.objects import Location, ObjectStore, open_store
from rowsieve.objects.storage_options import static_options
from rowsieve.predicate.rowset import RowSet
from rowsieve.progress_bars import UNSEEN, ShownProgress, Steps, shown
from rowsieve.storage.parts.deletion_vectors import inline_deletion_vector
from rowsieve.table import Table
from rowsieve.types.encodings import EXTENSION_KEY, FIELD_ID_KEY, schema_of
from rowsieve.types.logical import Binary, Field, List, LogicalType, Map, Struct
from rowsieve.types.schema import Schema
from rowsieve.types.stored_defaults import constant_text
from rowsieve.types.variants.variant_json import EXTENSIONS

_ESCAPED: Final = re.compile(rb"(?:\\u00[0-9A-Fa-f]{2})+")
_MODE: Final = "delta.columnMapping.mode"
_PHYSICAL: Final = "delta.columnMapping.physicalName"
_ID: Final = "delta.columnMapping.id"
_WIDENED: Final = frozenset({"typeWidening", "typeWidening-preview"})
_NO_VECTORS: Final = _WIDENED | {"columnMapping", "timestampNtz", "vacuumProtocolCheck"}
_HONOURED: Final = _NO_VECTORS | {
    *("deletionVectors", "v2Checkpoint", "variantType", "variantType-preview"),
    *("variantShredding", "variantShredding-preview"),
}
"""The features that a reader must know, and that are known here or to deltalake on our behalf."""
_VARIANT: Final = {EXTENSION_KEY: EXTENSIONS[0]}
_IF_ABSENT: Final = (
    "the log of the Delta table names it, so restore it from a copy, have Spark remove it from the "
    "log by FSCK REPAIR TABLE, or open another version"
)
_READ_ONLY: Final = (
    "the Delta table was opened with from_delta, which changes nothing; write to it with "
    "deltalake, or create a table with its rows"
)


@checked
def from_delta(
    uri: TableUri,
    version: int | None = None,
    *,
    storage_options: StorageOptions | None = None,
) -> Table:
    """Open a version of a Delta table as a read-only table; copies nothing.

    Deletion vectors, column mapping and partition values are honoured. NotFound if there is no
    Delta table or version; MissingExtra without deltalake.
    """
    location, opened = _open("from_delta", uri, version, storage_options)
    store = open_store(location.uri, storage_options)
    with _reading("from_delta", location):
        files = _files("from_delta", opened, location, store)
    parts = files.parts(inline_deletion_vector, on_demand=True)
    joined = files.joined
    return view_of(store, joined.schema, joined.next_id, parts, _READ_ONLY, storage_options)


@checked
def import_delta(
    uri: TableUri,
    to: TableUri,
    key: ColumnNames | None = None,
    *,
    version: int | None = None,
    properties: Properties | None = None,
    storage_options: StorageOptions | None = None,
    metadata: Metadata | None = None,
    progress: ShownProgress | None = None,
) -> Table:
    """Create a table at `to` of the files of a Delta table where they are; copies no rows.

    It has the rows of that version, and is independent of the Delta table from then on. The files
    are never changed or deleted, and must stay: Delta's vacuum would delete them. With a key, the
    files are proved as `from_parquet` proves them, and may have no deletion vectors.
    `progress=True` shows a bar of the files read, once for the columns and once for the key.
    TableExists if a table exists at `to`.
    """
    new = TableInPlace.of("import_delta", to, key, properties, metadata, storage_options)
    location, opened = _open("import_delta", uri, version, storage_options)
    check_outside("import_delta", Location.parse(new.store.uri), location)
    with shown(progress, "files read") as show:
        with _reading("import_delta", location):
            uris = _uris(opened, location)
            new.check([Location.parse(each) for each in uris])
            steps = new.steps(show, len(uris))
            files = _files("import_delta", opened, location, new.store, steps)
        return new.create(files, steps)


def _open(
    operation: str, uri: Any, version: int | None, storage_options: StorageOptions | None
) -> tuple[Location, Any]:
    """Open the Delta table; NotFound if there is none."""
    delta: Any = imported("deltalake", "delta")
    if version is not None and version < 0:
        raise NotFound(f"{operation}: {uri} has no version {version}; versions begin at 0")
    location = Location.parse(uri)
    if location.scheme == "memory":
        raise InvalidInput(
            f"{operation}: memory:// holds Rowsieve tables only; give a folder or a bucket"
        )
    options = static_options(storage_options or {}, location.scheme)
    return location, _opened(operation, delta, location, version, options)


def _opened(
    operation: str,
    delta: Any,
    location: Location,
    version: int | None,
    options: dict[str, str],
) -> Any:
    place = location.path if location.scheme == "file" else location.uri
    errors = delta.exceptions
    try:
        return delta.DeltaTable(place, version=version, storage_options=options or None)
    except errors.TableNotFoundError as error:
        if version is not None and delta.DeltaTable.is_deltatable(place, options or None):
            raise _no_version(operation, location, version, error) from error
        raise NotFound(
            f"{operation}: there is no Delta table at {location.uri}; give the folder that holds "
            "_delta_log"
        ) from error
    except errors.DeltaError as error:
        if version is not None:
            raise _no_version(operation, location, version, error) from error
        raise _cannot_read(operation, location, error) from error


@contextmanager
def _reading(operation: str, location: Location) -> Iterator[None]:
    """Convert errors that deltalake raises only when it reads the files."""
    delta: Any = imported("deltalake", "delta")
    try:
        yield
    except delta.exceptions.DeltaError as error:
        raise _cannot_read(operation, location, error) from error


def _no_version(operation: str, location: Location, version: int, error: Exception) -> NotFound:
    return NotFound(
        f"{operation}: {location.uri} has no version {version} that can be read: {_cause(error)}; "
        "give a version of its log, or leave version= out"
    )


def _cannot_read(operation: str, location: Location, error: Exception) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{operation}: deltalake cannot read {location.uri}: {_cause(error)}; if an engine can "
        "read it, have it write the rows to a Delta table without these features, or to Parquet "
        "files, else restore the log from a copy"
    )


def _cause(error: Exception) -> str:
    """The first line of an error of deltalake: a backtrace of Rust may follow it."""
    return str(error).partition("\n")[0]


def _with_variants(field: pa.Field, described: Any) -> pa.Field:
    """Name the extension of the Variants in a column, which the log describes by Delta's types."""
    if described == "variant":
        return field.with_metadata(_VARIANT)
    match described:
        case {"type": "struct", "fields": members}:
            inner = [
                _with_variants(member, each["type"])
                for member, each in zip(field.type, members, strict=True)
            ]
            return field.with_type(pa.struct(inner))
        case {"type": "array", "elementType": element}:
            return field.with_type(pa.list_(_with_variants(field.type.value_field, element)))
        case {"type": "map", "valueType": value}:
            item = _with_variants(field.type.item_field, value)
            return field.with_type(pa.map_(field.type.key_field, item))
        case _:
            return field


def _uris(opened: Any, location: Location) -> list[str]:
    """The files of the version."""
    paths = pa.table(opened.get_add_actions())["path"].to_pylist()
    return [_uri_of(location, path) for path in paths]


def _files(
    operation: str, opened: Any, location: Location, store: ObjectStore, steps: Steps = UNSEEN
) -> PlacedFiles:
    """The files of the version, with the rows that deletion vectors hide."""
    unknown = sorted(frozenset(opened.protocol().reader_features or ()) - _HONOURED)
    if unknown:
        raise UnsupportedOperation(
            f"{operation}: {location.uri} needs the feature {', '.join(unknown)} of Delta, which "
            "is not known here; have an engine that knows it write the rows to a Delta table "
            "without it, or to Parquet files"
        )
    arrow = pa.schema(opened.schema().to_arrow())
    described = msgspec.json.decode(opened.schema().to_json())["fields"]
    refuse_collations(operation, described)
    fields = pa.schema(
        [
            nullable_field(_with_variants(field, delta_field["type"]))
            for field, delta_field in zip(arrow, described, strict=True)
        ]
    )
    if not len(fields):
        raise InvalidInput(
            f"from_delta: {location.uri} has no columns, and a table needs one; write rows to it "
            "first"
        )
    schema, next_id = schema_of(fields)
    footers = read_footers(store, _uris(opened, location), steps, if_absent=_IF_ABSENT)
    mapped = _Mapped.of(opened, schema)
    partitions = _partitions(opened, pa.table(opened.get_add_actions()), schema)
    distinct = {id(footer.schema): footer for footer in footers}
    names = {
        place: mapped.names_in(footer, schema, partitions) for place, footer in distinct.items()
    }
    nested = {
        place: mapped.nested_in(footer, schema, names[place]) for place, footer in distinct.items()
    }
    hidden = _hidden(opened, footers, location)
    joined = JoinedColumns(schema, next_id, names, nested)
    return PlacedFiles(footers, joined, partitions, hidden, instants=True)


def _uri_of(table: Location, path: str) -> str:
    """The URI of a file in the log: a URI, or a percent-encoded path, mostly below the table.

    Hadoop writes a local URI with one slash, as in `file:/data/a.parquet`.
    """
    if path.startswith("file:/") and not path.startswith("file://"):
        return Location.parse(f"file://{path.removeprefix('file:')}").uri
    if "://" in path:
        return Location.parse(path).uri
    if path.startswith("/"):
        whole = unquote(path)
        return Location(
            table.scheme, table.authority, whole if table.scheme == "file" else whole[1:]
        ).uri
    return Location(table.scheme, table.authority, f"{table.path}/{unquote(path)}").uri


@dataclass(frozen=True, slots=True)
class _Mapped:
    """The keys that find columns in files, by the table's field ids: names, or Parquet ids."""

    keys: Mapping[int, str]
    by_id: bool

    @classmethod
    def of(cls, opened: Any, schema: Schema) -> _Mapped:
        """Read the log's column mapping, also of fields inside columns."""
        mode = (opened.metadata().configuration or {}).get(_MODE, "none")
        described = msgspec.json.decode(opened.schema().to_json())["fields"]
        key = {"none": None, "id": _ID}.get(mode, _PHYSICAL)
        pairs = zip(schema, described, strict=True)
        keys = dict(each for field, key_field in pairs for each in _keys(field, key_field, key))
        return cls(keys, by_id=mode == "id")

    def names_in(self, footer: Footer, schema: Schema, partitions: Partitions) -> dict[int, str]:
        """The columns of the table that a file has; others were added later or are partitions."""
        if self.by_id:
            refuse_without_ids(footer.stored, f"from_delta: {footer.uri}")
            names = {_key_of(field): field.name for field in footer.schema if _key_of(field)}
        else:
            names = names_in_file([self.keys[field.id] for field in schema], footer)
        return {
            field.id: names[self.keys[field.id]]
            for field in schema
            if field.name not in partitions.types and self.keys[field.id] in names
        }

    def nested_in(self, footer: Footer, schema: Schema, names: Mapping[int, str]) -> Schema:
        """The columns with fields that a file has, as it has them."""
        stored = {field_id: footer.stored.field(name) for field_id, name in names.items()}
        if self.by_id:
            return columns_in_file(schema, stored, one_by_one(self._by_id))
        by_names = by_name(footer.uri, lambda field: self.keys[field.id])
        return columns_in_file(schema, stored, by_names)

    def _by_id(self, struct: Struct, member: pa.Field) -> Field | None:
        wanted = _key_of(member)
        return next((field for field in struct.fields if self.keys[field.id] == wanted), None)


def _key_of(field: pa.Field) -> str:
    """The Parquet field id; empty if there is none, as in a column that only the file has."""
    return str((field.metadata or {}).get(FIELD_ID_KEY, b"").decode())


def _keys(field: Field, described: Any, key: str | None) -> Iterator[tuple[int, str]]:
    """The log's keys of a field and the fields inside it, by field id; names without a key."""
    metadata = described.get("metadata", {})
    yield field.id, field.name if key is None else str(metadata.get(key, field.name))
    yield from _keys_inside(field.type, described["type"], key)


def _keys_inside(type_: LogicalType, described: Any, key: str | None) -> Iterator[tuple[int, str]]:
    match type_, described:
        case Struct(fields=fields), {"fields": members}:
            for field, each in zip(fields, members, strict=True):
                yield from _keys(field, each, key)
        case List(element=element), {"elementType": inner}:
            yield from _keys_inside(element.type, inner, key)
        case Map(key=keys, value=values), {"keyType": of_keys, "valueType": of_values}:
            yield from _keys_inside(keys.type, of_keys, key)
            yield from _keys_inside(values.type, of_values, key)


def _partitions(opened: Any, actions: pa.Table, schema: Schema) -> Partitions:
    columns = list(opened.metadata().partition_columns)
    if not columns:
        return Partitions({}, [{}] * actions.num_rows)
    values = actions["partition"].combine_chunks()
    texts: dict[str, list[str | None]] = {}
    for name in columns:
        field = schema.field(name)
        column = values.field(name)
        if isinstance(field.type, Binary):
            column = pa.array([_unescaped(value.as_py(), name) for value in column], column.type)
        texts[name] = [
            constant_text(value, field.type, name) if value.is_valid else None for value in column
        ]
    rows = [{name: texts[name][i] for name in columns} for i in range(actions.num_rows)]
    return Partitions({name: values.type.field(name).type for name in columns}, rows)


def _unescaped(value: bytes | None, name: str) -> bytes | None:
    """The bytes of a partition value, which the log has as text: escaped, or ASCII as it is.

    Writers differ in other text: deltalake escapes each byte, and Spark decodes UTF-8.
    """
    if value is None or (value.isascii() and b"\\" not in value):
        return value
    if _ESCAPED.fullmatch(value):
        return bytes.fromhex(value.replace(rb"\u00", b"").decode())
    raise UnsupportedOperation(
        f"from_delta: the table is partitioned by the binary column {name!r}, whose value "
        f"{value!r} writers of Delta mean in several ways; partition the table by another column"
    )


def _hidden(opened: Any, footers: Sequence[Footer], location: Location) -> dict[str, RowSet]:
    """The rows that deletion vectors hide, by the file's URI.

    deltalake reads no vectors of a table whose types were widened, so one that may have vectors, or
    a feature that we do not know, is refused by it.
    """
    features = frozenset(opened.protocol().reader_features or ())
    if features & _WIDENED and features <= _NO_VECTORS:
        return {}
    rows = {footer.uri: footer.checked.row_count for footer in footers}
    hidden: dict[str, RowSet] = {}
    reader = pa.RecordBatchReader.from_stream(opened.deletion_vectors())
    for batch in reader:
        for path, scalar in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            uri = _uri_of(location, path)
            if uri not in rows:
                raise CorruptData(
                    f"from_delta: a deletion vector is of {uri}, not in this version; restore the "
                    "Delta table from a copy"
                )
            mask = ~np.asarray(scalar.values.to_numpy(zero_copy_only=False), dtype=np.bool_)
            hidden[uri] = RowSet.from_ids(np.flatnonzero(mask), rows[uri])
    return hidden
