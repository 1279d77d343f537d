"""A store that passes calls on to another one and lets one of them meet a fault."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from rowsieve.errors import RowsieveError, StoreError
from rowsieve.objects import NotCreated, ObjectExists, ObjectStore, SyncFailed
from tests.faults.vocabulary import Crash, Fault

APPLIED: Final = frozenset(
    (
        Fault.CRASH_AFTER,
        Fault.LOST_ANSWER,
        Fault.EXISTS_AFTER,
        Fault.IO_ERROR,
    )
)
"""Faults that come once the call has had its effect."""

OF_PUTS: Final = frozenset(
    (Fault.EXISTS_BEFORE, Fault.EXISTS_AFTER, Fault.NO_SPACE, Fault.IO_ERROR)
)
"""Faults that other calls than puts do not meet."""


class FaultyStore:
    """Passes calls on to a store; the `fail_at`-th one (from 0) meets the fault.

    Once a call has died, the process is dead, and no later call does anything.
    """

    def __init__(self, store: ObjectStore, fault: Fault | None = None, fail_at: int = -1) -> None:
        self._store = store
        self._fault = fault
        self._fail_at = fail_at
        self._is_dead = False
        self.calls: list[tuple[str, str]] = []
        self.failed: tuple[str, str] | None = None

    @property
    def uri(self) -> str:
        return self._store.uri

    @property
    def overlaps(self) -> bool:
        return self._store.overlaps

    def meet(self, fault: Fault, calls_later: int) -> None:
        """Let the call after so many others meet a fault."""
        self._fault, self._fail_at = fault, len(self.calls) + calls_later

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)

        def call(*args: Any) -> Any:
            if self._is_dead:
                raise Crash
            number, path = len(self.calls), str(args[0]) if args else ""
            self.calls.append((name, path))
            fault = self._fault
            if number != self._fail_at or fault is None:
                return method(*args)
            if fault in OF_PUTS and name != "put_new":
                return method(*args)
            self.failed = self.calls[-1]
            if fault in APPLIED:
                with suppress(RowsieveError):
                    method(*args)
            raise self._error_of(fault, path)

        return call

    def _error_of(self, fault: Fault, path: str) -> BaseException:
        match fault:
            case Fault.CRASH_BEFORE | Fault.CRASH_AFTER:
                self._is_dead = True
                return Crash(fault.value)
            case Fault.EXISTS_BEFORE | Fault.EXISTS_AFTER:
                return ObjectExists(fault.value, path=path)
            case Fault.NO_SPACE:
                return NotCreated(fault.value)
            case Fault.IO_ERROR:
                return SyncFailed(fault.value, path=path, is_visible=True)
            case _:
                return StoreError(fault.value)
