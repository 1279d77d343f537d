"""Writes a DataFrame: tasks write parts, and the driver commits them once.

The driver checks columns and types before any task runs. A task sorts its rows in runs of bounded
size and writes parts under new names. The driver commits only the parts that successful tasks
report, so a failed and repeated task leaves unreferenced files. `abort` deletes nothing: Spark also
calls it after a failed `commit`, which may have succeeded (invariants, rule 15). Only a write in
one pass removes files, before any commit was asked to add them (`one_pass.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from rowsieve.changes.data.ingest import Changes
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.objects import open_store
from rowsieve.providers.spark.cluster.task_stores import task_store
from rowsieve.providers.spark.row_types import arrow_schema_of
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes.added_columns import new_columns, with_new_columns
from rowsieve.providers.spark.writes.committing import (
    already_committed,
    commit_parts,
    merge_in_order,
)
from rowsieve.providers.spark.writes.creating import check_existing, creation_job
from rowsieve.providers.spark.writes.job import WriteJob
from rowsieve.providers.spark.writes.one_pass import (
    is_in_order,
    is_worth_keeping,
    remove_uncommitted,
)
from rowsieve.providers.spark.writes.replacing import replaced_rows
from rowsieve.providers.spark.writes.table_changes import (
    change_table,
    is_by_table,
    received_rows,
    refuse_merge_by_column,
    sent_rows,
)
from rowsieve.storage.log.commit_log import CommitLog, check_writable
from rowsieve.storage.log.inline_parts import inline_limit
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.part_writer import PartWriter
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import Key, KeyOrder
from rowsieve.types.schema import schema_to_json

RUN_BYTES: Final = 128 * 1024 * 1024  # size of the rows that a task sorts at a time


@dataclass(frozen=True, slots=True)
class WrittenParts(WriterCommitMessage):
    """The parts that a task has written, as a manifest."""

    manifest: bytes
    rows_written: int
    rows_deleted: int
    in_order: bool = True  # False: rows were unsorted, and a write in one pass skipped some
    rows: bytes = b""  # those that a method of the table writes


class RowsieveWriter(DataSourceArrowWriter):
    """One write; created on the driver, sent to every task, and committed on the driver."""

    def __init__(self, job: WriteJob) -> None:
        self._job = job

    @classmethod
    def begin(
        cls, options: WriteOptions, schema: StructType, *, overwrite: bool = False
    ) -> RowsieveWriter:
        """Check the write against the newest version of the table."""
        return cls(begin_job(options, schema, overwrite=overwrite))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task to files that are not part of the table until the commit."""
        job, parts = self._job, TaskParts(self._job)
        if job.done:
            return parts.finish()
        if is_by_table(job):
            return WrittenParts(
                b"", 0, 0, rows=sent_rows([each for each in iterator if each.num_rows])
            )
        if job.one_pass:
            return self._write_in_order(iterator, parts)
        for batch in iterator:
            parts.add(batch)
        return parts.finish()

    def _write_in_order(self, batches: Iterator[pa.RecordBatch], parts: TaskParts) -> WrittenParts:
        """Write rows in one pass; writes nothing if more than one batch is not sorted by key."""
        in_order: bool | None = None  # whether the first batch is
        for batch in batches:
            if not batch.num_rows:
                continue
            if in_order is False:
                _drain(batches)
                return WrittenParts(b"", 0, 0, in_order=False)  # nothing is written yet
            if in_order is None:
                in_order = is_in_order(batch, self._job)
            parts.add(batch)
            if parts.overlap:
                _drain(batches)  # the commit will refuse these parts
        return parts.finish()

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the parts of all tasks once, or nothing if the tasks had no rows.

        A write in one pass commits nothing, and removes the parts, if they are not worth keeping.
        """
        written = [message for message in messages if isinstance(message, WrittenParts)]
        sent = [received_rows(message.rows) for message in written if message.rows]
        if sent and self._job.merges:
            merge_in_order(self._job, pa.concat_tables(sent))
            return
        if sent:
            change_table(self._job, sent)
            return
        parts = [PartTable.from_ipc(message.manifest) for message in written if message.manifest]
        order = self._job.order
        if self._job.one_pass and order is not None:
            added = parts[0].append(*parts[1:]) if parts else PartTable.empty()
            in_order = all(message.in_order for message in written)
            if not (in_order and is_worth_keeping(added, order)):
                remove_uncommitted(open_store(self._job.table_uri, self._job.storage), added)
                return
        commit_parts(
            self._job,
            parts,
            rows_written=sum(message.rows_written for message in written),
            rows_deleted=sum(message.rows_deleted for message in written),
        )

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: uncommitted files are not part of the table."""


def _drain(batches: Iterator[pa.RecordBatch]) -> None:
    """Receive the other batches: Spark's write to a worker that has ended may fail the task."""
    for _ in batches:
        pass


def begin_job(options: WriteOptions, schema: StructType, *, overwrite: bool) -> WriteJob:
    """Describe a write of rows with these columns, checked against the table's newest version."""
    store = open_store(options.uri, options.storage)
    log = CommitLog(store)
    if options.key is not None and not log.exists():
        return creation_job(options, schema, store, overwrite=overwrite)
    head = log.latest() if options.merge_base is None else log.at(options.merge_base)
    check_existing(options, head, overwrite=overwrite)
    _refuse_unordered(options, head)
    if options.is_conditional and not overwrite:
        raise InvalidInput("option replaceWhere is for the save mode overwrite")
    columns = arrow_schema_of(schema)
    added = new_columns(options, head, columns)
    if added and not already_committed(head, options.token):
        unconditional = replace(options, replace_where=None, predicate=None)  # they may name these
        job = _job(unconditional, store.uri, head, overwrite=overwrite)
        _check(job, head, pa.schema([field for field in columns if field not in added]))
        head = with_new_columns(options, log, head, added)
    job = _job(options, store.uri, head, overwrite=overwrite)
    if not job.done:  # the columns may have changed since that commit
        _check(job, head, columns)
    return job


def _job(options: WriteOptions, uri: str, head: Snapshot, *, overwrite: bool) -> WriteJob:
    """The write into this version; its columns are not checked yet."""
    if options.op is not None and options.merge_base is None:
        _check_sequence(options, head)
    ignored = options.if_exists == "ignore"
    if options.merge_base is not None:
        operation = "merge"
    else:
        operation = "append" if ignored else _operation(options.mode, head, overwrite)
    return WriteJob(
        table_uri=uri,
        storage=options.storage,
        operation=operation,
        table_uuid=head.table.uuid,
        base_version=head.version,
        schema_json=schema_to_json(head.schema),
        key=head.table.key,
        properties=head.table.settings,
        token=options.token,
        metadata=options.commit_metadata,
        done=ignored or already_committed(head, options.token),
        op=options.op,
        sequence=options.sequence,
        keeps_missing=options.keeps_missing,
        event_order=head.table.sequence,
        inline_bytes=inline_limit(head.table),
        replaces=replaced_rows(options, head.schema),
        one_pass=options.one_pass,
    )


def _check(job: WriteJob, head: Snapshot, columns: pa.Schema) -> None:
    """Raise an error unless rows with these columns can be written into this version."""
    check_writable(job.operation, head)
    job.check_columns(columns)


def _refuse_unordered(options: WriteOptions, head: Snapshot) -> None:
    """Raise UnsupportedOperation for a write that cannot keep the event order of a table."""
    if not head.table.sequence:
        return
    sequence = ", ".join(head.table.sequence)
    if options.is_conditional:
        raise UnsupportedOperation(
            "an overwrite with a condition by Spark's tasks does not keep the event order of the "
            f"table, by ({sequence}); nothing was written. Write from the driver: "
            "table.overwrite(frame.toArrow(), where=...)"
        )
    if options.merge_base is not None:
        refuse_merge_by_column(head.table)


def _check_sequence(options: WriteOptions, head: Snapshot) -> None:
    """Raise InvalidInput if nothing says which of two changes of a key is the newer one."""
    if options.sequence is None and not head.table.sequence:
        raise InvalidInput(
            "mode changes needs the option sequence, the column by which changes of one key are "
            "ordered, or a table with an event order"
        )


class TaskParts:
    """The rows of one task, sorted run by run and written as parts."""

    def __init__(self, job: WriteJob) -> None:
        self._job = job
        self._schema = job.schema
        self._order = job.order
        self._store = task_store(job.table_uri, job.storage)
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._writer: PartWriter | None = None
        self._last_key: Key | None = None
        self._finished: list[PartTable] = []
        self._rows = 0
        self._deleted = 0
        self.overlap = False  # whether two of its parts may share a key

    def add(self, batch: pa.RecordBatch) -> None:
        """Buffer a batch; writes a part when the run is full."""
        if batch.num_rows:
            self._pending.append(batch)
            self._pending_bytes += batch.nbytes
            if self._pending_bytes >= RUN_BYTES:
                self._write_run()

    def finish(self) -> WrittenParts:
        """Write the remaining rows, and return all parts."""
        self._write_run()
        self._close()
        if not self._finished:
            return WrittenParts(b"", 0, 0)
        manifest = self._finished[0].append(*self._finished[1:]).to_ipc()
        return WrittenParts(manifest, self._rows, self._deleted)

    def _write_run(self) -> None:
        if not self._pending:
            return
        changes = self._job.changes_of(pa.Table.from_batches(self._pending))
        self._pending, self._pending_bytes = [], 0
        if self._order is not None:
            changes = self._in_order(changes, self._order)
        if self._writer is None:
            self._writer = self._new_writer()
        if changes.rows is not None:
            self._rows += changes.rows.num_rows
            self._writer.write(changes.rows)
        if changes.deletes is not None:
            self._deleted += changes.deletes.num_rows
            self._writer.write_deletes(changes.deletes)

    def _in_order(self, changes: Changes, order: KeyOrder) -> Changes:
        """Start a new part if a key is not behind those of the last run; drop a repeated delete."""
        tables = [each for each in (changes.rows, changes.deletes) if each is not None]
        keys = [order.columns(each) for each in tables if each.num_rows]
        first = min(each.key(0) for each in keys)
        last = max(each.key(len(each) - 1) for each in keys)
        if self._job.deletes and first == self._last_key:
            assert changes.deletes is not None
            changes = Changes(None, changes.deletes.slice(1))  # this key is already deleted
        elif self._last_key is not None and first <= self._last_key:
            self.overlap = True
            self._close()  # the commit checks whether both parts have a key
        self._last_key = last
        return changes

    def _new_writer(self) -> PartWriter:
        key = () if self._order is None else self._order.fields
        job = self._job
        return PartWriter(self._store, self._schema, key, job.properties, job.base_version)

    def _close(self) -> None:
        if self._writer is not None:
            self._finished.append(self._writer.finish())
            self._writer = None


def _operation(mode: str | None, head: Snapshot, overwrite: bool) -> str:
    """The operation of the commit, as named in the conflict matrix."""
    if overwrite:
        if mode is not None:
            raise InvalidInput(f"option mode={mode!r} selects how to append; omit it to overwrite")
        return "overwrite"
    mode = mode or "append"
    key = ", ".join(head.table.key)
    if mode == "append" and key:
        raise UnsupportedOperation(
            f"append: the table has the key ({key}), so a new row may have an existing row's "
            "key; write with .option('mode', 'upsert')"
        )
    if mode != "append" and not key:
        raise UnsupportedOperation(
            f"{mode}: the table has no key; write with .option('mode', 'append')"
        )
    return {"delete": "delete_keys", "changes": "apply"}.get(mode, mode)
