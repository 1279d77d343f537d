"""Short tracebacks: in a prompt or a notebook, an error begins at the call that raised it.

Scripts and services keep whole tracebacks. `ROWSIEVE_TRACEBACKS=whole` keeps them in prompts, too.
"""

from __future__ import annotations

import os
import sys
from typing import Final, TypeVar

E = TypeVar("E", bound=Exception)

SETTING: Final = "ROWSIEVE_TRACEBACKS"


def is_shortened() -> bool:
    """Return whether somebody types the calls, and has not asked for whole tracebacks."""
    return hasattr(sys, "ps1") and os.environ.get(SETTING) != "whole"


def shortened(error: E) -> E:
    """Remove our frames, for `raise … from None`; the cause stays as `__context__`."""
    if error.__cause__ is not None:
        error.__context__ = error.__cause__
    return error.with_traceback(None)
