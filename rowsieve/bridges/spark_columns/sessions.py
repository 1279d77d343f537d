"""The Spark session that columns belong to: classic ones are made and resolved in a running one.

A Connect column is made without a session; what its tree does not say is asked of the client's, if
there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from rowsieve.bridges.extras import imported
from rowsieve.bridges.session import Session
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.predicate.semantics import Semantics

# The setting by which Spark formats times and reads them by a format, and the value known here.
PARSER_POLICY = ("spark.sql.legacy.timeParserPolicy", "CORRECTED")
_FORMATS = re.compile("format|to_date|to_timestamp|unix_timestamp", re.IGNORECASE)
_GIVEN: ContextVar[Any] = ContextVar("the session that columns belong to", default=None)
# Settings that change what functions, names and types mean, and the value that columns are read by.
_FIXED: Mapping[str, str] = {
    f"spark.sql.{name}": value
    for name, value in {
        "decimalOperations.allowPrecisionLoss": "true",
        "function.concatBinaryAsString": "false",
        "functionResolution.sessionOrder": "second",  # after Spark's own functions
        "icu.caseMappings.enabled": "true",
        "legacy.allowNegativeScaleOfDecimal": "false",
        "legacy.decimal.retainFractionDigitsOnTruncate": "false",
        "legacy.interval.enabled": "false",
        "legacy.literal.pickMinimumPrecision": "true",
        "legacy.lpadRpadAlwaysReturnString": "false",
        "legacy.typeCoercion.datetimeToString.enabled": "false",
        "path.enabled": "false",
        "timestampType": "timestamp_ltz",
    }.items()
}
_NONE = "a Spark column belongs to a session, and none is running: start one first"


@dataclass(frozen=True, slots=True)
class ColumnSession:
    """The mode and the time zone of the session of columns; no zone is an unknown one."""

    ansi: bool = True
    time_zone: str | None = None
    session: Any = None  # of the client, for the settings that few columns hang on
    policy: str = PARSER_POLICY[1]

    @property
    def rules(self) -> Semantics:
        """Those that its columns are meant by once read."""
        return Semantics.of_spark(ansi=self.ansi, time_zone=self.time_zone or "UTC")

    def check_formats(self, text: str) -> None:
        """Refuse text with formats of times where the session has other rules for them."""
        if self.policy.upper() != PARSER_POLICY[1] and uses_formats(text):
            raise UnsupportedOperation(
                f"{PARSER_POLICY[0]} is {self.policy} in this session, which changes how formats "
                f"are read; set it to {PARSER_POLICY[1]}"
            )

    @property
    def null_in_empty_list(self) -> bool:
        """Whether IN of nothing is NULL for NULL, and not FALSE."""
        return self._is_on("spark.sql.legacy.nullInEmptyListBehavior", unset=not self.ansi)

    @property
    def is_case_sensitive(self) -> bool:
        """Whether names in another case are other names."""
        return self._is_on("spark.sql.caseSensitive", unset=False)

    @property
    def size_of_null(self) -> bool:
        """Whether the size of a NULL is -1, and not NULL."""
        return not self.ansi and self._is_on("spark.sql.legacy.sizeOfNull", unset=True)

    def _is_on(self, name: str, *, unset: bool) -> bool:
        if self.session is None:
            return unset
        return str(self.session.conf.get(name, str(unset).lower())).lower() == "true"


def uses_formats(text: str) -> bool:
    """Whether SQL text may format a time, or read one by a format."""
    return _FORMATS.search(text) is not None


@contextmanager
def using(session: Any) -> Iterator[None]:
    """Read and write columns as this session has them, whichever one is active."""
    token = _GIVEN.set(session)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def settings_of(column: Any, session: Session | None) -> ColumnSession:
    """The settings that a column is meant by: of a classic one, those of its running session."""
    if hasattr(column, "_jc"):
        return _classic_settings()
    if session is not None:
        return ColumnSession(ansi=session.ansi is not False, time_zone=session.time_zone)
    return client_session(ansi=None, time_zone=None)


def settings_for(session: Session | None) -> ColumnSession:
    """The settings given, or those of the running session; Spark's defaults of a client's alone.

    A client without a session has no time zone.
    """
    if session is not None:
        return ColumnSession(ansi=session.ansi is not False, time_zone=session.time_zone)
    if is_client():
        return client_session(ansi=None, time_zone=None)
    return _classic_settings()


def _classic_settings() -> ColumnSession:
    session = active_session()
    ansi = str(session.conf.get("spark.sql.ansi.enabled")).lower() == "true"
    zone = str(session.conf.get("spark.sql.session.timeZone"))
    policy = str(session.conf.get(*PARSER_POLICY))
    return ColumnSession(ansi, zone, session, policy)


def check_settings() -> None:
    """Refuse to read columns in a session that gives their functions and types another meaning."""
    settings = active_session()._jsparkSession.conf().getAll()
    for name in sorted(_FIXED.keys() & set(str(settings.keySet().mkString("\n")).split("\n"))):
        if (value := str(settings.apply(name))).lower() != _FIXED[name]:
            raise UnsupportedOperation(
                f"columns are not read in a session with {name}={value}: they may mean something "
                f"else; set it to {_FIXED[name]}"
            )


def client_session(*, ansi: bool | None, time_zone: str | None) -> ColumnSession:
    """What is given, and the rest as the client's session has it; Spark's default without one."""
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415 - an extra

    given = _GIVEN.get()
    session = given if isinstance(given, SparkSession) else SparkSession.getActiveSession()
    if session is not None and time_zone is None:
        time_zone = str(session.conf.get("spark.sql.session.timeZone"))
    if session is not None and ansi is None:
        ansi = session.conf.get("spark.sql.ansi.enabled") == "true"
    policy = PARSER_POLICY[1] if session is None else str(session.conf.get(*PARSER_POLICY))
    return ColumnSession(ansi is not False, time_zone, session, policy=policy)


def active_session() -> Any:
    """The session in use or of this thread, or the one that there is; `InvalidInput` without."""
    if hasattr(given := _GIVEN.get(), "_jsparkSession"):
        return given
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 - an extra, at its first use
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    try:
        return SparkSession.active()
    except PySparkRuntimeError as error:
        raise InvalidInput(_NONE) from error


def is_client() -> bool:
    """Whether this process makes columns of a Connect client."""
    return bool(imported("pyspark.sql.utils", "spark").is_remote())


def check_session() -> None:
    """Refuse to make columns where PySpark cannot: a Connect client needs no session for it."""
    if not is_client():
        active_session()
