"""The exception hierarchy: one class for each action that a caller can take next.

Every message says what was being done, to what, what was wrong and what to do. Attributes carry the
details that a program needs. Rowsieve raises only subclasses of `RowsieveError` on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar


def repr_of(value: object) -> str:
    """Return `repr(value)` for a message; its type if that fails.

    Python fails on an integer of more than 4,300 digits, and so on a list of one.
    """
    try:
        return repr(value)
    except Exception:  # or the class of the value fails
        return f"<{type(value).__name__}>"


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
    """Return the end of a message, `; did you mean 'x' or 'y'?`; empty if no name is similar."""
    import difflib  # noqa: PLC0415 - only messages need it

    near = difflib.get_close_matches(name, list(known), n=most)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


class RowsieveError(Exception):
    """The root of every error that Rowsieve raises on purpose."""


E = TypeVar("E", bound=BaseException)


def without_frames(error: E) -> E:
    """Return an equal error that may be kept: without traceback, cause and context.

    A traceback references the frames of all callers and their variables. An object that such a
    frame uses would never be freed if it kept the error, and were owned by an engine.
    """
    copy: E = type(error).__new__(type(error), *error.args)
    if isinstance(error, RowsieveError):
        copy.__dict__.update(error.__dict__)
    else:
        copy.__init__(*error.args)  # type: ignore[misc] # the same arguments as before
    return copy


# The call or its data is wrong: correct the call.


class InvalidInput(RowsieveError, ValueError):
    """An argument, option or value is invalid."""


class InvalidData(InvalidInput):
    """Rows do not meet the requirements of the operation."""


class EmptyData(InvalidData):
    """The data has no rows, and the operation needs some, as `overwrite` does."""


class SchemaMismatch(InvalidData):
    """Columns or types of the data do not match the table's schema."""


class InvalidSchemaChange(InvalidInput):
    """A change of the columns that the table cannot make, or that would lose data unseen."""


class KeyViolation(InvalidData):
    """A NULL or duplicate key."""


class ConstraintViolation(InvalidData):
    """Rows violate a constraint of the table; `name` is the constraint's."""

    def __init__(self, message: str, *, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class InvalidPredicate(InvalidInput):
    """A filter or expression has a syntax or type error, or exceeds a limit.

    `position` is the offset in the text, in characters from 0; None if unknown.
    """

    def __init__(self, message: str, *, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class UnknownColumn(InvalidPredicate):
    """The table has no column with this name."""

    def __init__(self, message: str, *, name: str, position: int | None = None) -> None:
        super().__init__(message, position=position)
        self.name = name


class UnprunablePredicate(InvalidPredicate):
    """Pruning was required, and a conjunct cannot prune; `conditions` lists such conjuncts."""

    def __init__(self, message: str, *, conditions: tuple[str, ...]) -> None:
        super().__init__(message)
        self.conditions = conditions


class EvaluationError(RowsieveError):
    """An expression failed on a row that satisfies every other condition."""


class NegativeMultiplicity(RowsieveError):
    """A row of a differential table is there fewer than zero times, so it cannot be expanded.

    Read it with its multiplicity, and find the update that removed what was never there. `row` are
    its values by name, and `multiplicity` is the sum of its differences.
    """

    def __init__(self, message: str, *, row: object, multiplicity: int) -> None:
        super().__init__(message)
        self.row = row
        self.multiplicity = multiplicity


class MultiplicityOverflow(RowsieveError):
    """The differences of a row add up to more than 64 bits hold; `row` are its values by name."""

    def __init__(self, message: str, *, row: object) -> None:
        super().__init__(message)
        self.row = row


# The operation is not supported.


class UnsupportedOperation(RowsieveError):
    """A valid request that this table, store or engine does not support.

    `position` is the offset in the text of a filter or expression, in characters from 0; None for
    other requests, or if unknown.
    """

    def __init__(self, *message: object, position: int | None = None) -> None:
        super().__init__(*message)
        self.position = position


class UnreadText(UnsupportedOperation):
    """A cast met a text whose meaning in the dialect's engine is unknown to Rowsieve.

    `texts` is an Arrow array of all such texts that were met at once.
    """

    def __init__(self, message: str, *, texts: object = None) -> None:
        super().__init__(message)
        self.texts = texts


class UnsupportedProtocol(UnsupportedOperation):
    """The table uses a newer protocol, or features that this version does not know."""


class MissingExtra(UnsupportedOperation, ImportError):
    """An optional dependency is not installed; the message names the extra."""


# Something does not exist, or exists already.


class NotFound(RowsieveError, LookupError):
    """The requested object does not exist."""


class TableNotFound(NotFound):
    """No Rowsieve table exists at this location."""


class NamespaceNotFound(NotFound):
    """The catalog has no namespace of this name."""


class VersionNotFound(NotFound):
    """The version is newer than the table's newest, or the time is before its first commit."""


class SnapshotExpired(NotFound):
    """The version, or one of its files, has been removed; `path` is the file, None of a version."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class TableExists(RowsieveError):
    """A table already exists at this location."""


class NamespaceExists(RowsieveError):
    """The catalog has a namespace of this name."""


# Stored data or the store is broken.


class CorruptData(RowsieveError):
    """Stored bytes differ from what was written: a checksum or the structure is wrong."""


class UnsoundPruning(RowsieveError):
    """Pruning would have lost a matching row, or returned a row that does not match.

    The cause is a bug, or statistics that belong to another file. The message names the part and
    the row.
    """


class EncodingsDiffer(RowsieveError):
    """A shadow read found a row whose columns and codec hold different values.

    The stored bytes are those that were written: a codec or a writer of columns has a fault.
    """


class StoreError(RowsieveError):
    """The object store failed, and retries did not help.

    Of a store across a network: `operation` ("read", "create", "list", "delete", "renew
    credentials"), the `path` of the object, and the `cause` in one word such as "denied",
    "expired", "no_bucket", "connection_refused", "certificate", "plain_http", "unknown_host" or
    "skewed_clock".
    """

    def __init__(
        self,
        message: str,
        *,
        operation: str | None = None,
        path: str | None = None,
        cause: str | None = None,
    ) -> None:
        super().__init__(message)
        self.operation, self.path, self.cause = operation, path, cause


class OutOfMemory(RowsieveError, MemoryError):
    """The process ran out of memory; the stored data is sound. Read less at once."""


# Try again.


class TableMoved(UnsupportedOperation):
    """The table has moved into a database, whose log has its newer versions.

    `uri` is where it is now, and `database` the URI of the database.
    """

    def __init__(self, message: str, *, uri: str, database: str) -> None:
        super().__init__(message)
        self.uri = uri
        self.database = database


class CommitConflict(RowsieveError):
    """A concurrent commit changed the data that this one was computed from; retrying may succeed.

    If a deadline ended the retries, `attempts` is their number and `elapsed_s` their duration.
    """

    def __init__(
        self, message: str, *, attempts: int | None = None, elapsed_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.attempts = attempts
        self.elapsed_s = elapsed_s


class UpperMismatch(CommitConflict):
    """Another commit has moved the frontier that these updates begin at; nothing was committed.

    `expected` is the frontier that the call began at, `upper` the one that is there, and `version`
    the version that has it. Read what was appended since, and append again from `upper` on.
    """

    def __init__(self, message: str, *, expected: object, upper: object, version: int) -> None:
        super().__init__(message)
        self.expected = expected
        self.upper = upper
        self.version = version


class WriterFailed(RowsieveError):
    """The writer can no longer make changes durable; it acknowledges nothing more.

    Changes that it acknowledged are in its write-ahead log: open a new writer on it.
    """


class WriterFenced(WriterFailed):
    """Another writer has taken over the write-ahead log."""


class WriterClosed(RowsieveError):
    """The writer was closed, or belongs to the process that this one was forked from."""


class WalLocked(RowsieveError):
    """Another writer holds the write-ahead log."""


class TransactionConflict(CommitConflict):
    """What a transaction read was changed by a concurrent commit; nothing was committed.

    `condition` is what it had read, as text, `version` the commit that changed it, and `table` the
    URI. Run the transaction again: `rowsieve.run_transaction` does.
    """

    def __init__(
        self, message: str, *, condition: str | None = None, version: int, table: str
    ) -> None:
        super().__init__(message)
        self.condition = condition
        self.version = version
        self.table = table


class TransactionEnded(RowsieveError):
    """A transaction was used after its commit or rollback, or by another thread or process."""


class CallCancelled(RowsieveError):
    """A call of a procedure was cancelled before all of its tasks were done; call it again."""


class JobFailed(RowsieveError):
    """A job that an engine ran for a call failed; `__cause__` is the engine's own error."""


class StalePlan(RowsieveError):
    """The table has changed since the plan for this change was made; plan again."""
