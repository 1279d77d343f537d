"""Making and finding tables: `create_table`, `open_table`."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from rowsieve.arguments import checked
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Moment,
    Properties,
    StorageOptions,
    TableUri,
)
from rowsieve.changes.handle import send_failure
from rowsieve.changes.ingest import prepare_appended, prepare_rows, read_data
from rowsieve.config import current
from rowsieve.errors import InvalidInput, TableExists
from rowsieve.metrics import CommitReport, WriterMetrics, send
from rowsieve.objects import ObjectStore, open_store
from rowsieve.properties import check_properties
from rowsieve.stats.collect import Collecting
from rowsieve.stats.options import statistics_options
from rowsieve.storage.checkpoint import row_count
from rowsieve.storage.commit_log import CommitLog
from rowsieve.storage.commit_request import CommitRequest, check_request
from rowsieve.storage.part_writer import write_parts
from rowsieve.storage.resolve import resolve_snapshot
from rowsieve.storage.snapshot import Snapshot, TableInfo
from rowsieve.table import Table
from rowsieve.types.encodings import schema_of
from rowsieve.types.keys import KeyOrder


@checked
def create_table(
    uri: TableUri,
    schema_or_data: Any,
    key: ColumnNames | None = None,
    *,
    mode: Literal["upsert", "append"] | None = None,
    if_exists: Literal["error", "ignore"] = "error",
    properties: Properties | None = None,
    storage_options: StorageOptions | None = None,
    metadata: Metadata | None = None,
) -> Table:
    """Create a table, with its first rows if data is given, as version 0.

    `schema_or_data` is an Arrow schema or anything with Arrow data. A table with a key holds the
    latest row per key (mode "upsert"); one without takes rows as they come (mode "append").
    TableExists if one stands there, unless `if_exists="ignore"`, which opens it and writes nothing.
    """
    columns = _key_columns(key)
    mode = mode or ("upsert" if columns else "append")
    if mode not in ("upsert", "append") or (mode == "upsert") != bool(columns):
        raise InvalidInput(
            'mode="upsert" needs key=[columns], mode="append" none; '
            f"got mode={mode!r} with key={list(columns)}"
        )
    if if_exists not in ("error", "ignore"):
        raise InvalidInput(f"if_exists is 'error' or 'ignore', not {if_exists!r}")
    checked = check_properties(properties or {})
    notes = dict(metadata or {})
    check_request(CommitRequest("create", metadata=notes))  # before any write
    started_s = time.perf_counter()
    store = open_store(uri, storage_options)
    log = CommitLog(store)
    try:
        if log.exists():
            if if_exists == "ignore":
                return Table(store, log, log.latest(), storage_options=storage_options)
            raise TableExists(
                f"a table stands at {store.uri} already; use open_table, or if_exists='ignore'"
            )
        snapshot, written = _created(store, log, schema_or_data, columns, mode, checked, notes)
    except BaseException as error:
        send_failure(current().reporter, store, 0, "create", error, started_s)
        raise
    rows, parts = row_count(snapshot.parts), len(snapshot.parts)
    elapsed_s = time.perf_counter() - started_s
    send(
        current().reporter,
        CommitReport(store.uri, 0, "create", rows, 0, parts, writer=written, elapsed_s=elapsed_s),
    )
    return Table(store, log, snapshot, storage_options=storage_options)


def _created(
    store: ObjectStore,
    log: CommitLog,
    schema_or_data: Any,
    columns: Sequence[str],
    mode: str,
    properties: Mapping[str, str],
    metadata: Metadata,
) -> tuple[Snapshot, WriterMetrics]:
    """Version 0, and what was written for it."""
    collecting = Collecting()
    data = None
    if not isinstance(schema_or_data, pa.Schema):
        data = read_data(schema_or_data, "create_table")
    source = schema_or_data if data is None else data.schema
    schema, next_id = schema_of(source, not_null=columns)
    statistics_options(properties, schema)  # refuses names that fit no column
    order = KeyOrder.of(schema, columns) if columns else None
    names = () if order is None else order.names
    info = TableInfo(uuid=uuid.uuid4().hex, key=names, mode=mode, properties=properties)
    write = None
    if data is not None and data.num_rows:
        if order is None:
            rows = prepare_appended(data, schema)
        else:
            rows = prepare_rows(data, schema, order, "error", "create_table")
        fields = () if order is None else order.fields
        write = partial(
            write_parts,
            store,
            schema,
            fields,
            rows,
            None,
            base_version=0,
            properties=properties,
            collecting=collecting,
        )
    return log.create(info, schema, next_id, write, metadata), collecting.metrics


@checked
def open_table(
    uri: TableUri,
    *,
    version: int | None = None,
    as_of: Moment | None = None,
    storage_options: StorageOptions | None = None,
) -> Table:
    """Open a table: its newest version to read and write, or an older one to read.

    `as_of` is an aware datetime or ISO-8601 text with offset, and excludes `version`.
    """
    store = open_store(uri, storage_options)
    log = CommitLog(store)
    snapshot = resolve_snapshot(log, version, as_of)
    read_only = version is not None or as_of is not None
    return Table(store, log, snapshot, read_only=read_only, storage_options=storage_options)


def _key_columns(key: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(key, str):
        raise InvalidInput(f"key= is a list of column names: key=[{key!r}]")
    return tuple(key or ())
