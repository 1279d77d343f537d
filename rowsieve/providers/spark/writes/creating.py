"""Writes that create their table: the commit creates it with all its rows, as version 0.

A write that fails, or whose driver dies, leaves no table. Of two writes that create one table, the
first commit wins, and the other write fails with TableExists.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import StructType

from rowsieve.changes.new_tables import NewTable, new_table
from rowsieve.errors import InvalidInput, TableExists, UnsupportedOperation
from rowsieve.objects import ObjectStore
from rowsieve.properties import check_properties
from rowsieve.providers.spark.row_types import arrow_schema_of
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes.job import WriteJob
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Binary, String
from rowsieve.types.schema import schema_to_json


def creation_job(
    options: WriteOptions, schema: StructType, store: ObjectStore, *, overwrite: bool
) -> WriteJob:
    """Describe a write that creates a table with these columns; all but the key may be NULL."""
    key = options.key or ()
    _check_creation(options, store, overwrite=overwrite)
    CommitLog(store).check_vacant()  # before any file is written
    columns = pa.schema([field.with_nullable(nullable=True) for field in arrow_schema_of(schema)])
    new = new_table(columns, key, check_properties(options.properties), options.event_order)
    _check_event_order(new)
    job = WriteJob(
        table_uri=store.uri,
        storage=options.storage,
        operation="create",
        table_uuid=new.info.uuid,
        base_version=0,
        schema_json=schema_to_json(new.schema),
        key=new.info.key,
        properties=new.info.settings,
        token=None,
        metadata=options.commit_metadata,
        done=False,
        creates=new,
        ignores_existing=options.if_exists == "ignore",
    )
    job.check_columns(arrow_schema_of(schema))
    return job


def create_with_parts(job: WriteJob, log: CommitLog, added: PartTable) -> None:
    """Create the table of the job with these parts, which may be none."""
    assert job.creates is not None
    new = job.creates
    write = (lambda: added) if len(added) else None
    try:
        log.create(new.info, new.schema, new.next_field_id, write, job.metadata)
    except TableExists:
        if not job.ignores_existing:
            raise


def check_existing(options: WriteOptions, head: Snapshot, *, overwrite: bool) -> None:
    """Compare the options with the existing table; TableExists if they require a new one."""
    if options.if_exists and overwrite:
        raise InvalidInput("option if_exists is for the save mode append; omit it to overwrite")
    if options.if_exists == "error":
        raise TableExists(
            f"a table already exists at {options.uri}; nothing was written. Omit the option "
            "if_exists to write into it"
        )
    if options.if_exists == "ignore":
        return
    if options.event_order and _folded(options.event_order) != _folded(head.table.sequence):
        raise InvalidInput(
            f"option sequence={', '.join(options.event_order)!r}: the table at {options.uri} "
            f"exists, and its event order is by ({', '.join(head.table.sequence)}); omit the option"
        )
    if options.key is not None and _folded(options.key) != _folded(head.table.key):
        raise InvalidInput(
            f"option key={', '.join(options.key)!r}: the table at {options.uri} exists and has the "
            f"key ({', '.join(head.table.key)}); omit the option, or correct it"
        )
    for name, value in check_properties(options.properties).items():
        if (now := head.table.properties.get(name)) != value:
            raise InvalidInput(
                f"option property.{name}={value}: the table at {options.uri} exists, and there it "
                f"is {now}; omit the option, or use set_properties"
            )


def _check_creation(options: WriteOptions, store: ObjectStore, *, overwrite: bool) -> None:
    if options.is_conditional:
        raise InvalidInput(
            f"option replaceWhere: no table exists at {store.uri}; create the table first, or omit "
            "the option"
        )
    if options.token is not None:
        raise InvalidInput(
            f"options token_app and token_sequence: no table exists at {store.uri} that could keep "
            "them; create it by a write without them, or by create_table"
        )
    if options.if_exists and overwrite:
        raise InvalidInput("option if_exists is for the save mode append; omit it to overwrite")
    allowed = "upsert" if options.key else "append"
    if options.mode not in (None, allowed):
        raise UnsupportedOperation(
            f"option mode={options.mode!r}: no table exists at {store.uri}, and the one to create "
            f"has {'a' if options.key else 'no'} key; omit the option, or use {allowed!r}"
        )


def _check_event_order(new: NewTable) -> None:
    """Refuse texts as sequences: they need one length, and no task sees those of the others."""
    for name in new.info.sequence:
        if isinstance(new.schema.field(name).type, String | Binary):
            raise UnsupportedOperation(
                f"option sequence: the column {name!r} has text or bytes, which tasks of Spark "
                "cannot compare; nothing was created. Create the table by rowsieve.create_table"
            )


def _folded(names: tuple[str, ...]) -> list[str]:
    return [name.lower() for name in names]
