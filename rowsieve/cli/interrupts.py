"""Handles Ctrl-C before a command begins, while it runs, and after it has ended.

While a command runs, Ctrl-C raises KeyboardInterrupt, and the command reports what it has
committed. During an import, the exception is delayed until the import ends, because C modules
convert it to another error. A callback may lose it, so it is raised again. Before and after a
command, Ctrl-C ends the process at once: a KeyboardInterrupt during imports or during shutdown of
the interpreter would print a traceback.

This module imports very little, so that it can be imported first.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from types import FrameType
from typing import Any, Final

INTERRUPTED: Final = 130
_LATER_S: Final = 0.02
_HAS_TIMERS: Final = hasattr(signal, "setitimer")

_is_ours: list[bool] = []  # whether we may handle Ctrl-C in this process
_came: list[bool] = []


def leave_on_interrupt(told: str) -> None:
    """From now on, Ctrl-C ends the process at once, with one line on stderr.

    Does nothing if the process ignores Ctrl-C, as a background command does.
    """
    if not _is_ours:
        _is_ours.append(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    if _is_ours[0]:
        _remind(0)
        signal.signal(signal.SIGINT, partial(_leave, f"rowsieve: interrupted: {told}\n".encode()))


def raise_on_interrupt() -> None:
    """From now on, Ctrl-C raises KeyboardInterrupt, and `was_interrupted` returns True after it."""
    if _is_handled():
        if _HAS_TIMERS:
            signal.signal(signal.SIGALRM, _raise)
        sys.unraisablehook = _lost
        signal.signal(signal.SIGINT, _raise)


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed while the command ran.

    The KeyboardInterrupt itself may be lost: interrupted C code may raise another error instead.
    """
    return bool(_came)


def end_on_interrupt(told: str) -> None:
    """Call `leave_on_interrupt` if it was active when the command began."""
    if _is_handled():
        leave_on_interrupt(told)


def _is_handled() -> bool:
    return bool(_is_ours and _is_ours[0])


def _raise(_: int, frame: FrameType | None) -> None:
    if not _came:
        _came.append(True)
    if _HAS_TIMERS and _is_importing(frame):
        _remind(_LATER_S)
    else:
        raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _lost(unraisable: Any) -> None:
    """Raise a KeyboardInterrupt again that a callback lost; handle other errors as usual."""
    if _HAS_TIMERS and unraisable.exc_type is KeyboardInterrupt:
        _remind(_LATER_S)
    else:
        sys.__unraisablehook__(unraisable)


def _remind(after_s: float) -> None:
    """Raise a KeyboardInterrupt after this time; 0 cancels it."""
    if _HAS_TIMERS:
        signal.setitimer(signal.ITIMER_REAL, after_s)


def _leave(line: bytes, *_: Any) -> None:
    try:
        os.write(2, line)
    finally:
        os._exit(INTERRUPTED)
