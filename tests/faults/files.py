"""Calls of the file system: recorded in order, and one of them meets a fault."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from tests.faults.rules import Rules
from tests.faults.vocabulary import Crash, Fault

WRITING: Final = ("fsync", "link", "unlink", "mkdir", "write")
"""The calls of `os` by which something reaches the disk."""

_OF_OS: Final = {"create": "open"}

ERRORS: Final = {
    Fault.NO_SPACE: errno.ENOSPC,
    Fault.HALF_WRITTEN: errno.ENOSPC,
    Fault.IO_ERROR: errno.EIO,
    Fault.OVER_QUOTA: errno.EDQUOT,
    Fault.READ_ONLY: errno.EROFS,
    Fault.NOT_PERMITTED: errno.EACCES,
    Fault.NO_LINKS: errno.EPERM,
    Fault.TOO_LARGE: errno.EFBIG,
    Fault.NO_DESCRIPTOR: errno.EMFILE,
}


class FileCalls(Rules):
    """Records calls of `os` by name and target; the `fail_at`-th of them (from 0) meets the fault.

    A call that meets one has no effect. Once one has died, the process is dead, and no later one
    has an effect. `names` are the calls that are recorded and counted; an `open` that may create a
    file is called "create". `meet_where` names the calls by their name and target instead.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        fault: Fault = Fault.CRASH_BEFORE,
        fail_at: int = -1,
        names: Collection[str] = WRITING,
    ) -> None:
        super().__init__()
        self.log: list[tuple[str, str]] = []
        self.failed: str | None = None
        """The target of the call that met the fault."""
        self._fault, self._fail_at = fault, fail_at
        self._is_dead = False
        for name in names:
            of_os = _OF_OS.get(name, name)
            patch.setattr(os, of_os, self._recording(of_os, getattr(os, of_os)))

    @property
    def targets(self) -> list[str]:
        """The targets of all calls."""
        return [target for _, target in self.log]

    def _recording(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **options: Any) -> Any:
            place = args[1] if name == "link" else args[0]
            target = str(Path(f"/proc/self/fd/{place}").readlink() if type(place) is int else place)
            if self._is_dead:
                raise Crash(self._fault.value)
            called = "create" if name == "open" and args[1] & os.O_CREAT else name
            self.log.append((called, target))
            is_numbered = len(self.log) - 1 == self._fail_at
            fault = self._fault if is_numbered else self._ruled(called, target)
            if fault is not None:
                self.failed = target
                self._fail(fault, None if type(place) is int else target)
            return call(*args, **options)

        return recorded

    def _fail(self, fault: Fault, path: str | None) -> NoReturn:
        if (number := ERRORS.get(fault)) is None:
            self._is_dead = True
            raise Crash(fault.value)
        raise OSError(number, os.strerror(number), path)


def write_halves(patch: pytest.MonkeyPatch, fits: Callable[[Path], bool]) -> None:
    """Let `Path.write_bytes` meet HALF_WRITTEN at the files that fit."""
    write = Path.write_bytes

    def written(file: Path, data: bytes) -> int:
        if not fits(file):
            return write(file, data)
        write(file, data[: len(data) // 2])
        number = ERRORS[Fault.HALF_WRITTEN]
        raise OSError(number, os.strerror(number))

    patch.setattr(Path, "write_bytes", written)
