"""Maintenance in a thread, with a handle to stop it, wait for it, and see its error.

The thread is a daemon: it ends with the process, and what it wrote but did not commit is removed
as orphans later. A fork of the process has the handle but no thread; there it counts as ended.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from rowsieve.compaction.pace import Pace, Stopped
from rowsieve.errors import UnsupportedOperation
from rowsieve.threads import in_context

T = TypeVar("T")


class Background(Generic[T]):
    """Work that runs in a thread of its own; `work` ends at the next batch after `pace.stop`."""

    def __init__(self, work: Callable[[], T], pace: Pace) -> None:
        self._pace = pace
        self._process = os.getpid()
        self._result: T | None = None
        self._error: BaseException | None = None
        self._was_stopped = False
        self._thread = threading.Thread(
            target=in_context(self._run, work), name="rowsieve-maintenance", daemon=True
        )
        self._thread.start()

    def __repr__(self) -> str:
        return f"<rowsieve.Background: {self.state}>"

    @property
    def state(self) -> str:
        """running, done, stopped, failed, or forked in a child of its process."""
        if os.getpid() != self._process:
            return "forked"
        if self._thread.is_alive():
            return "running"
        if self._error is not None:
            return "failed"
        return "stopped" if self._was_stopped else "done"

    @property
    def error(self) -> BaseException | None:
        """The error that ended the work; None while it runs, and if it ended well."""
        return self._error

    def stop(self) -> None:
        """Ask the work to end at its next batch; what it has committed stays. Does not wait."""
        self._pace.stop()

    def wait(self, timeout_s: float | None = None) -> T | None:
        """Wait for the end and return the result; None if it was stopped, or still runs.

        An error of the work is raised here, too.
        """
        if os.getpid() != self._process:
            raise UnsupportedOperation(
                "wait: this process is a fork of the one that runs the maintenance; wait there"
            )
        self._thread.join(timeout_s)
        if self._error is not None:
            raise self._error
        return self._result

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._result = work()
        except Stopped:
            self._was_stopped = True
        except BaseException as error:  # reported by `wait` and `error`
            self._error = error
