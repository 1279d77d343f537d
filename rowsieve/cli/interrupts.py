"""Handles Ctrl-C and SIGTERM before a command begins, while it runs, and after it has ended.

While a command runs, either raises KeyboardInterrupt, and the command reports what it has
committed. During an import, the exception is delayed until the import ends, because C modules
convert it to another error. A callback may lose it, so it is raised again. Before and after a
command, the signal ends the process at once: a KeyboardInterrupt during imports or during shutdown
of the interpreter would print a traceback.

This module imports very little, so that it can be imported first.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from types import FrameType
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_BY_SIGNAL: Final = 128  # plus the signal's number: the exit code, as shells have it
_LATER_S: Final = 0.02
_HAS_TIMERS: Final = hasattr(signal, "setitimer")

_handled: list[signal.Signals] = []  # those that this process did not ignore when it began
_came: list[int] = []  # the signal that ends the command


def leave_on_interrupt(outcome: str) -> None:
    """From now on, Ctrl-C and SIGTERM end the process at once, with one line on stderr.

    A signal that the process ignores, as a background command ignores Ctrl-C, stays ignored.
    """
    if not _handled:
        defaults = (signal.default_int_handler, signal.SIG_DFL)
        _handled.extend(each for each in _SIGNALS if signal.getsignal(each) in defaults)
    _interrupt_after(0)
    for each in _handled:
        signal.signal(each, partial(_end_process, f"rowsieve: interrupted: {outcome}\n".encode()))


def raise_on_interrupt() -> None:
    """From now on, both raise KeyboardInterrupt, and `was_interrupted` returns True after it."""
    if _handled and _HAS_TIMERS:
        signal.signal(signal.SIGALRM, _raise)
    if _handled:
        sys.unraisablehook = _on_unraisable
    for each in _handled:
        signal.signal(each, _raise)


def was_interrupted() -> bool:
    """Return whether Ctrl-C or SIGTERM came while the command ran.

    The KeyboardInterrupt itself may be lost: interrupted C code may raise another error instead.
    """
    return bool(_came)


def was_terminated() -> bool:
    """Return whether SIGTERM came, which ends a prompt too."""
    return signal.SIGTERM in _came


def forget_interrupt() -> None:
    """Go on after an interruption: a prompt drops the statement, not the process."""
    _came.clear()


def exit_code() -> int:
    """The exit code of an interrupted command: 130 after Ctrl-C, 143 after SIGTERM."""
    return _BY_SIGNAL + (_came[0] if _came else signal.SIGINT)


def end_on_interrupt(outcome: str) -> None:
    """Call `leave_on_interrupt` if it was active when the command began."""
    if _handled:
        leave_on_interrupt(outcome)


def _raise(number: int, frame: FrameType | None) -> None:
    if not _came:
        _came.append(number)
    if _HAS_TIMERS and _is_importing(frame):
        _interrupt_after(_LATER_S)
    else:
        raise KeyboardInterrupt


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _on_unraisable(unraisable: Any) -> None:
    """Raise a KeyboardInterrupt again that a callback lost; handle other errors as usual."""
    if _HAS_TIMERS and unraisable.exc_type is KeyboardInterrupt:
        _interrupt_after(_LATER_S)
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt_after(after_s: float) -> None:
    """Raise a KeyboardInterrupt after this time; 0 cancels it."""
    if _HAS_TIMERS:
        signal.setitimer(signal.ITIMER_REAL, after_s)


def _end_process(line: bytes, number: int, _: FrameType | None) -> None:
    try:
        os.write(2, line)
    finally:
        os._exit(_BY_SIGNAL + number)
