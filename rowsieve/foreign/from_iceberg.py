"""Open an Iceberg table as a read-only table over the same files, or import them into a new table.

`from_iceberg` opens, `import_iceberg` imports without copying rows. pyiceberg reads the metadata
and plans the files; we prune and read them. Columns have Iceberg's field ids, by which they are
read from the files, and so have fields inside columns; position deletes and the vectors of Puffin
files become deletion vectors, and so do equality deletes, for which the compared columns are read
once. A column that a file lacks is a constant there: the value of an identity partition, or else
the column's initial default, which fields of structs have, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

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
from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    NotFound,
    RowsieveError,
    StoreError,
    UnsupportedOperation,
    VersionNotFound,
)
from rowsieve.executor.part_sources import PartSource
from rowsieve.foreign.created_in_place import PlacedFiles, TableInPlace, check_outside
from rowsieve.foreign.defaults_inside import with_added_defaults
from rowsieve.foreign.equality_deletes import (
    DeleteGroup,
    EqualityPlan,
    NumberedRows,
    deleted_later,
    key_schema,
    plan_files,
)
from rowsieve.foreign.footers import Footer, read_footers
from rowsieve.foreign.hive import Partitions
from rowsieve.foreign.iceberg_names import NamesOfFields, id_of
from rowsieve.foreign.joined_columns import JoinedColumns
from rowsieve.foreign.nested_in_files import columns_in_file, one_by_one
from rowsieve.foreign.nullable_fields import nullable_field
from rowsieve.foreign.open_parquet import view_of
from rowsieve.foreign.paths import literal_location
from rowsieve.foreign.position_deletes import REWRITE_DELETES, rows_at_positions
from rowsieve.objects import Location, ObjectStore, open_store
from rowsieve.planner.split import PlannedPart
from rowsieve.predicate.rowset import RowSet
from rowsieve.progress_bars import UNSEEN, ShownProgress, Steps, shown
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.deletion_vectors import inline_deletion_vector
from rowsieve.table import Table
from rowsieve.types import logical
from rowsieve.types.encodings import (
    EXTENSION_KEY,
    NANOS_EXTENSION,
    arrow_schema,
    arrow_type,
    logical_type,
)
from rowsieve.types.leaf_fields import with_leaves
from rowsieve.types.schema import Schema
from rowsieve.types.stored_defaults import constant_text

_IF_ABSENT: Final = (
    "a snapshot of the Iceberg table names it, so restore it from a copy, or open another snapshot "
    "by snapshot_id="
)
_READ_ONLY: Final = (
    "the Iceberg table was opened with from_iceberg, which changes nothing; write to it with an "
    "Iceberg writer, or create a table with its rows"
)


@dataclass(frozen=True, slots=True)
class _IcebergFile:
    """A data file: its URI, the values of its partition by column id, and its delete files."""

    uri: str
    constants: Mapping[int, Any]
    deletes: tuple[Any, ...] = ()
    equality: tuple[DeleteGroup, ...] = ()
    sequence: int = 0


@checked
def from_iceberg(
    table: Any,
    snapshot_id: int | None = None,
    *,
    storage_options: StorageOptions | None = None,
) -> Table:
    """Open a snapshot of a pyiceberg table as a read-only table; copies nothing.

    Field ids and deletes are honoured; the columns that equality deletes compare are read,
    and held for a few files at a time. UnsupportedOperation, which names the feature, for a table
    with an unsupported feature; VersionNotFound for an unknown snapshot; MissingExtra without
    pyiceberg.
    """
    scan = _scan("from_iceberg", table, snapshot_id)
    store = open_store(literal_location(table.location()).uri, storage_options)
    files = _placed(scan, _data_files(scan, table), table, store)
    joined, parts = files.joined, files.parts(inline_deletion_vector, on_demand=True)
    return view_of(store, joined.schema, joined.next_id, parts, _READ_ONLY, storage_options)


@checked
def import_iceberg(
    table: Any,
    to: TableUri,
    key: ColumnNames | None = None,
    *,
    snapshot_id: int | None = None,
    properties: Properties | None = None,
    storage_options: StorageOptions | None = None,
    metadata: Metadata | None = None,
    progress: ShownProgress | None = None,
) -> Table:
    """Create a table at `to` of the files of a pyiceberg table where they are; copies no rows.

    It has the rows and the field ids of that snapshot, and is independent of the Iceberg table from
    then on. The files are never changed or deleted, and must stay: expiring snapshots of the
    Iceberg table would delete them. With a key, the files are proved as `from_parquet` proves them,
    and may have no deletes. `progress=True` shows a bar of the files read, once for the columns and
    once for the key. TableExists if a table exists at `to`.
    """
    scan = _scan("import_iceberg", table, snapshot_id)
    new = TableInPlace.of("import_iceberg", to, key, properties, metadata, storage_options)
    place = Location.parse(new.store.uri)
    check_outside("import_iceberg", place, literal_location(table.location()))
    files = _data_files(scan, table)
    new.check([Location.parse(file.uri) for file in files])
    with shown(progress, "files read") as show:
        steps = new.steps(show, len(files))
        placed = _placed(scan, files, table, new.store, steps)
        distinct = {id(footer.schema): footer for footer in placed.footers}
        joined = with_added_defaults(placed.joined, distinct)
        return new.create(replace(placed, joined=joined), steps)


def _scan(operation: str, table: Any, snapshot_id: int | None) -> Any:
    """The scan of a snapshot; VersionNotFound if the table has none with this id."""
    tables: Any = imported("pyiceberg.table", "iceberg")
    if not isinstance(table, tables.Table):
        raise InvalidInput(
            f"{operation}: table must be a pyiceberg table, not {type(table).__name__}; load it "
            "from its catalog, or with pyiceberg.table.StaticTable.from_metadata"
        )
    if snapshot_id is not None and table.snapshot_by_id(snapshot_id) is None:
        raise VersionNotFound(
            f"{operation}: the table has no snapshot {snapshot_id}; table.snapshots() lists those "
            "that it has"
        )
    return table.scan(snapshot_id=snapshot_id)


def _data_files(scan: Any, table: Any) -> list[_IcebergFile]:
    tasks, plan = _planned(scan, table)
    return [_file(task, table, plan) for task in tasks]


def _placed(
    scan: Any, files: Sequence[_IcebergFile], table: Any, store: ObjectStore, steps: Steps = UNSEEN
) -> PlacedFiles:
    """The files of a snapshot, with the rows that deletes hide."""
    footers = read_footers(store, [file.uri for file in files], steps, if_absent=_IF_ABSENT)
    placed = _with_columns(scan.projection(), files, footers, table)
    deletes = [(file.uri, file.deletes) for file in files]
    hidden = rows_at_positions(store, deletes, footers, scan)
    for uri, rows in _hidden_by_values(scan, files, footers, table, store):
        hidden[uri] = hidden[uri].union(rows) if uri in hidden else rows
    return replace(placed, hidden=hidden)


def _with_columns(
    iceberg: Any, files: Sequence[_IcebergFile], footers: Sequence[Footer], table: Any
) -> PlacedFiles:
    """The files with the columns of an Iceberg schema."""
    schema = _schema_of(iceberg)
    defaults = _initial_defaults(iceberg, schema)
    schema = _with_defaults_inside(iceberg, schema)
    distinct = {id(footer.schema): footer for footer in footers}
    mapped = NamesOfFields.of(table, schema)
    stored = {place: mapped.columns_of(footer) for place, footer in distinct.items()}
    names = {
        place: {
            field.id: stored_field[field.id].name for field in schema if field.id in stored_field
        }
        for place, stored_field in stored.items()
    }
    partitions = _partitions(schema, files, footers, names, defaults)
    used = max((each.id for field in schema for each in _fields_of(field)), default=0)
    next_id = 1 + max(used, int(table.metadata.last_column_id))  # dropped columns had ids, too
    nested = {
        place: columns_in_file(schema, stored_field, one_by_one(mapped.field_in))
        for place, stored_field in stored.items()
    }
    return PlacedFiles(footers, JoinedColumns(schema, next_id, names, nested), partitions)


def _planned(scan: Any, table: Any) -> tuple[list[Any], EqualityPlan]:
    with _reading_metadata(table):
        try:
            return list(scan.plan_files()), EqualityPlan()
        except ValueError:  # pyiceberg has no class for a snapshot with equality deletes
            return plan_files(scan, table)


@contextmanager
def _reading_metadata(table: Any) -> Iterator[None]:
    """Convert what pyiceberg raises, which is any exception where the bytes are damaged."""
    place = table.location()
    try:
        yield
    except (RowsieveError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise NotFound(
            f"from_iceberg: a manifest of {place} does not exist: {error}; restore it from a copy, "
            "or open another snapshot by snapshot_id="
        ) from error
    except OSError as error:
        raise StoreError(
            f"from_iceberg: a manifest of {place} cannot be read: {error}; try again"
        ) from error
    except Exception as error:
        raise UnsupportedOperation(
            f"from_iceberg: pyiceberg cannot read a manifest of {place}: "
            f"{type(error).__name__}: {error}; if another reader reads the table, "
            f"{REWRITE_DELETES}; else restore the manifest from a copy"
        ) from error


def _schema_of(iceberg: Any) -> Schema:
    arrow: Any = imported("pyiceberg.io.pyarrow", "iceberg")
    fields = []
    for field in arrow.schema_to_pyarrow(iceberg):
        ids = iter([id_of(member) for member in _members(field.type)])
        type_ = logical_type(nullable_field(with_leaves(field, _with_nanos)), _next_of(ids))
        fields.append(logical.Field(id_of(field), field.name, type_))
    if not fields:
        raise InvalidInput(
            "from_iceberg: the table has no columns; add one first, which every table needs"
        )
    return Schema(0, tuple(fields))


def _with_nanos(leaf: pa.Field, _: str) -> pa.Field:
    """The leaf with our extension for nanoseconds, which are a type of their own in Iceberg too.

    Iceberg has no finer unit than microseconds under another name.
    """
    if pa.types.is_timestamp(leaf.type) and leaf.type.unit == "ns":
        return leaf.with_metadata({**(leaf.metadata or {}), EXTENSION_KEY: NANOS_EXTENSION})
    return leaf


def _next_of(ids: Iterator[int]) -> Callable[[], int]:
    return lambda: next(ids)


def _members(type_: pa.DataType) -> Iterator[pa.Field]:
    """The fields inside a type, each before those inside it: the order in which ids are taken."""
    if pa.types.is_map(type_):
        fields = [type_.key_field, type_.item_field]
    elif pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
    elif type_.num_fields:
        fields = [type_.value_field]
    else:
        fields = []
    for field in fields:
        yield field
        yield from _members(field.type)


def _fields_of(field: logical.Field) -> Iterator[logical.Field]:
    """A field and all fields inside it."""
    yield field
    match field.type:
        case logical.List(element=element):
            yield from _fields_of(element)
        case logical.Struct(fields=fields):
            for member in fields:
                yield from _fields_of(member)
        case logical.Map(key=key, value=value):
            yield from _fields_of(key)
            yield from _fields_of(value)


def _file(task: Any, table: Any, plan: EqualityPlan) -> _IcebergFile:
    file = task.file
    if str(file.file_format).rpartition(".")[2].upper() != "PARQUET":
        raise UnsupportedOperation(
            f"from_iceberg: {file.file_path} is {file.file_format}, and only Parquet files are "
            "read; rewrite the files of the table, with write.format.default=parquet"
        )
    spec = table.specs()[file.spec_id]
    constants = {
        field.source_id: file.partition[place]
        for place, field in enumerate(spec.fields)
        if str(field.transform) == "identity"
    }
    equality = plan.of_file(file.file_path)
    sequence = plan.standings[file.file_path].sequence if equality else 0
    uri = literal_location(file.file_path).uri
    return _IcebergFile(uri, constants, tuple(task.delete_files), equality, sequence)


def _initial_defaults(iceberg: Any, schema: Schema) -> dict[int, str | None]:
    """The text of the value that rows have in files which lack a column, by field id."""
    both = zip(iceberg.fields, schema, strict=True)
    defaults = {field.id: _default_text(iceberg_field, field) for iceberg_field, field in both}
    return {field_id: text for field_id, text in defaults.items() if text is not None}


def _default_text(iceberg_field: Any, field: logical.Field) -> str | None:
    """The text of a field's initial default; None for NULL."""
    conversions: Any = imported("pyiceberg.conversions", "iceberg")
    value = getattr(iceberg_field, "initial_default", None)
    if value is None:
        return None
    try:
        if isinstance(field.type, logical.Float):
            value = _nearest(value, field.type)
        elif isinstance(value, str) and not isinstance(field.type, logical.String):
            value = conversions.from_json(iceberg_field.field_type, value)
        return _text(value, field)
    except (InvalidInput, ValueError, TypeError) as error:
        raise UnsupportedOperation(
            f"from_iceberg: column {field.name!r} has the initial default {value!r}, which "
            f"cannot be read: {error}; rewrite the files of the table, which then have it"
        ) from error


def _with_defaults_inside(iceberg: Any, schema: Schema) -> Schema:
    """The schema with the initial defaults of fields of structs, which files without them have."""
    both = zip(iceberg.fields, schema, strict=True)
    fields = (
        replace(field, type=_with_defaults(iceberg_field.field_type, field.type))
        for iceberg_field, field in both
    )
    return Schema(schema.id, tuple(fields))


def _with_defaults(iceberg: Any, type_: logical.LogicalType) -> logical.LogicalType:
    match type_:
        case logical.Struct(fields=fields):
            members = []
            for nested, member in zip(iceberg.fields, fields, strict=True):
                inner = _with_defaults(nested.field_type, member.type)
                members.append(replace(member, type=inner, fill=_default_text(nested, member)))
            return logical.Struct(tuple(members))
        case logical.List(element=element):
            inner = _with_defaults(iceberg.element_type, element.type)
            return logical.List(replace(element, type=inner))
        case logical.Map(key=key, value=value):
            keys = _with_defaults(iceberg.key_type, key.type)
            values = _with_defaults(iceberg.value_type, value.type)
            return logical.Map(replace(key, type=keys), replace(value, type=values))
        case _:
            return type_


def _nearest(value: float | str, type_: logical.Float) -> float:
    """The number of the type that is nearest to a default, whose JSON text has a few digits."""
    if type_.bits == 64:
        return float(value)
    with np.errstate(over="ignore"):
        number = float(np.float32(value))
    if np.isinf(number) and not np.isinf(float(value)):
        raise ValueError("it is beyond float")
    return number


def _partitions(
    schema: Schema,
    files: Sequence[_IcebergFile],
    footers: Sequence[Footer],
    names: Mapping[int, dict[int, str]],
    defaults: Mapping[int, str | None],
) -> Partitions:
    """The constants of files that lack a column: of an identity partition, or initial defaults."""
    types: dict[str, pa.DataType] = {}
    rows: list[dict[str, str | None]] = [{} for _ in files]
    for field in schema:
        for row, file, footer in zip(rows, files, footers, strict=True):
            if field.id in names[id(footer.schema)]:
                continue
            if field.id in file.constants:
                row[field.name] = _text(file.constants[field.id], field)
            elif field.id in defaults:
                row[field.name] = defaults[field.id]
        if any(field.name in row for row in rows):
            types[field.name] = arrow_type(field.type)
    return Partitions(types, rows)


def _text(value: Any, field: logical.Field) -> str | None:
    """The text of a partition value; Iceberg has days and parts of seconds as numbers."""
    target = arrow_type(field.type)
    if isinstance(value, int) and isinstance(field.type, logical.Date):
        return constant_text(pa.array([value], pa.int32()).view(target)[0], field.type, field.name)
    ticks = isinstance(field.type, logical.Time | logical.Timestamp | logical.Nanos)
    if isinstance(value, int) and ticks:
        return constant_text(pa.array([value], pa.int64()).view(target)[0], field.type, field.name)
    return constant_text(value, field.type, field.name)


def _hidden_by_values(
    scan: Any,
    files: Sequence[_IcebergFile],
    footers: Sequence[Footer],
    table: Any,
    store: ObjectStore,
) -> Iterator[tuple[str, RowSet]]:
    """The rows that equality deletes hide, with the URI of their file, which may come twice."""
    for group in dict.fromkeys(group for file in files for group in file.equality):
        compared = key_schema(group.field_ids, scan.projection(), table)
        deleted = _deleted_rows(compared, group, table, store)
        both = zip(files, footers, strict=True)
        pairs = [(file, footer) for file, footer in both if group in file.equality]
        sequences = {file.uri: file.sequence for file, _ in pairs}
        placed = _with_columns(compared, [pair[0] for pair in pairs], [f for _, f in pairs], table)
        for together in _in_groups(_stored_rows(placed, store), deleted.rows.num_rows):
            data = NumberedRows.of([(rows, sequences[ref.path]) for ref, rows in together])
            ends = np.cumsum([rows.num_rows for _, rows in together])[:-1]
            masks = np.split(deleted_later(data, deleted), ends)
            for (ref, _), mask in zip(together, masks, strict=True):
                yield ref.path, RowSet.from_mask(mask)


def _deleted_rows(
    compared: Any, group: DeleteGroup, table: Any, store: ObjectStore
) -> NumberedRows:
    """The rows of delete files."""
    sequences = {literal_location(path).uri: number for path, number in group.sequences.items()}
    footers = read_footers(store, list(sequences), if_absent=_IF_ABSENT)
    placed = _with_columns(compared, [_IcebergFile(uri, {}) for uri in sequences], footers, table)
    for footer in footers:
        if len(placed.joined.names_of(footer)) < len(placed.joined.schema.fields):
            raise CorruptData(
                f"from_iceberg: {footer.uri} lacks a column that its equality deletes compare: "
                f"{', '.join(placed.joined.schema.names)}; restore it from a copy"
            )
    no_rows = arrow_schema(placed.joined.schema).empty_table()
    stored = [(rows, sequences[ref.path]) for ref, rows in _stored_rows(placed, store)]
    return NumberedRows.of([(no_rows, 0), *stored])


def _in_groups(
    files: Iterable[tuple[FileRef, pa.Table]], least_rows: int
) -> Iterator[list[tuple[FileRef, pa.Table]]]:
    """Files in lists of at least so many rows, so that deleted rows are encoded a few times."""
    together: list[tuple[FileRef, pa.Table]] = []
    for file in files:
        together.append(file)
        if sum(rows.num_rows for _, rows in together) >= least_rows:
            yield together
            together = []
    if together:
        yield together


def _stored_rows(placed: PlacedFiles, store: ObjectStore) -> Iterator[tuple[FileRef, pa.Table]]:
    """Each file that has rows, with all of them."""
    schema = placed.joined.schema
    for ref in placed.parts(inline_deletion_vector, on_demand=True).files("data"):
        assert ref is not None
        source = PartSource(store, PlannedPart(ref.path, 0, ref, None), schema)
        yield ref, pa.Table.from_batches([batch for _, batch in source.rows(schema)])
