"""`Depth`: the level of a recursive walk over an engine's expression, and its limit."""

from __future__ import annotations

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.limits import MAX_DEPTH


class Depth:
    """Counts levels: `with depth:` is one level; a level beyond the limit is rejected."""

    def __init__(self, most: int = MAX_DEPTH) -> None:
        self.level = 0
        self._most = most

    def __enter__(self) -> None:
        if self.level >= self._most:
            raise UnsupportedOperation(
                f"it nests deeper than {self._most} levels; write a long chain of OR as IN"
            )
        self.level += 1

    def __exit__(self, *_: object) -> None:
        self.level -= 1
