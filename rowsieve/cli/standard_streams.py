"""Opens the standard streams that the caller has closed (`rowsieve … >&-`), before any file.

Otherwise the next file that is opened gets the number of the closed stream, and text that is
written to the stream ends up in that file. This module imports very little, so that it can be
imported first.
"""

from __future__ import annotations

import os
import sys


def open_standard_streams() -> None:
    """Give each closed stream a null device; writing to a stdout that was closed is an OSError."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if _is_open(number):
            continue
        # Only stderr may lose its output: a lost answer on stdout must be an error.
        opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)  # noqa: FBT003 - it takes no name
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - a number


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
