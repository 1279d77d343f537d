"""Procedures whose tasks meet a fault; Spark's workers import them from here.

What happened is noted by empty files in a folder that the driver and all workers see.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.checksums import checksum
from rowsieve.errors import StoreError
from rowsieve.procedures.built_ins.rewrite_data_files import RewriteDataFiles
from rowsieve.procedures.procedure import CallContext, DistributedProcedure, Handle
from rowsieve.statements.call_values import Value
from tests.faults.marks import PATIENCE_S, is_first, wait_for
from tests.faults.vocabulary import Fault

Fragments: TypeAlias = Sequence[Sequence[bytes]]


class Faulty(DistributedProcedure):
    """A procedure whose tasks call `fault` after they have done their work, before they report."""

    def __init__(self, marks: Path, inner: DistributedProcedure | None = None) -> None:
        self.marks, self.inner = marks, inner or RewriteDataFiles()
        self.name, self.parameters = self.inner.name, self.inner.parameters
        self.columns = self.inner.columns

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """Begin what goes wrong."""
        return self.inner.begin(context, arguments)

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Write the files of the task, go wrong, and report."""
        found = list(self.inner.work(task, storage_options))
        self.fault(task, storage_options)
        yield from found

    def commit_stage(
        self, context: CallContext, handle: Handle, number: int, fragments: Fragments
    ) -> None:
        """Commit a stage."""
        self.inner.commit_stage(context, handle, number, fragments)

    def stage_failed(self, handle: Handle, number: int) -> None:
        """Note it."""
        self.inner.stage_failed(handle, number)

    def finish(self, context: CallContext, handle: Handle, fragments: Fragments) -> pa.Table:
        """Commit."""
        return self.inner.finish(context, handle, fragments)

    def fault(self, task: bytes, storage_options: StorageOptions) -> None:
        """Go wrong."""
        raise NotImplementedError

    def first(self, name: str) -> bool:
        """Whether this is the first call with the name, in any process."""
        return is_first(self.marks / name)

    def wait_for(self, name: str) -> bool:
        """Wait until something has happened; False if it did not."""
        return wait_for(self.marks / name)


class FailingOnce(Faulty):
    """Every task fails in its first attempt, or in several, after it has written its files."""

    def __init__(
        self, marks: Path, inner: DistributedProcedure | None = None, *, attempts: int = 1
    ) -> None:
        super().__init__(marks, inner)
        self._attempts = attempts

    def fault(self, task: bytes, storage_options: StorageOptions) -> None:
        """Fail at the first attempts of the task."""
        name = checksum(task)
        if any(self.first(f"{name}.{attempt}") for attempt in range(self._attempts)):
            raise StoreError(Fault.TASK_FAILED.value)


class FailingRuns(Faulty):
    """Those runs of tasks fail, counted over all jobs of this process, that have these numbers."""

    def __init__(self, numbers: Container[int]) -> None:
        super().__init__(Path())
        self._numbers, self._count = numbers, itertools.count()

    def fault(self, task: bytes, storage_options: StorageOptions) -> None:
        """Fail if it is the turn of one of the numbers."""
        if next(self._count) in self._numbers:
            raise StoreError(Fault.TASK_FAILED.value)


class DyingOnce(Faulty):
    """The Python process of every task is killed once."""

    def fault(self, task: bytes, storage_options: StorageOptions) -> None:
        """Die at the first attempt of the task."""
        if self.first(checksum(task)):
            os.kill(os.getpid(), signal.SIGKILL)


class KillingExecutor(Faulty):
    """One task kills the executor that runs it."""

    def fault(self, task: bytes, storage_options: StorageOptions) -> None:
        """Kill the executor, once in the whole call."""
        if self.first("killed"):
            os.kill(executor_of_this_task(), signal.SIGKILL)
            time.sleep(PATIENCE_S)  # the worker process ends with its executor


class Zombie(Faulty):
    """One task outlives its executor, and writes its files once more after the commit."""

    def fault(self, task: bytes, storage_options: StorageOptions) -> None:
        """Lose the executor, once in the whole call, and go on without it."""
        if not self.first("killed"):
            return
        executor = executor_of_this_task()
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.kill(executor, signal.SIGKILL)
        if self.wait_for("cleaned"):
            list(self.inner.work(task, storage_options))
            self.first("risen")


class Slow(Faulty):
    """The first attempt of one task waits until another attempt has written its files, too."""

    def fault(self, task: bytes, storage_options: StorageOptions) -> None:
        """Wait for the speculative attempt; then both report."""
        if self.first("slow"):
            self.first(f"slow-{checksum(task)}")
            self.wait_for("speculated")
        elif (self.marks / f"slow-{checksum(task)}").exists():
            self.first("speculated")


class Endless(Faulty):
    """Every task waits until it is cancelled."""

    def fault(self, task: bytes, storage_options: StorageOptions) -> None:
        """Say that a task waits, and wait."""
        self.first("waiting")
        time.sleep(PATIENCE_S)


class DyingDriver(Faulty):
    """The driver is killed in `finish`, before or after the commit."""

    def __init__(self, inner: DistributedProcedure, *, after: bool) -> None:
        super().__init__(Path(), inner)
        self._after = after

    def fault(self, task: bytes, storage_options: StorageOptions) -> None:
        """Let the tasks go well."""

    def finish(self, context: CallContext, handle: Handle, fragments: Fragments) -> pa.Table:
        """Commit, or not, and die."""
        if self._after:
            super().finish(context, handle, fragments)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("the process is dead")


def executor_of_this_task() -> int:
    """The process of the executor: the parent of the daemon that forked this worker."""
    status = Path(f"/proc/{os.getppid()}/status").read_text("utf-8")
    found = int(status.partition("PPid:")[2].split()[0])
    command = Path(f"/proc/{found}/cmdline").read_bytes()
    if b"CoarseGrainedExecutorBackend" not in command:
        raise RuntimeError(f"process {found} is no executor: {command[:80]!r}")
    return found


SURVIVED: Final[Mapping[Fault, type[Any]]] = {
    Fault.TASK_FAILED: FailingOnce,
    Fault.TASK_KILLED: DyingOnce,
    Fault.EXECUTOR_KILLED: KillingExecutor,
    Fault.ZOMBIE: Zombie,
    Fault.SPECULATED: Slow,
}
"""The faults that a call on a cluster survives."""
