"""Calls of the file system: recorded in order, and one of them meets a fault."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

import pytest

from tests.faults.vocabulary import Crash, Fault

WRITING: Final = ("fsync", "link", "unlink", "mkdir", "write")
"""The calls of `os` by which something reaches the disk."""

ERRORS: Final = {Fault.NO_SPACE: errno.ENOSPC, Fault.IO_ERROR: errno.EIO}


class FileCalls:
    """Records calls of `os` by name and target; the `fail_at`-th of them (from 0) meets the fault.

    A call that meets one has no effect. Once one has died, the process is dead, and no later one
    has an effect. `names` are the calls that are recorded and counted.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        fault: Fault = Fault.CRASH_BEFORE,
        fail_at: int = -1,
        names: Collection[str] = WRITING,
    ) -> None:
        self.log: list[tuple[str, str]] = []
        self.failed: str | None = None
        """The target of the call that met the fault."""
        self._fault, self._fail_at = fault, fail_at
        self._is_dead = False
        for name in names:
            patch.setattr(os, name, self._recording(name, getattr(os, name)))

    @property
    def targets(self) -> list[str]:
        """The targets of all calls."""
        return [target for _, target in self.log]

    def _recording(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **options: Any) -> Any:
            target = args[1] if name == "link" else args[0]
            if isinstance(target, int):
                target = Path(f"/proc/self/fd/{target}").readlink()
            if self._is_dead:
                raise Crash(self._fault.value)
            self.log.append((name, str(target)))
            if len(self.log) - 1 == self._fail_at:
                self.failed = str(target)
                if (number := ERRORS.get(self._fault)) is None:
                    self._is_dead = True
                    raise Crash(self._fault.value)
                raise OSError(number, os.strerror(number))
            return call(*args, **options)

        return recorded
