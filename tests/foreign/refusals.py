"""A call that is refused, and what its message advises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rowsieve.errors import RowsieveError


class Refusal(NamedTuple):
    """A call in a folder that raises `error` with the advice; `followed` is what it advises."""

    error: type[RowsieveError]
    advice: str
    call: Callable[[Path], Any]
    followed: Callable[[Path], Any]
