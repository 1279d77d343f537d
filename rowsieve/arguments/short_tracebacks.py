"""Short tracebacks: in a prompt or a notebook, an error begins at the call that raised it.

Scripts and services keep whole tracebacks. `ROWSIEVE_TRACEBACKS=whole` keeps them in prompts, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from rowsieve.errors import RowsieveError

E = TypeVar("E", bound=Exception)
T = TypeVar("T")
P = ParamSpec("P")

SETTING: Final = "ROWSIEVE_TRACEBACKS"


def is_shortened() -> bool:
    """Return whether somebody types the calls, and has not asked for whole tracebacks."""
    return hasattr(sys, "ps1") and os.environ.get(SETTING) != "whole"


def shortened(error: E) -> E:
    """Remove our frames, for `raise … from None`; the cause stays as `__context__`."""
    if error.__cause__ is not None:
        error.__context__ = error.__cause__
    return error.with_traceback(None)


def shortening(function: Callable[P, T]) -> Callable[P, T]:
    """The function; its errors are shortened in a prompt."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RowsieveError as error:
            if is_shortened():
                raise shortened(error) from None
            raise

    return call


def with_short_tracebacks(items: Iterator[T]) -> Iterator[T]:
    """Yield the items of a public stream; an error that one raises is shortened in a prompt."""
    try:
        yield from items
    except RowsieveError as error:
        if is_shortened():
            raise shortened(error) from None
        raise
