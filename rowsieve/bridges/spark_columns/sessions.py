"""The Spark session of columns: classic columns are made and resolved in a running session.

A Connect column is made without a session; settings that its tree lacks are those of the client's
session, if it has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from rowsieve.bridges.extras import imported
from rowsieve.bridges.session import Session
from rowsieve.bridges.sql.spark.settings import (
    ANSI,
    CASE_SENSITIVE,
    IN_COLUMNS,
    MEANINGS,
    NULL_IN_EMPTY_LIST,
    PARSER_POLICY,
    SIZE_OF_NULL,
    TIME_ZONE,
)
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.predicate.semantics import Semantics

_FORMATS = re.compile("format|to_date|to_timestamp|unix_timestamp", re.IGNORECASE)
_GIVEN: ContextVar[Any] = ContextVar("the session that columns belong to", default=None)
_NONE = "a Spark column belongs to a session, and none is running: start one first"


@dataclass(frozen=True, slots=True)
class ColumnSession:
    """ANSI mode and time zone of the session of columns; None for an unknown zone."""

    ansi: bool = True
    time_zone: str | None = None
    session: Any = None  # for settings that few columns depend on
    policy: str = PARSER_POLICY[1]

    @property
    def rules(self) -> Semantics:
        """Return the rules of its columns."""
        return Semantics.of_spark(ansi=self.ansi, time_zone=self.time_zone or "UTC")

    def check_formats(self, text: str) -> None:
        """Raise for text with formats of times if the session has other rules for them."""
        if self.policy.upper() != PARSER_POLICY[1] and uses_formats(text):
            raise UnsupportedOperation(
                f"{PARSER_POLICY[0]} is {self.policy} in this session, which changes how formats "
                f"are read; set it to {PARSER_POLICY[1]}"
            )

    @property
    def null_in_empty_list(self) -> bool:
        """Whether IN with an empty list is NULL for NULL, and not FALSE."""
        return self._is_on(NULL_IN_EMPTY_LIST, unset=not self.ansi)

    @property
    def is_case_sensitive(self) -> bool:
        """Whether names are case-sensitive."""
        return self._is_on(CASE_SENSITIVE, unset=False)

    @property
    def size_of_null(self) -> bool:
        """Whether the size of NULL is -1, and not NULL."""
        return not self.ansi and self._is_on(SIZE_OF_NULL, unset=True)

    def _is_on(self, name: str, *, unset: bool) -> bool:
        if self.session is None:
            return unset
        return str(self.session.conf.get(name, str(unset).lower())).lower() == "true"


def uses_formats(text: str) -> bool:
    """Whether SQL text may format a time, or parse one by a format."""
    return _FORMATS.search(text) is not None


@contextmanager
def using(session: Any) -> Iterator[None]:
    """Read and write columns for this session instead of the active one."""
    token = _GIVEN.set(session)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def settings_of(column: Any, session: Session | None) -> ColumnSession:
    """Return the settings of a column; for a classic one those of its running session."""
    if hasattr(column, "_jc"):
        return _classic_settings()
    if session is not None:
        return ColumnSession(ansi=session.ansi is not False, time_zone=session.time_zone)
    return client_session(ansi=None, time_zone=None)


def settings_for(session: Session | None) -> ColumnSession:
    """Return the given settings, or those of the running session.

    A client without a session has Spark's defaults, and no time zone.
    """
    if session is not None:
        return ColumnSession(ansi=session.ansi is not False, time_zone=session.time_zone)
    if is_client():
        return client_session(ansi=None, time_zone=None)
    return _classic_settings()


def _classic_settings() -> ColumnSession:
    session = active_session()
    ansi = str(session.conf.get(ANSI)).lower() == "true"
    zone = str(session.conf.get(TIME_ZONE))
    policy = str(session.conf.get(*PARSER_POLICY))
    return ColumnSession(ansi, zone, session, policy)


def check_settings() -> None:
    """Raise for a session whose settings change the meaning of functions or types."""
    settings = active_session()._jsparkSession.conf().getAll()
    supported = {**MEANINGS, **IN_COLUMNS}
    for name in sorted(supported.keys() & set(str(settings.keySet().mkString("\n")).split("\n"))):
        if (value := str(settings.apply(name))).lower() != supported[name].lower():
            raise UnsupportedOperation(
                f"columns are not read in a session with {name}={value}: they may mean something "
                f"else; set it to {supported[name]}"
            )


def client_session(*, ansi: bool | None, time_zone: str | None) -> ColumnSession:
    """Return the given settings, others of the client's session; without one, Spark's defaults."""
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415 - an extra

    in_use = _GIVEN.get()
    session = in_use if isinstance(in_use, SparkSession) else SparkSession.getActiveSession()
    if session is not None and time_zone is None:
        time_zone = str(session.conf.get(TIME_ZONE))
    if session is not None and ansi is None:
        ansi = session.conf.get(ANSI) == "true"
    policy = PARSER_POLICY[1] if session is None else str(session.conf.get(*PARSER_POLICY))
    return ColumnSession(ansi is not False, time_zone, session, policy=policy)


def active_session() -> Any:
    """Return the session of `using`, of this thread, or any; `InvalidInput` without one."""
    if hasattr(in_use := _GIVEN.get(), "_jsparkSession"):
        return in_use
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 - an extra, at its first use
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    try:
        return SparkSession.active()
    except PySparkRuntimeError as error:
        raise InvalidInput(_NONE) from error


def is_client() -> bool:
    """Whether this process makes Connect columns."""
    return bool(imported("pyspark.sql.utils", "spark").is_remote())


def check_session() -> None:
    """Raise if columns cannot be made: classic columns need a session."""
    if not is_client():
        active_session()
