"""Faults of stores: one call of one store meets a fault, or a process dies at a change of any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import pytest

from rowsieve.errors import RowsieveError, StoreError
from rowsieve.objects import (
    LocalStore,
    NotCreated,
    ObjectExists,
    ObjectStore,
    RemoteStore,
    SyncFailed,
)
from tests.faults.rules import Rules
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

CAUSES: Final[Mapping[Fault, str]] = {
    Fault.DENIED: "denied",
    Fault.EXPIRED_TOKEN: "expired",
    Fault.THROTTLED: "throttled",
    Fault.REFUSED: "unsupported",
    Fault.SKEWED_CLOCK: "skewed_clock",
    Fault.ELSEWHERE: "region",
    Fault.SERVER_ERROR: "server",
    Fault.RESET: "reset",
    Fault.NO_CREDENTIALS: "no_credentials",
    Fault.UNKNOWN_HOST: "unknown_host",
    Fault.BAD_CERTIFICATE: "certificate",
}
"""The causes that errors of stores name."""

OF_PUTS: Final = frozenset(
    (
        Fault.EXISTS_BEFORE,
        Fault.EXISTS_AFTER,
        Fault.UNCONDITIONAL,
        Fault.NO_SPACE,
        Fault.IO_ERROR,
    )
)
"""Faults that other calls than puts do not meet."""


class FaultyStore(Rules):
    """Passes calls on to a store; the `fail_at`-th one (from 0) meets the fault.

    Once a call has died, the process is dead, and no later call does anything. `meet_where` names
    the calls that meet a fault by their method and path instead.
    """

    def __init__(self, store: ObjectStore, fault: Fault | None = None, fail_at: int = -1) -> None:
        super().__init__()
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

        def call(*args: Any, **options: Any) -> Any:
            if self._is_dead:
                raise Crash
            number, path = len(self.calls), str(args[0]) if args else ""
            self.calls.append((name, path))
            fault = self._fault if number == self._fail_at else self._ruled(name, path)
            if fault is None or (fault in OF_PUTS and name != "put_new"):
                return method(*args, **options)
            self.failed = self.calls[-1]
            self._is_dead = fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
            return _met(fault, lambda: method(*args, **options), path)

        return call


class RemoteFaultyStore(FaultyStore):
    """As if the store was across a network: damaged answers are read again."""

    @property
    def overlaps(self) -> bool:
        return True


class EveryStore(Rules):
    """Lets all stores of a class meet what the rules name: also those that the code opens."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        kind: type[LocalStore | RemoteStore],
        names: Sequence[str] = ("put_new", "put_hint", "get", "get_range", "delete"),
    ) -> None:
        super().__init__()
        for name in names:
            patch.setattr(kind, name, self._meeting(name, getattr(kind, name)))

    def _meeting(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(store: ObjectStore, *args: Any, **options: Any) -> Any:
            path = str(args[0]) if args else ""
            if (fault := self._ruled(name, path)) is None:
                return method(store, *args, **options)
            return _met(fault, lambda: method(store, *args, **options), path)

        return call


def _met(fault: Fault, call: Callable[[], Any], path: str) -> Any:
    """The answer of a call that meets a fault, or its error."""
    if fault is Fault.TRUNCATED:
        return call()[:-1]
    if fault is Fault.UNCONDITIONAL:
        with suppress(ObjectExists):
            call()
        return None
    if fault in APPLIED:
        with suppress(RowsieveError):
            call()
    raise _error_of(fault, path)


def _error_of(fault: Fault, path: str) -> BaseException:
    match fault:
        case Fault.CRASH_BEFORE | Fault.CRASH_AFTER:
            return Crash(fault.value)
        case Fault.EXISTS_BEFORE | Fault.EXISTS_AFTER:
            return ObjectExists(fault.value, path=path)
        case Fault.NO_SPACE:
            return NotCreated(fault.value)
        case Fault.IO_ERROR:
            return SyncFailed(fault.value, path=path, is_visible=True)
        case _:
            return StoreError(fault.value, path=path, cause=CAUSES.get(fault))


class MortalProcess:
    """Dies at the n-th call (from 0) that changes any store; no later call changes one.

    `fault`: CRASH_BEFORE, CRASH_AFTER or CRASH_WITHIN.
    """

    def __init__(self, patch: pytest.MonkeyPatch, fault: Fault, dies_at: int) -> None:
        self.is_dead = False
        self._fault, self._left = fault, dies_at
        for name in ("put_new", "delete"):
            patch.setattr(RemoteStore, name, self._dying(name, getattr(RemoteStore, name)))

    def _dying(self, name: str, method: Callable[..., None]) -> Callable[..., None]:
        def call(store: RemoteStore, *args: Any) -> None:
            if self.is_dead:
                raise Crash(self._fault.value)
            self._left -= 1
            if self._left >= 0:
                method(store, *args)
                return
            self.is_dead = True
            if self._fault is Fault.CRASH_AFTER:
                method(store, *args)
            elif self._fault is Fault.CRASH_WITHIN and name == "delete":
                method(store, list(args[0])[::2])
            raise Crash(self._fault.value)

        return call
