"""What Ctrl-C does to a command: before it begins, while it runs, and after it has ended.

While a command runs Ctrl-C raises KeyboardInterrupt, as ever, and the command says what it has
committed. But it waits for an import to end, which a command may do at any time: modules in C make
another error of it, and so does a callback, which loses it. Before and after a command nothing may
raise: modules are being imported, or the interpreter is going down, and a KeyboardInterrupt there
would be a traceback. So the process leaves at once.

This module imports next to nothing, so that it comes first.
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

_is_ours: list[bool] = []  # whether Ctrl-C of this process is ours to handle
_came: list[bool] = []


def leave_on_interrupt(told: str) -> None:
    """From now on Ctrl-C ends the process at once, with one line on stderr.

    Not where Ctrl-C is ignored, as for a command in the background.
    """
    if not _is_ours:
        _is_ours.append(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    if _is_ours[0]:
        _remind(0)
        signal.signal(signal.SIGINT, partial(_leave, f"rowsieve: interrupted: {told}\n".encode()))


def raise_on_interrupt() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, and `was_interrupted` knows of it."""
    if _is_handled():
        if _HAS_TIMERS:
            signal.signal(signal.SIGALRM, _raise)
        sys.unraisablehook = _lost
        signal.signal(signal.SIGINT, _raise)


def was_interrupted() -> bool:
    """Whether Ctrl-C came while the command ran.

    The KeyboardInterrupt itself may be lost: code in C that it breaks off may raise an error of its
    own instead.
    """
    return bool(_came)


def end_on_interrupt(told: str) -> None:
    """The same as `leave_on_interrupt`, if that was in force when the command began."""
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
    """Raise once more what a callback could not pass on; all else as ever."""
    if _HAS_TIMERS and unraisable.exc_type is KeyboardInterrupt:
        _remind(_LATER_S)
    else:
        sys.__unraisablehook__(unraisable)


def _remind(after_s: float) -> None:
    """Raise a KeyboardInterrupt after some time, never for 0."""
    if _HAS_TIMERS:
        signal.setitimer(signal.ITIMER_REAL, after_s)


def _leave(line: bytes, *_: Any) -> None:
    try:
        os.write(2, line)
    finally:
        os._exit(INTERRUPTED)
