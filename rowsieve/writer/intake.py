"""The queue of a writer's calls, with its limit on what is buffered, and its pauses.

Callers put calls in; one thread takes all that wait, as one group. What is in the queue and in
memtables counts as buffered: above the limit, callers wait.
"""

from __future__ import annotations

import os
import threading
from collections import deque

from rowsieve.errors import WriterClosed
from rowsieve.writer.queued_calls import QueuedCall

GROUP_ROWS = 50_000
"""Rows of a group: the calls behind them wait for the next one."""


class Intake:
    """Calls that wait. Thread-safe."""

    def __init__(self, max_buffered: int) -> None:
        self._changed = threading.Condition()
        self._calls: deque[QueuedCall] = deque()
        self._max_buffered = max_buffered
        self._buffered = 0
        self._process_id = os.getpid()
        self._failure: BaseException | None = None
        self._is_busy = False
        self._pauses = 0
        self._is_closed = False

    @property
    def is_inherited(self) -> bool:
        """True in a process that was forked from the writer's."""
        return os.getpid() != self._process_id

    @property
    def buffered(self) -> int:
        """Rows in the queue and in memtables."""
        return self._buffered

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the writer."""
        return self._failure

    def check(self) -> None:
        """Raise the error of a writer that takes no calls: it failed, was closed, or inherited."""
        if self.is_inherited:
            raise WriterClosed(
                f"this writer belongs to the process {self._process_id}, from which this one was "
                "forked; open the table and a writer with another wal_dir= here"
            )
        if self._failure is not None:
            raise self._failure
        if self._is_closed:
            raise WriterClosed("the writer is closed; open another one by Table.writer")

    def put(self, call: QueuedCall, *, waits: bool = True) -> bool:
        """Add a call; above the limit wait, or return False."""
        self.check()
        with self._changed:
            while self._buffered and self._buffered + call.rows > self._max_buffered:
                if not waits:
                    return False
                self._changed.wait()
                self.check()
            self.check()
            self._buffered += call.rows
            self._calls.append(call)
            if len(self._calls) == 1:
                self._changed.notify_all()
        return True

    def take(self, timeout_s: float | None) -> list[QueuedCall] | None:
        """Wait for calls and return those of a group, maybe none; None once nothing will come."""
        with self._changed:
            self._is_busy = False
            self._changed.notify_all()
            if not self._calls or self._pauses:
                if self._is_closed and not self._calls:
                    return None
                if self._failure is not None:
                    return None
                self._changed.wait(timeout_s)
            if self._pauses or self._failure is not None:
                return []
            group: list[QueuedCall] = []
            rows = 0
            while self._calls and rows < GROUP_ROWS:
                group.append(self._calls.popleft())
                rows += group[-1].rows
            self._is_busy = bool(group)
            return group

    def release(self, rows: int) -> None:
        """Count rows as no longer buffered."""
        with self._changed:
            self._buffered -= rows
            self._changed.notify_all()

    def count(self, rows: int) -> None:
        """Count rows that were recovered as buffered."""
        with self._changed:
            self._buffered += rows

    def wake(self) -> None:
        """Let `take` return, if only without calls."""
        with self._changed:
            self._changed.notify_all()

    def drain(self) -> None:
        """Wait until no call waits, and none is being worked on."""
        with self._changed:
            while (self._calls or self._is_busy) and self._failure is None:
                self._changed.wait()
            if self._failure is not None:
                raise self._failure

    def pause(self) -> None:
        """Let calls wait until `resume`, once those of a group are done."""
        with self._changed:
            self._pauses += 1
            while self._is_busy and self._failure is None:
                self._changed.wait()

    def resume(self) -> None:
        """End a pause."""
        with self._changed:
            self._pauses -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Take no more calls; those that wait are still done."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """End the writer: all calls that wait and all later ones fail with this error (rule 21)."""
        with self._changed:
            self._failure = self._failure or error
            waiting = list(self._calls)
            self._calls.clear()
            self._changed.notify_all()
        for call in waiting:
            call.acknowledgement.complete(0, error)
