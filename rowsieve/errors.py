"""The tree of errors: a class for each thing a caller does next.

Every message says what was being done, to what, what was found and what to do; the pieces are
attributes where a caller may want them. All that Rowsieve raises on purpose is a `RowsieveError`.
"""

from __future__ import annotations


class RowsieveError(Exception):
    """The root of every error that Rowsieve raises on purpose."""


# What was asked or handed in is wrong: mend the call.


class InvalidInput(RowsieveError, ValueError):
    """An argument, option or value that cannot be used as it is."""


class InvalidData(InvalidInput):
    """Rows that do not fit what the operation asks of them."""


class EmptyData(InvalidData):
    """No rows where an operation needs some, as `overwrite` does."""


class SchemaMismatch(InvalidData):
    """Columns or types of the data that do not fit the table's schema."""


class KeyViolation(InvalidData):
    """A key that is NULL, or that stands more than once where once is the rule."""


class InvalidPredicate(InvalidInput):
    """A filter or expression that is not well formed, not well typed, or past a limit.

    `position` is the offset in the text (0-based characters) where that is known.
    """

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class UnknownColumn(InvalidPredicate):
    """A name that is no column of the table."""

    def __init__(self, message: str, *, name: str, position: int | None = None) -> None:
        super().__init__(message, position=position)
        self.name = name


class UnprunablePredicate(InvalidPredicate):
    """A predicate that was required to prune and cannot; `conditions` are those that are why."""

    def __init__(self, message: str, *, conditions: tuple[str, ...]) -> None:
        super().__init__(message)
        self.conditions = conditions


class EvaluationError(RowsieveError):
    """An expression failed on a row that survives every other condition."""


# It cannot be done here.


class UnsupportedOperation(RowsieveError):
    """A well-formed request that this table, store or engine cannot serve."""


class UnsupportedProtocol(UnsupportedOperation):
    """The table was written by a newer protocol, or with features unknown here."""


class MissingExtra(UnsupportedOperation, ImportError):
    """An optional dependency is not installed; the message names the extra."""


# It is not there, or already there.


class NotFound(RowsieveError, LookupError):
    """Something that was named does not exist."""


class TableNotFound(NotFound):
    """No Rowsieve table stands at this place."""


class VersionNotFound(NotFound):
    """A version that the table has not reached, or a time before it existed."""


class SnapshotExpired(NotFound):
    """A version, or a file of it, that has been removed."""


class TableExists(RowsieveError):
    """A table stands at this place already."""


# It is broken.


class CorruptData(RowsieveError):
    """Stored bytes that are not what was written: a checksum or a structure does not hold."""


class UnsoundPruning(RowsieveError):
    """Pruning would have lost a row, or returned one that does not match.

    A bug, or statistics that are not those of the file; the message names the part and the row.
    """


class StoreError(RowsieveError):
    """The object store failed in a way that retries did not mend."""


# Try again.


class CommitConflict(RowsieveError):
    """Another commit changed what this one was computed from; trying again may succeed.

    `attempts` and `elapsed_s` say how often and how long it was tried, where a deadline ended it.
    """

    def __init__(
        self, message: str, *, attempts: int | None = None, elapsed_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.attempts = attempts
        self.elapsed_s = elapsed_s


class StalePlan(RowsieveError):
    """The table moved on since the plan was made that a change is to follow; plan again."""
