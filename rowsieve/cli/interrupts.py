"""What Ctrl-C does to a command: before it begins, while it runs, and after it has ended.

While a command runs Ctrl-C raises KeyboardInterrupt, as ever, and the command says what it has
committed. Before and after that nothing may raise: modules are being imported, or the interpreter
is going down, and a KeyboardInterrupt there would be a traceback. So the process leaves at once.

This module imports next to nothing, so that it comes first.
"""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any, Final

INTERRUPTED: Final = 130

_is_ours: list[bool] = []  # whether Ctrl-C of this process is ours to handle


def leave_on_interrupt(told: str) -> None:
    """From now on Ctrl-C ends the process at once, with one line on stderr.

    Not where Ctrl-C is ignored, as for a command in the background.
    """
    if not _is_ours:
        _is_ours.append(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    if _is_ours[0]:
        signal.signal(signal.SIGINT, partial(_leave, f"rowsieve: interrupted: {told}\n".encode()))


def raise_on_interrupt() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt."""
    if _is_handled():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_on_interrupt(told: str) -> None:
    """The same as `leave_on_interrupt`, if that was in force when the command began."""
    if _is_handled():
        leave_on_interrupt(told)


def _is_handled() -> bool:
    return bool(_is_ours and _is_ours[0])


def _leave(line: bytes, *_: Any) -> None:
    try:
        os.write(2, line)
    finally:
        os._exit(INTERRUPTED)
