"""A program in a pseudo-terminal: what is typed, and what it shows."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

PATIENCE_S: Final = 60.0
AGAIN_AFTER_S: Final = 5.0
_STYLES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x07")


class Terminal:
    """Runs a program until the block ends, and kills it then; `exit_code` waits for its end."""

    def __init__(self, command: list[str], env: Mapping[str, str]) -> None:
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` of the tests ignores it
            os.execvpe(command[0], command, {**env, "TERM": "dumb"})
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._terminal)

    def type(self, text: str) -> None:
        """Type the text."""
        os.write(self._terminal, text.encode())

    def shows(self, text: str, patience_s: float = PATIENCE_S) -> str:
        """Wait until the program shows this text; return what it showed up to there."""
        until = time.monotonic() + patience_s
        while text not in self._shown:
            if not self._read(until):
                raise AssertionError(f"{text!r} is not shown: {self._shown!r}")
        before, _, self._shown = self._shown.partition(text)
        return before + text

    def shows_after(self, signal_it: Callable[[], object], text: str) -> None:
        """Send a signal until the program shows this text.

        Python's `input` handles no signal that comes after it read a key and before it waits
        for the next one.
        """
        for _ in range(int(PATIENCE_S / AGAIN_AFTER_S)):
            signal_it()
            with suppress(AssertionError):
                self.shows(text, AGAIN_AFTER_S)
                return
        raise AssertionError(f"{text!r} is not shown: {self._shown!r}")

    def exit_code(self) -> int:
        """Wait for the end of the program; the negative signal if one ended it."""
        while self._read(time.monotonic() + PATIENCE_S):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self, until: float) -> bool:
        """Read what is shown; False at the end of the program, or when the time is over."""
        waiting = select.poll()  # select.select takes no descriptor above 1,023
        waiting.register(self._terminal, select.POLLIN)
        if not waiting.poll(1000 * max(0, until - time.monotonic())):
            return False
        try:
            data = os.read(self._terminal, 65_536)
        except OSError:  # the program has ended
            return False
        self._shown += _STYLES.sub("", data.decode(errors="replace"))
        return bool(data)
