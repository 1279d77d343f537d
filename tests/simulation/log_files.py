"""Writers in a simulation: their threads, and calls on the files of their log as steps of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from rowsieve.writer import compacting, intake, logged, table_writer
from rowsieve.writer.table_writer import Writer
from rowsieve.writer.wal import Wal
from rowsieve.writer.wal_owner import LOCK
from tests.faults.files import ERRORS
from tests.faults.vocabulary import Fault
from tests.simulation.bucket import SimulatedStore
from tests.simulation.processes import SimulatedProcess
from tests.simulation.scheduler import (
    Scheduler,
    SimulatedCondition,
    SimulatedEvent,
    SimulatedThread,
    current_task,
)

CALLS: Final = ("pwrite", "write", "fsync", "link", "unlink", "replace", "ftruncate", "mkdir")
ON_LOG: Final = (Fault.NO_SPACE, Fault.IO_ERROR)
_CALLERS: Final = (compacting, intake, logged, table_writer)


class OpenWriters:
    """Logs that processes have opened. The interpreter keeps the locks of those that have died."""

    def __init__(self) -> None:
        self._logs: list[tuple[SimulatedProcess, Wal]] = []

    def note(self, process: SimulatedProcess, writer: Writer) -> None:
        """Note a writer of a process."""
        path: Any = writer._path
        self._logs.append((process, path._wal))

    def has_one(self, process: object) -> bool:
        """Whether the process has opened a log."""
        return any(each is process for each, _ in self._logs)

    def give_up_locks(self, directory: Path, *, of_living: bool = False) -> None:
        """Release the locks of dead processes; `of_living`: and let the others lose theirs."""
        for process, log in self._logs:
            if process.is_dead:
                log.abandon()
        if of_living:
            with suppress(FileNotFoundError):
                (directory / LOCK).unlink()


@contextmanager
def steps_on_log_files(scheduler: Scheduler, folder: Path) -> Iterator[None]:
    """Let calls of `os` below a folder be requests of their process, and threads tasks."""

    def thread(*, target: Callable[[], object], **_: object) -> SimulatedThread:
        return SimulatedThread(scheduler, target)

    names = SimpleNamespace(
        Thread=thread,
        Event=lambda: SimulatedEvent(scheduler),
        Condition=lambda: SimulatedCondition(scheduler),
        local=threading.local,
        current_thread=current_task,
    )
    with pytest.MonkeyPatch.context() as patch:
        for module in _CALLERS:
            patch.setattr(module, "threading", names)
        for name in CALLS:
            patch.setattr(os, name, _stepping(name, getattr(os, name), folder))
        yield


def _stepping(name: str, call: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    def stepped(*args: Any, **options: Any) -> Any:
        place: Any = args[0]
        task = current_task()
        if task is not None:
            if isinstance(place, int):
                place = Path(f"/proc/self/fd/{place}").readlink()
            if Path(place).is_relative_to(folder):
                _request(task.process, name, Path(place).relative_to(folder))
                if name == "fsync":  # processes die, the machine goes on
                    return None
        return call(*args, **options)

    return stepped


def _request(process: Any, name: str, path: Path) -> None:
    store = process.store
    assert isinstance(store, SimulatedStore)
    fault = store._request(name, str(path), ON_LOG if name in ("pwrite", "fsync") else ())
    if fault is not None:
        raise OSError(ERRORS[fault], os.strerror(ERRORS[fault]))
