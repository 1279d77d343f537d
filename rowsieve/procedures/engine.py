"""The protocol of an engine that runs tasks, and the engine of this process.

Engines differ only in where they run `run_task`; a task and its report are the same everywhere.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Protocol, runtime_checkable

import pyarrow as pa

from rowsieve.arguments import checked
from rowsieve.arguments.annotations import Progress, StorageOptions
from rowsieve.errors import CallCancelled, InvalidInput
from rowsieve.objects.storage_options import options_elsewhere
from rowsieve.predicate.semantics import Semantics
from rowsieve.procedures.local_processes import process_pool, report_of, run_apart
from rowsieve.procedures.procedure import DistributedProcedure
from rowsieve.procedures.task_reports import run_task
from rowsieve.table import Table
from rowsieve.threads import Threads
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class Job:
    """The tasks of one call; at most `max_concurrent` run at a time.

    `description` is for the engine's own display; `table_uri` is the table that tasks open.
    """

    procedure: DistributedProcedure
    tasks: Sequence[bytes]
    storage_options: StorageOptions = field(repr=False)  # may contain secrets
    description: str
    max_concurrent: int | None = None
    table_uri: str = ""


class Engine(Protocol):
    """Runs the tasks of a job."""

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Run all tasks; yield the report of each, in any order, possibly more than once."""

    def cancel(self) -> None:
        """Stop running tasks as soon as possible; `run` then raises CallCancelled.

        May be called from any thread; does nothing if no job runs.
        """

    def tell(self, done: int, total: int) -> None:
        """Report the progress of work on the coordinator, like that of tasks."""


@runtime_checkable
class ReadsText(Protocol):
    """An engine with a session whose settings decide the meaning of SQL text of its dialect."""

    @property
    def dialect(self) -> str:
        """The dialect of the session's SQL."""

    @property
    def time_zone(self) -> str:
        """The time zone that the session has now."""

    def semantics_of(self, text: str, schema: Schema) -> Semantics:
        """The semantics of a condition on a table, by the settings that the session has now."""


@runtime_checkable
class KnowsBatch(Protocol):
    """An engine that may call again what it has called, and knows by which token."""

    def batch_token(
        self, table: Table, operation: str
    ) -> AbstractContextManager[tuple[str, int] | None]:
        """The token of a call in the function of a batch of a stream; None outside of one."""


class LocalEngine:
    """Runs tasks in threads of this process, or in processes of this machine.

    At most that many tasks are in memory at a time. Processes pay off where a task computes in
    Python; each job starts new ones, which takes a second, and a script that uses them needs `if
    __name__ == "__main__"`.
    """

    @checked
    def __init__(
        self,
        threads: int | None = None,
        progress: Progress | None = None,
        *,
        processes: int | None = None,
    ) -> None:
        for name, count in (("threads", threads), ("processes", processes)):
            if count is not None and count < 1:
                raise InvalidInput(f"{name} must be at least 1, or None, got {count}")
        if threads is not None and processes is not None:
            raise InvalidInput("LocalEngine takes threads or processes, not both; give one")
        self._count = processes or threads or os.cpu_count() or 1
        self._apart = processes is not None
        self._progress = progress
        self._cancelled = Event()

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Run all tasks; the first failure stops those that have not begun."""
        self._cancelled.clear()
        count = min(self._count, job.max_concurrent or self._count)
        count = min(count, len(job.tasks)) or 1
        options = options_elsewhere(job.storage_options) if self._apart else job.storage_options
        with process_pool(job.procedure, count) if self._apart else _thread_pool(count) as pool:
            run_one = partial(run_apart, job.procedure) if self._apart else partial(self._run, job)
            futures = [
                pool.submit(run_one, number, task, uuid.uuid4().hex, options)
                for number, task in enumerate(job.tasks)
            ]
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    yield report_of(future)
                    self._check()
                    self.tell(done, len(futures))
            finally:
                for future in futures:
                    future.cancel()

    def cancel(self) -> None:
        """Let no further task begin."""
        self._cancelled.set()

    def tell(self, done: int, total: int) -> None:
        """Call `progress` unless it is None."""
        if self._progress is not None:
            self._progress(done, total)

    def _run(
        self, job: Job, number: int, task: bytes, attempt: str, storage_options: StorageOptions
    ) -> pa.RecordBatch:
        self._check()
        return run_task(job.procedure, number, task, attempt, storage_options)

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise CallCancelled("the call was cancelled; nothing was committed")


def _thread_pool(count: int) -> Executor:
    return Threads(count, "rowsieve-procedure")
