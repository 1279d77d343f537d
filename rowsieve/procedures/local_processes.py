"""Processes of this machine that run tasks for `LocalEngine`.

They start as new processes and import what they need, so they share no lock and no thread with this
process. They get its `Config`, such as the memory of a read. `multiprocessing` pickles only the
procedure and the task for them, never stored data.
Soundness: a task whose process dies gives no report, so nothing is committed.
"""

from __future__ import annotations

from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.reduction import ForkingPickler
from typing import TypeAlias

import pyarrow as pa

from rowsieve import errors
from rowsieve.arguments.annotations import StorageOptions
from rowsieve.config import configure, current
from rowsieve.errors import CallCancelled, InvalidInput, RowsieveError
from rowsieve.flags.rollout import Flags
from rowsieve.procedures.procedure import DistributedProcedure
from rowsieve.procedures.task_reports import run_task


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of ours in another process: its class, the bases of that, and its message."""

    names: tuple[str, ...]
    message: str

    @classmethod
    def of(cls, error: RowsieveError) -> Failure:
        """Reduce an error to what is sent; `pickle` cannot rebuild some errors."""
        return cls(tuple(kind.__name__ for kind in type(error).__mro__), str(error))

    def error(self) -> RowsieveError:
        """The error by the first of its classes that is public and needs only the message."""
        for name in self.names:
            kind = getattr(errors, name, None)
            with suppress(TypeError):
                if isinstance(kind, type) and issubclass(kind, RowsieveError):
                    return kind(self.message)
        return RowsieveError(self.message)


Outcome: TypeAlias = pa.RecordBatch | Failure


def process_pool(procedure: DistributedProcedure, count: int) -> ProcessPoolExecutor:
    """Processes that can run the procedure's tasks; InvalidInput if it cannot be sent to them."""
    try:
        ForkingPickler.dumps(procedure)
    except Exception as error:
        raise InvalidInput(
            f"LocalEngine(processes=…) cannot send {procedure.name} to another process: {error}; "
            "define its class in a module, or use threads"
        ) from error
    # reports are of tables, which tasks do not open, and the coordinator resolves the flags
    config = replace(current(), reporter=None, flags=Flags())
    return ProcessPoolExecutor(count, get_context("spawn"), configure, (config,))


def run_apart(
    procedure: DistributedProcedure,
    number: int,
    task: bytes,
    attempt: str,
    storage_options: StorageOptions,
) -> Outcome:
    """Run a task in this process for the coordinator's process."""
    try:
        return run_task(procedure, number, task, attempt, storage_options)
    except RowsieveError as error:
        return Failure.of(error)


def report_of(future: Future[Outcome]) -> pa.RecordBatch:
    """The report of a task; raises its error."""
    try:
        outcome = future.result()
    except BrokenProcessPool as error:
        raise CallCancelled(
            "a process of LocalEngine ended before its task was done, as one does that gets no "
            "more memory; nothing was committed. Call it again, with fewer processes"
        ) from error
    if isinstance(outcome, Failure):
        raise outcome.error()
    return outcome
