"""`Converting`: a block whose exceptions become those of the store.

It is a class because a generator would keep its caller's frames: from Python 3.12 on, the frame of
a generator that raises another exception refers to the frame of `__exit__`, which has the first
exception and thereby the generator's frame. Such a cycle keeps a table's snapshots, and temporary
files of drafts, until the garbage collector runs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType


class Converting:
    """Call `convert` with an exception that leaves the block; it raises another one, or returns."""

    __slots__ = ("_convert",)

    def __init__(self, convert: Callable[[Exception], None]) -> None:
        self._convert = convert

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            self._convert(error)
