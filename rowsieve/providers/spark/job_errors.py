"""Turns the errors of Spark's jobs into ours, where the call that runs the job is ours.

Spark reports a failed job by an error with the traces of Java and of a worker. Our own error is
read from the worker's trace. A file that Spark itself could not read is recognised by the condition
of Spark's error and its parameters, never by the words of a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError

from rowsieve import errors
from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    JobFailed,
    NotFound,
    RowsieveError,
    SchemaMismatch,
    UnsupportedOperation,
)

_OWN_ERROR: Final = re.compile(r"rowsieve\.errors\.(\w+): (.+)")
_NO_PACKAGE: Final = re.compile(
    r"ModuleNotFoundError: No module named '(rowsieve|pyarrow|obstore|msgspec)"
)
_NO_SOURCE: Final = "DATA_SOURCE_NOT_FOUND"
_UNREADABLE: Final = "FAILED_READ_FILE"
"""Spark's condition of a file that a scan cannot read; the file is the parameter `path`."""

_KINDS: Final[Mapping[str, tuple[type[RowsieveError], str]]] = {
    "FILE_NOT_EXIST": (
        NotFound,
        "does not exist: it was removed after the DataFrame was made. Read the input again",
    ),
    "PARQUET_COLUMN_DATA_TYPE_MISMATCH": (
        SchemaMismatch,
        "has columns of other types than the DataFrame. Read the input again with its own types",
    ),
}
_DAMAGED: Final = (
    CorruptData,
    "cannot be read. Restore the file from a copy, or leave it out of the input",
)
_LONGEST: Final = 500  # characters of Spark's message that ours repeats
_MAX_CAUSES: Final = 20


def own_error(error: Exception, operation: str) -> RowsieveError | None:
    """Our error for a failed job of Spark's that committed nothing.

    None if Spark's error is one of PySpark's classes and not about a file, such as that of a
    function of the user: callers know these classes.
    """
    if (known := error_from_worker(str(error))) is not None:
        return known
    if (missing := missing_source(error, operation)) is not None:
        return missing
    if (package := _NO_PACKAGE.search(str(error))) is not None:
        return UnsupportedOperation(
            f"{operation}: an executor has no package {package[1]}, and nothing was committed; "
            "send it the environment of the driver (spark.archives), then try it by "
            "rowsieve.providers.spark.check(spark)"
        )
    for cause in _causes(error):
        condition = condition_of(cause) or ""
        if condition.partition(".")[0] == _UNREADABLE:
            kind, problem = _KINDS.get(condition.partition(".")[2], _DAMAGED)
            path = _parameters(cause).get("path", "of the input")
            return kind(f"{operation}: the file {path} {problem}; nothing was committed")
    if isinstance(error, Py4JJavaError):
        return JobFailed(
            f"{operation}: a job of Spark failed, and nothing was committed: {_reason(error)}"
        )
    return None


def missing_source(error: Exception, operation: str) -> UnsupportedOperation | None:
    """Our error for a session that does not find our source; None for any other error."""
    if all(condition_of(cause) != _NO_SOURCE for cause in _causes(error)):
        return None
    return UnsupportedOperation(
        f"{operation}: Spark does not find our source, because the package is not installed for "
        "its Python; call rowsieve.providers.spark.register(spark) in this session"
    )


def error_from_worker(text: str) -> RowsieveError | None:
    """Recover our error from the text of a worker's traceback; None if it is not ours."""
    matches = _OWN_ERROR.findall(text)
    if not matches:
        return None
    name, message = matches[-1]
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, RowsieveError)):
        return None
    try:
        return kind(message)
    except TypeError:  # its constructor needs attributes that the text does not have
        return InvalidInput(message)


def condition_of(error: Any) -> str | None:
    """Spark's error condition of a Python or Java error; None if Spark does not classify it."""
    try:
        condition = _java(error).getCondition()
    except Exception:
        return None  # an error that Spark does not classify
    return None if condition is None else str(condition)


def _java(error: Any) -> Any:
    """Java's error inside one of Py4J; any other error as it is."""
    return error.java_exception if isinstance(error, Py4JJavaError) else error


def _parameters(error: Any) -> dict[str, str]:
    try:
        return {str(name): str(value) for name, value in dict(error.getMessageParameters()).items()}
    except Exception:
        return {}


def _causes(error: Exception) -> Iterator[Any]:
    """The error of a job, and in Java what caused it; the first one is Python's for a client."""
    origin = getattr(error, "_origin", None)  # the Java error that PySpark has converted
    cause = _java(error) if origin is None else origin
    for _ in range(_MAX_CAUSES):
        if cause is None:
            return
        yield cause
        try:
            cause = cause.getCause()
        except (AttributeError, TypeError, Py4JError):
            return


def _reason(error: Py4JJavaError) -> str:
    """The first line of Spark's message, and that of what caused it."""
    lines: list[str] = []
    for cause in (causes := list(_causes(error)))[:1] + causes[1:][-1:]:
        text = str(cause.getMessage() or cause.getClass().getName())
        line = next((line for line in text.splitlines() if line.strip()), "")[:_LONGEST]
        if line and not any(line in other for other in lines):
            lines.append(line)
    return "; ".join(lines)
