"""Create and open tables: `create_table`, `open_table`, `scan_polars`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import pyarrow as pa

from rowsieve import engines
from rowsieve.arguments import Example, checked
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Moment,
    Properties,
    SequenceNames,
    StorageOptions,
    TableUri,
    Version,
)
from rowsieve.arguments.kinds import ANY_TEXT
from rowsieve.changes.change import send_failure
from rowsieve.changes.data.ingest import prepare_appended, prepare_rows, read_data
from rowsieve.changes.data.spark_data import is_spark_schema
from rowsieve.changes.event_order.sequence_columns import check_sequences
from rowsieve.changes.new_tables import NewTable, new_table
from rowsieve.changes.table_handle import Handle
from rowsieve.config import current
from rowsieve.errors import (
    CorruptData,
    InvalidData,
    InvalidInput,
    TableExists,
    TableMoved,
    TableNotFound,
)
from rowsieve.flags.resolution import flags_as_dict
from rowsieve.input_files.given_paths import is_paths
from rowsieve.metrics import CommitReport, WriterMetrics, send
from rowsieve.objects import ObjectStore, Uploads, open_store
from rowsieve.progress_bars import ShownProgress, shown_rows_written
from rowsieve.properties import check_properties
from rowsieve.refs.opening_refs import is_tag
from rowsieve.retention.dropping import alone, close, delete_files, is_dropped
from rowsieve.stats.collect import Collecting
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.commit_request import CommitRequest, check_request
from rowsieve.storage.log.inline_parts import inline_limit
from rowsieve.storage.log.moves import check_arrived
from rowsieve.storage.log.version_arguments import log_of_ref, resolve_snapshot
from rowsieve.storage.parts.part_writer import write_parts
from rowsieve.storage.snapshot import DIFFERENTIAL, MODES, Snapshot
from rowsieve.table import Table
from rowsieve.types.ordering.keys import KeyOrder

if TYPE_CHECKING:
    import polars

TableOrUri: TypeAlias = Annotated[
    str | os.PathLike[str] | Table,
    ANY_TEXT,
    Example("'s3://bucket/table'", "a table, or its path or URI"),
]


@checked
def create_table(
    uri: TableUri,
    schema_or_data: Any,
    key: ColumnNames | None = None,
    *,
    mode: Literal["upsert", "append", "differential"] | None = None,
    if_exists: Literal["error", "ignore", "replace"] = "error",
    properties: Properties | None = None,
    storage_options: StorageOptions | None = None,
    metadata: Metadata | None = None,
    sequence: SequenceNames | None = None,
    time: Literal["uint64", "timestamptz"] | None = None,
    progress: ShownProgress | None = None,
) -> Table:
    """Create a table as version 0, with its first rows if data is given.

    `schema_or_data` is an Arrow or Spark schema, or an object with Arrow data. A table with a key
    holds the latest row of each key (mode "upsert"); a table without a key appends rows (mode
    "append"). `sequence` are the columns by which changes of a key are ordered: the row of a key is
    the version with the greatest sequence, in whatever order changes come. Mode "differential"
    holds updates (row, time, difference) of a collection, which `append_updates` adds; `time` is
    the type of its times ("uint64" without it). TableExists if a table exists at `uri`;
    `if_exists="ignore"` opens that table, also one that is created during the call, and commits
    nothing; "replace" drops it as `drop_table` does, after the data has been checked, and creates
    another one in its place. `progress=True` shows a bar of the rows written.
    """
    columns = _key_names(key)
    ordering = (sequence,) if isinstance(sequence, str) else tuple(sequence or ())
    _check_choices(mode or ("upsert" if columns else "append"), columns, if_exists)
    times = _type_of_times(mode, time, ordering)
    checked = check_properties(properties or {})
    notes = dict(metadata or {})
    check_request(CommitRequest("create", metadata=notes))  # before any write
    started_s = perf_counter()
    store = open_store(uri, storage_options)
    log = CommitLog(store)
    try:
        exists = _survey(log, if_exists)
        if exists and if_exists == "ignore":
            return Table(Handle(store, log, log.latest(), storage_options=storage_options))
        if is_paths(schema_or_data):
            schema_or_data = read_data(
                schema_or_data, "create_table", storage_options=storage_options
            )
        with shown_rows_written(progress):
            snapshot, written = _created(
                *(store, log, schema_or_data, (columns, ordering), checked, notes, times),
                replaces=if_exists == "replace",
            )
    except BaseException as error:
        if isinstance(error, TableExists) and if_exists == "ignore":  # created meanwhile
            return Table(Handle(store, log, log.latest(), storage_options=storage_options))
        send_failure(current().reporter, store, 0, "create", error, started_s)
        raise
    _report(store, snapshot, written, started_s)
    table = Table(Handle(store, log, snapshot, storage_options=storage_options))
    if table.handle.publishes is not None:
        table.handle.publishes(table.handle)
    return table


def _survey(log: CommitLog, if_exists: str) -> bool:
    """Whether a table exists; TableExists if that is an error, or if others have files there."""
    exists, foreign = log.survey()
    if not exists:
        log.refuse_foreign(foreign)
    elif if_exists == "error":
        if is_dropped(log.store):
            raise TableExists(
                f"create_table: files of a table that was dropped are left at {log.store.uri}; "
                "wait until the call that deletes them has ended, or, if it died, use "
                "if_exists='replace' or call drop_table again"
            )
        raise TableExists(
            f"create_table: a table already exists at {log.store.uri}; use open_table, or "
            "if_exists='ignore' or 'replace'"
        )
    return exists


def _report(store: ObjectStore, snapshot: Snapshot, written: WriterMetrics, start_s: float) -> None:
    """Send the report of version 0."""
    report = CommitReport(
        store.uri,
        0,
        "create",
        snapshot.parts.row_count,
        0,
        len(snapshot.parts),
        writer=written,
        flags=flags_as_dict(snapshot.table.flags.of_writes()),
        elapsed_s=perf_counter() - start_s,
        commit_id=snapshot.commit_id,
    )
    send(current().reporter, report)


def _check_choices(mode: str, key: tuple[str, ...], if_exists: str) -> None:
    if mode not in MODES or (mode == "upsert") != bool(key):
        raise InvalidInput(
            'create_table: mode="upsert" needs key=[columns], and mode="append" and '
            '"differential" take no key; '
            f"got mode={mode!r} with key={list(key)}"
        )
    if if_exists not in ("error", "ignore", "replace"):
        raise InvalidInput(
            f"create_table: if_exists must be 'error', 'ignore' or 'replace', not {if_exists!r}"
        )


def _type_of_times(mode: str | None, time: str | None, sequence: tuple[str, ...]) -> Any:
    """The Arrow type of the times of a differential table; None for another mode."""
    if mode != DIFFERENTIAL:
        if time is not None:
            raise InvalidInput(
                f'create_table: time={time!r} is for mode="differential"; leave it out'
            )
        return None
    if sequence:
        raise InvalidInput(
            'create_table: sequence= orders the changes of keys, and mode="differential" has none; '
            "leave it out: updates have times"
        )
    if time not in (None, "uint64", "timestamptz"):
        raise InvalidInput(f"create_table: time must be 'uint64' or 'timestamptz', not {time!r}")
    return pa.timestamp("us", tz="UTC") if time == "timestamptz" else pa.uint64()


def _refuse_rows_without_columns(data: pa.Table) -> None:
    if data.num_rows and not data.num_columns:
        raise InvalidData(
            f"create_table: the data has {data.num_rows:,} rows and no columns, and a table keeps "
            "no row without a column; nothing was written: give the rows a column, or create the "
            "table with a schema and append them"
        )


def _created(
    store: ObjectStore,
    log: CommitLog,
    schema_or_data: Any,
    key_and_sequence: tuple[Sequence[str], Sequence[str]],
    properties: Mapping[str, str],
    metadata: Metadata,
    times: pa.DataType | None,
    *,
    replaces: bool,
) -> tuple[Snapshot, WriterMetrics]:
    """Create version 0; return it and the counters of its writes.

    `times`: the type of the times of a differential table, which begins without rows. With
    `replaces`, the table that exists is dropped once all has been checked.
    """
    columns, ordering = key_and_sequence
    collecting, uploads = Collecting(), Uploads(store)
    arrow_schema, data = _schema_and_rows(schema_or_data, is_differential=times is not None)
    new = new_table(arrow_schema, columns, properties, ordering, times)
    write = None
    if data is not None and data.num_rows:
        rows = _prepared(data, new)
        write = partial(
            write_parts,
            store,
            new.schema,
            tuple(map(new.schema.field, new.info.key)),
            rows,
            None,
            base_version=0,
            in_memory_up_to=inline_limit(new.info),
            properties=new.info.settings,
            sequence=tuple(map(new.schema.field, new.info.sequence)),
            collecting=collecting,
            uploads=uploads,
        )
    with _vacated(store) if replaces else nullcontext():
        snapshot = log.create(
            *(new.info, new.schema, new.next_field_id, write, metadata),
            uploads=uploads,
            is_vacant=True,
        )
    return snapshot, collecting.metrics


def _schema_and_rows(
    schema_or_data: Any, *, is_differential: bool
) -> tuple[pa.Schema, pa.Table | None]:
    """The Arrow schema, and the rows if there are any to write."""
    if is_spark_schema(schema_or_data):
        return engines.spark().arrow_schema(schema_or_data), None
    if isinstance(schema_or_data, pa.Schema):
        return schema_or_data, None
    data = read_data(schema_or_data, "create_table")
    _refuse_rows_without_columns(data)
    if is_differential and data.num_rows:
        raise InvalidInput(
            f"create_table: the data has {data.num_rows:,} rows, and rows of a differential "
            "table need times and differences; create it with a schema, then append_updates"
        )
    return data.schema, data


def _prepared(data: pa.Table, new: NewTable) -> pa.Table:
    """The rows in the table's types; with a key, sorted by it and checked."""
    if not new.info.key:
        return prepare_appended(data, new.schema)
    rows = prepare_rows(
        data, new.schema, KeyOrder.of(new.schema, new.info.key), "error", "create_table"
    )
    if new.info.sequence:
        order = KeyOrder(tuple(map(new.schema.field, new.info.sequence)))
        check_sequences(rows, order, "create_table")
    return rows


@checked
def drop_table(
    uri: TableUri,
    *,
    if_absent: Literal["error", "ignore"] = "error",
    storage_options: StorageOptions | None = None,
) -> None:
    """Delete a table with all of its versions and its own files; other files stay.

    TableNotFound if there is none. UnsupportedOperation if a lease protects the table, or it has
    branches or tags. A table that has a name in a catalog is dropped by the catalog.

    Calls that drop or replace a table take turns, and CommitConflict says that a turn did not come
    within a minute. A call that died is continued by the next one, once it was silent for 10
    seconds. If it had closed the table, whose files it then deletes, nobody can open the table any
    more, and only leases of readers from before that matter: the next call is refused until they
    end.
    """
    if if_absent not in ("error", "ignore"):
        raise InvalidInput(f"drop_table: if_absent must be 'error' or 'ignore', not {if_absent!r}")
    store = open_store(uri, storage_options)
    if _is_there(store):
        with alone(store):
            if _drop(store):
                return
    if if_absent == "error":
        raise TableNotFound(
            f"drop_table: there is no table at {store.uri}; check the path, or give "
            "if_absent='ignore'"
        )


@contextmanager
def _vacated(store: ObjectStore) -> Iterator[None]:
    """Drop what is there, and keep others from dropping what the caller creates in its place."""
    with alone(store):
        _drop(store)
        yield


def _drop(store: ObjectStore) -> bool:
    """Drop the table in a store, in the caller's turn; False if another call has dropped it."""
    if not _is_there(store):
        return False
    delete_files(store, close(store))
    return True


def _is_there(store: ObjectStore) -> bool:
    """Return whether a table is there, or what is left of one that was dropped."""
    return CommitLog(store).survey()[0] or is_dropped(store)


@checked
def open_table(
    uri: TableUri,
    *,
    version: Version | None = None,
    as_of: Moment | None = None,
    ref: str | None = None,
    storage_options: StorageOptions | None = None,
) -> Table:
    """Open a table: the newest version for reading and writing, or an older one for reading.

    `as_of` is an aware datetime or ISO-8601 text with an offset. Give `version` or `as_of`, not
    both. `ref` is the name of a branch, which is opened for reading and writing in place of the
    table, or of a tag. `version` may be the name of a tag.
    A table that has moved into a database is opened there.
    """
    try:
        return _opened(open_store(uri, storage_options), version, as_of, ref, storage_options)
    except TableMoved as moved:
        store = open_store(moved.uri, storage_options)
    try:
        return _opened(store, version, as_of, ref, storage_options)
    except (TableNotFound, CorruptData):
        check_arrived(store, str(uri))
        raise


def _opened(
    store: ObjectStore,
    version: int | str | None,
    as_of: Moment | None,
    ref: str | None,
    storage_options: StorageOptions | None,
) -> Table:
    """Open the table in a store."""
    log = CommitLog(store)
    read_only = version is not None or as_of is not None
    if ref is not None:
        log = log_of_ref(log, ref)
    if isinstance(version, str):  # its own log, so that other processes find the same version
        if as_of is not None:
            raise InvalidInput("version= and as_of= both name a version; give one of them")
        log, version = log_of_ref(log, version), None
    store = log.store
    snapshot = resolve_snapshot(log, version, as_of)
    read_only = read_only or is_tag(snapshot)
    return Table(Handle(store, log, snapshot, read_only=read_only, storage_options=storage_options))


@checked
def scan_polars(
    source: TableOrUri,
    *,
    version: Version | None = None,
    as_of: Moment | None = None,
    storage_options: StorageOptions | None = None,
) -> polars.LazyFrame:
    """Return a Polars LazyFrame of one version of a table, as `Table.scan_polars` does.

    `storage_options` are for a path or URI; a `Table` has its own. MissingExtra without polars.
    """
    if not isinstance(source, Table):
        source = open_table(source, storage_options=storage_options)
    elif storage_options is not None:
        raise InvalidInput("scan_polars: a Table has its own storage_options; remove this argument")
    return source.scan_polars(version=version, as_of=as_of)


def _key_names(key: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(key, str):
        raise InvalidInput(
            f"create_table: key= must be a list of column names, not text; write key=[{key!r}]"
        )
    return tuple(key or ())
