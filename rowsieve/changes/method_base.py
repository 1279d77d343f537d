"""The base of `Table`'s methods, and what each call of a changing one begins with."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from os import PathLike
from typing import Concatenate, Final, ParamSpec, TypeVar, cast

from rowsieve.changes.table_handle import Handle
from rowsieve.errors import CommitConflict, EvaluationError, InvalidData, InvalidPredicate
from rowsieve.progress_bars import ShownProgress, shown_rows_written

M = TypeVar("M", bound="TableMethods")
P = ParamSpec("P")
R = TypeVar("R")
_BY_STATE: Final = (InvalidData, InvalidPredicate, EvaluationError, CommitConflict)
"""Errors of a call that may have been valid for an earlier version of the table."""


class TableMethods:
    """Methods of `Table`, which stand on its handle."""

    def __init__(self, handle: Handle) -> None:
        if isinstance(handle, str | PathLike):
            raise TypeError("Table() takes no URI; write open_table(uri), or create_table(uri, …)")
        self.handle = handle


def changes(
    operation: str, *, shows_rows: bool = False
) -> Callable[[Callable[Concatenate[M, P], R]], Callable[Concatenate[M, P], R]]:
    """Decorate a method that changes the table: each call is one `operation`, in its turn.

    It waits for the earlier calls of an open writer, and is reported if it raises. A call whose
    `token` was committed returns that commit, even if its data does not fit the table as it is now:
    the columns may have changed since. With `shows_rows`, the `progress` of the call is told the
    rows that it writes into parts.
    """

    def decorate(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
        @wraps(method)
        def call(self: M, /, *args: P.args, **kwargs: P.kwargs) -> R:
            with self.handle.changing(operation):
                try:
                    if shows_rows and (progress := kwargs.get("progress")):
                        with shown_rows_written(cast("ShownProgress", progress)):
                            return method(self, *args, **kwargs)
                    return method(self, *args, **kwargs)
                except _BY_STATE:
                    if (done := self.handle.committed_before(kwargs.get("token"))) is None:
                        raise
                    return cast("R", done)  # every method that takes a token returns a Commit

        return call

    return decorate
