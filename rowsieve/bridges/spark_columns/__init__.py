"""Spark's columns as predicates and back.

A column is another encoding of Spark SQL: `classic` and `client` convert its nodes to forms, which
are formatted and read as text of the dialect. PySpark is imported at first use, and only the parts
that the caller's column needs.

Soundness: a condition with the same meaning on every row is kept; any other is omitted as a whole
and named, so the result is TRUE wherever the original is.
"""

from __future__ import annotations

import sys
from typing import Any

from rowsieve.bridges.session import Session
from rowsieve.bridges.spark_columns import sessions
from rowsieve.bridges.translation import Translation
from rowsieve.errors import InvalidInput
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

__all__ = ["from_spark_column", "is_spark_column", "rules_of", "running_session", "to_spark_column"]


def is_spark_column(value: object) -> bool:
    """Whether this is a Spark column, classic or Connect; PySpark is not imported for it."""
    module = sys.modules.get("pyspark.sql")
    return module is not None and isinstance(value, module.Column)


def running_session() -> Session | None:
    """Return the settings of the session of new columns; None for a client without a session."""
    settings = sessions.settings_for(None)
    return None if settings.time_zone is None else Session(settings.time_zone, ansi=settings.ansi)


def rules_of(column: Any, session: Session | None = None) -> Semantics:
    """Return the rules of a column that has been read, by its session's mode and time zone."""
    return sessions.settings_of(column, session).rules


def from_spark_column(
    column: Any,
    schema: Schema,
    *,
    strict: bool = False,
    session: Session | None = None,
    ansi: bool | None = None,
    time_zone: str | None = None,
) -> Translation[Predicate, Any]:
    """Read a column over the columns of a schema, under `rules_of` it.

    The residual is a column of the omitted conditions. A classic column needs the active session in
    which it was made, whose ANSI mode and time zone `session` cannot override. For a Connect column
    they are those of `session` (or `ansi` and `time_zone`), or of the client's active session.
    """
    if hasattr(column, "_jc") and session is not None:
        raise InvalidInput(
            "session=: a classic Spark column is meant by the settings of its own running session; "
            "omit session=, or set them in the Spark session"
        )
    from rowsieve.bridges.spark_columns import read  # noqa: PLC0415 - large

    if session is not None:
        ansi, time_zone = session.ansi is not False, session.time_zone
    if hasattr(column, "_jc"):
        return read.from_classic(column, schema, sessions.settings_of(column, None), strict=strict)
    settings = sessions.client_session(ansi=ansi, time_zone=time_zone)
    return read.from_client(column, schema, settings, strict=strict)


def to_spark_column(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.SPARK,
    *,
    session: Session | None = None,
    strict: bool = False,
) -> Translation[Any, Predicate]:
    """Write a predicate with the given semantics as a column over the schema.

    `session` has the settings of the session that runs it, by default the running one. A Connect
    client without a session has no time zone, and conditions that depend on one are omitted. If an
    operation fails on a row, Spark may raise even if another condition excludes the row.
    """
    from rowsieve.bridges.spark_columns import write  # noqa: PLC0415 - an extra

    sessions.check_session()
    settings = sessions.settings_for(session)
    return write.written(predicate, schema, semantics, settings, strict=strict)
