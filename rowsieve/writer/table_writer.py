"""`Table.writer`: changes of many threads, acknowledged together.

With `durability="wal"`, one thread writes the calls that wait to the write-ahead log as one record,
syncs it, adds them to the memtable, and acknowledges them; another thread commits memtables. With
`durability="commit"`, the first thread commits the calls that wait as one commit.

Soundness: a call is acknowledged after its record is durable (invariant 43), and visible to readers
of the same `Table` before that. A failed write or sync ends the writer (rule 21).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.metrics import IngestMetrics
from rowsieve.storage.snapshot import Snapshot
from rowsieve.writer.acknowledgements import Acknowledgement
from rowsieve.writer.committed import CommittedPath
from rowsieve.writer.compacting import Compacting
from rowsieve.writer.counting import Counting
from rowsieve.writer.intake import Intake
from rowsieve.writer.logged import LoggedPath
from rowsieve.writer.queued_calls import Action, QueuedCall
from rowsieve.writer.writer_settings import WriterSettings


class Writer:
    """Takes rows and deletes from any thread; from `Table.writer`. Close it, or use `with`."""

    def __init__(self, handle: Handle, settings: WriterSettings) -> None:
        """Open the log, if there is one, and recover what it has."""
        handle.require_writable("writer")
        if handle.writer is not None:
            raise UnsupportedOperation(
                "writer: this Table object has an open writer already, which any thread may use; "
                "close it first, or open the table once more with open_table"
            )
        self._handle = handle
        self._settings = settings
        self._intake = Intake(settings.max_buffered)
        head = handle.latest()
        self._path: LoggedPath | CommittedPath
        self._compacting = Compacting(handle)
        self._counting = Counting(handle)
        note_commit, counting = self._compacting.note_commit, self._counting
        if settings.durability == "wal":
            self._path = LoggedPath(handle, head, settings, self._intake, counting, note_commit)
        else:
            self._path = CommittedPath(handle, head, self._intake, counting, note_commit)
        self._turn = threading.local()
        self._threads = [
            threading.Thread(target=work, name=f"rowsieve-writer-{name}", daemon=True)
            for name, work in (
                *self._path.works,
                *([("compact", self._compacting.run)] if settings.compacts else ()),
            )
        ]
        handle.writer = self
        for thread in self._threads:
            thread.start()

    def __repr__(self) -> str:
        return f"<rowsieve.Writer of {self._handle.store.uri}: {self._intake.buffered:,} buffered>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def metrics(self) -> IngestMetrics:
        """Counters and histograms of this writer, as they are now."""
        return self._counting.metrics()

    # Changes

    def upsert(self, rows: Any) -> Acknowledgement:
        """Insert rows, or replace those with the same key; returns at once.

        `rows` is a dict, which is one row, or any data that `Table.upsert` takes. Errors of the
        data are raised by the acknowledgement's `result`. Waits while `max_buffered` is exceeded.
        """
        return self._submitted(self._call("upsert", rows))

    def append(self, rows: Any) -> Acknowledgement:
        """Add rows to a table without a key; as `upsert` otherwise."""
        return self._submitted(self._call("append", rows))

    def delete(self, where: Any = None, *, keys: Any = None) -> Acknowledgement:
        """Delete the rows with these keys; as `upsert` otherwise.

        In a table with an event order, the keys have its sequence columns. UnsupportedOperation for
        a condition: it depends on rows, which a writer does not read (invariant I7).
        """
        return self._submitted(self._call("delete", _only_keys(where, keys)))

    async def upsert_async(self, rows: Any) -> int:
        """Upsert rows and wait until they are durable, without blocking the event loop."""
        return await self._awaited(self._call("upsert", rows))

    async def append_async(self, rows: Any) -> int:
        """Append rows and wait until they are durable, without blocking the event loop."""
        return await self._awaited(self._call("append", rows))

    async def delete_async(self, where: Any = None, *, keys: Any = None) -> int:
        """Delete by key and wait until that is durable, without blocking the event loop."""
        return await self._awaited(self._call("delete", _only_keys(where, keys)))

    def flush(self) -> int:
        """Wait until all calls so far are committed; return the version that has them.

        Engines in which the table is registered read this version then.
        """
        self._intake.check()
        self._intake.drain()
        version = self._path.flush()
        self._handle.pin_readable()
        return version

    def close(self) -> None:
        """Finish all calls, commit what is buffered, and give the log up.

        A writer that failed raises its error. What was acknowledged stays in the log if it cannot
        be committed: the next writer on it commits it.
        """
        if self._intake.is_inherited or self._handle.writer is not self:
            return
        self._intake.close()
        try:
            self._threads[0].join()
            self._path.close()
        finally:
            self._handle.writer = None
            self._counting.report()
            self._handle.pin(self._handle.newest)
            self._path.stop()
            self._compacting.stop()
            for thread in self._threads[1:]:
                thread.join()

    # For the handle and for readers

    @contextmanager
    def direct(self) -> Iterator[None]:
        """Let a change of the table take its turn: all earlier calls are committed (rule 19)."""
        depth = getattr(self._turn, "depth", 0)
        if depth or self._intake.is_inherited or threading.current_thread() in self._threads:
            yield
            return
        self._intake.pause()
        self._turn.depth = 1
        try:
            self._path.flush()
            yield
            self._path.refresh(self._handle.newest)
        finally:
            self._turn.depth = 0
            self._intake.resume()

    def over(self, snapshot: Snapshot) -> Snapshot | None:
        """Return this version with what was acknowledged since; None if it is outdated."""
        return snapshot if self._intake.is_inherited else self._path.over(snapshot)

    # Private

    def _call(self, action: Action, data: Any) -> QueuedCall:
        self._intake.check()
        preparation = self._path.preparation
        preparation.check_action(action)
        acknowledgement = Acknowledgement()
        if (row := preparation.single(data)) is not None:
            return QueuedCall(action, 1, acknowledgement, row)
        try:
            changes = preparation.changes(action, data)
        except Exception as error:
            acknowledgement.complete(0, error)
            self._counting.note_failed()
            return QueuedCall(action, 0, acknowledgement)
        rows = sum(table.num_rows for table in (changes.rows, changes.deletes) if table is not None)
        return QueuedCall(action, rows, acknowledgement, None, changes, preparation.form)

    def _submitted(self, call: QueuedCall) -> Acknowledgement:
        if not call.acknowledgement.done():
            self._intake.put(call)
        return call.acknowledgement

    async def _awaited(self, call: QueuedCall) -> int:
        import asyncio  # noqa: PLC0415 - it takes 30 ms, and only callers who use it need it

        if call.acknowledgement.done():
            return call.acknowledgement.result()
        loop = asyncio.get_running_loop()
        if not self._intake.put(call, waits=False):
            await loop.run_in_executor(None, self._intake.put, call)
        waiter = loop.create_future()

        def finish() -> None:
            if not waiter.done():
                waiter.set_result(None)

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(finish)

        call.acknowledgement.when_done(wake)
        await waiter
        return call.acknowledgement.result()


def _only_keys(where: Any, keys: Any) -> Any:
    """Return the keys to delete; an error for a condition, and without keys."""
    if where is not None:
        raise UnsupportedOperation(
            "delete: a writer deletes by key, keys={'id': 7}, because it reads no rows; "
            "Table.delete(where) deletes by a condition, after all earlier calls of the writer"
        )
    if keys is None:
        raise InvalidInput("delete: give the keys of the rows to delete, such as keys={'id': 7}")
    return keys
