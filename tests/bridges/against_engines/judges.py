"""Engines in memory as judges of a text over rows: its values, or that it fails.

A judge says which failures are of values, and which say that the engine lacks what the text has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache, reduce
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from rowsieve.types.encodings import schema_of
from rowsieve.types.numeric_bytes import is_stored, to_text
from tests.bridges.spark_columns.nasty import in_driver
from tests.bridges.sql.postgres import ROW, hold
from tests.duckdb_sessions import duckdb_session

UTC = "UTC"


class LackingError(Exception):
    """The engine has no such function, operator or type."""


class ValueFailure(Exception):
    """The engine fails on a value of some row."""


class Judge(Protocol):
    """An engine that gives the values of a text, row by row."""

    def values(self, text: str, rows: pa.Table, *, optimised: bool = True) -> list[Any]:
        """Return one value for each row; raise `LackingError` or `ValueFailure`.

        Without its optimiser, where it has a switch: `a - 1 < 0` may not overflow with it.
        """

    def kept(self, text: str, rows: pa.Table) -> list[int]:
        """Return the numbers of the rows that a WHERE keeps."""


def plain(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return values that compare exactly: times as numbers of microseconds with their kind."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    type_ = values.type
    if is_stored(type_):
        return [None if text is None else Decimal(text) for text in to_text(values).to_pylist()]
    if isinstance(type_, pa.ExtensionType):
        return plain(values.storage)
    if pa.types.is_dictionary(type_):
        return plain(values.dictionary_decode())
    if pa.types.is_timestamp(type_):
        scaled = values.cast(pa.timestamp("ns" if type_.unit == "ns" else "us", type_.tz))
        numbers = scaled.cast(pa.int64()).to_pylist()
        factor = 1 if type_.unit == "ns" else 1000
        return [None if each is None else ("time", each * factor) for each in numbers]
    if pa.types.is_date(type_):
        days = values.cast(pa.date32()).cast(pa.int32()).to_pylist()
        return [None if each is None else ("day", each) for each in days]
    if pa.types.is_time(type_):
        if type_ not in (pa.time64("us"), pa.time64("ns")):
            values = values.cast(pa.time64("us"))
        factor = 1 if values.type.unit == "ns" else 1000
        ticks = values.cast(pa.int64()).to_pylist()
        return [None if each is None else ("clock", each * factor) for each in ticks]
    found: list[Any] = values.to_pylist()
    return found


def alike(one: Any, other: Any) -> bool:
    """Whether two plain values are equal, NaN to NaN; numbers of different types exactly."""
    if one is None or other is None:
        return one is other
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other) or bool(one != one and other != other)  # noqa: PLR0124 - NaN


@dataclass
class DuckDb:
    """DuckDB over an Arrow table in memory."""

    zone: str = UTC

    def _asked(self, query: str, rows: pa.Table) -> pa.Table:
        import duckdb

        session = _duckdb(self.zone)
        session.register("t", rows)
        try:
            return session.sql(query).to_arrow_table()
        except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
            raise LackingError(str(error)) from error
        except duckdb.NotImplementedException as error:
            raise LackingError(str(error)) from error
        except duckdb.Error as error:
            if any(word in str(error) for word in ("Binder Error", "Unimplemented type")):
                raise LackingError(str(error)) from error
            raise ValueFailure(str(error)) from error

    def values(self, text: str, rows: pa.Table, *, optimised: bool = True) -> list[Any]:
        session = _duckdb(self.zone)
        session.execute(f"PRAGMA {'enable' if optimised else 'disable'}_optimizer")
        try:
            return plain(self._asked(f"SELECT ({text}) AS x FROM t", rows)["x"])
        finally:
            _duckdb(self.zone).execute("PRAGMA enable_optimizer")

    def kept(self, text: str, rows: pa.Table) -> list[int]:
        found = self._asked(f'SELECT "{ROW}" FROM t WHERE {text}', numbered(rows))
        return sorted(found[ROW].to_pylist())


def _duckdb(zone: str) -> Any:
    """The session of a zone; another one after an error that ended DuckDB's database."""
    import duckdb

    try:
        _duckdb_in(zone).execute("SELECT 1").fetchall()
    except duckdb.FatalException:
        _duckdb_in.cache_clear()
    return _duckdb_in(zone)


@cache
def _duckdb_in(zone: str) -> Any:
    session = duckdb_session()
    session.execute(f"SET TimeZone = '{zone}'")
    return session


@dataclass
class DataFusion:
    """DataFusion over record batches in memory."""

    def _asked(self, query: str, rows: pa.Table) -> pa.Table:
        import datafusion

        config = datafusion.SessionConfig().with_target_partitions(1)
        context = datafusion.SessionContext(config)
        context.register_record_batches("t", [rows.combine_chunks().to_batches()])
        try:
            return context.sql(query).to_arrow_table()
        except BaseException as error:
            if type(error).__name__ not in (
                "Exception",
                "ValueError",
                "PanicException",
                "ArrowInvalid",
            ):
                raise
            if any(word in str(error) for word in _DATAFUSION_LACKS):
                raise LackingError(str(error)) from error
            raise ValueFailure(str(error)) from error

    def values(self, text: str, rows: pa.Table, *, optimised: bool = True) -> list[Any]:
        return plain(self._asked(f"SELECT ({text}) AS x FROM t", rows)["x"])

    def kept(self, text: str, rows: pa.Table) -> list[int]:
        found = self._asked(f'SELECT "{ROW}" FROM t WHERE {text}', numbered(rows))
        return sorted(found[ROW].to_pylist())


_DATAFUSION_LACKS = (
    *("Error during planning", "not supported", "Invalid function", "not implemented"),
    *("type_coercion", "LIKE does not support escape_char"),
    *("SQL error", "Schema error", "Unsupported", "must be constant", "NotImplemented"),
    *(
        "ParserError(",
        "Invalid function",
        "requires a",
        "No function matches",
        "expected",
        "should be",
        "Expected",
    ),
)


@dataclass
class Postgres:
    """PostgreSQL over a temporary table."""

    zone: str = UTC

    def values(self, text: str, rows: pa.Table, *, optimised: bool = True) -> list[Any]:
        found = self._asked(f'SELECT ({text}) FROM t ORDER BY "{ROW}"', rows)
        return [_plain_of_postgres(value) for (value,) in found]

    def kept(self, text: str, rows: pa.Table) -> list[int]:
        return sorted(row for (row,) in self._asked(f'SELECT "{ROW}" FROM t WHERE {text}', rows))

    def _asked(self, query: str, rows: pa.Table) -> list[Any]:
        import psycopg

        held = hold(rows)
        try:
            held.execute(f"SET TimeZone = '{self.zone}'")
            cursor = held.execute(query.replace("%", "%%"), ())
            found: list[Any] = cursor.fetchall()
            if cursor.description[0].type_code == _REAL:  # its text has the shortest digits
                found = [(value and float(np.float32(value)),) for (value,) in found]
        except (psycopg.errors.SyntaxError, psycopg.errors.ProgrammingError) as error:
            raise LackingError(str(error)) from error
        except psycopg.errors.FeatureNotSupported as error:
            raise LackingError(str(error)) from error
        except psycopg.Error as error:
            raise ValueFailure(str(error)) from error
        finally:
            held.execute("SET TimeZone = 'UTC'")
        return found


_REAL = 700  # the number of PostgreSQL's type


@dataclass
class Spark:
    """Spark over rows of the driver: its optimiser computes them, without a job.

    Planning costs most: `prepare` asks for many texts over the same rows at once.
    """

    zone: str = UTC
    _rows: pa.Table | None = None
    _values: dict[str, list[Any]] = field(default_factory=dict)
    _kept: dict[str, list[int]] = field(default_factory=dict)

    def prepare(self, texts: list[str], conditions: list[str], rows: pa.Table) -> None:
        """Ask for values and conditions over all rows; texts that fail are asked for later."""
        self._rows = rows
        self._halved(texts, self._ask_values)
        self._halved(conditions, self._ask_kept)

    def _halved(self, texts: list[str], ask: Callable[[list[str]], None]) -> None:
        """Ask for all texts at once, or for each half if one of them fails."""
        try:
            if texts:
                ask(texts)
        except (LackingError, ValueFailure):
            half = len(texts) // 2
            if half:
                self._halved(texts[:half], ask)
                self._halved(texts[half:], ask)

    def _ask_values(self, texts: list[str]) -> None:
        columns = [f"({text}) AS x{place}" for place, text in enumerate(texts)]
        found = self._asked(lambda frame: frame.selectExpr(*columns), self._given)
        self._values |= {
            text: plain(column) for text, column in zip(texts, found.columns, strict=True)
        }

    def _ask_kept(self, conditions: list[str]) -> None:
        def chosen(frame: Any) -> Any:
            branches = [
                frame.where(text).selectExpr(f"{place} AS place", f"`{ROW}`")
                for place, text in enumerate(conditions)
            ]
            return reduce(lambda one, other: one.unionAll(other), branches)

        found = self._asked(chosen, numbered(self._given))
        kept: list[list[int]] = [[] for _ in conditions]
        for place, row in zip(found["place"].to_pylist(), found[ROW].to_pylist(), strict=True):
            kept[place].append(row)
        self._kept |= {text: sorted(each) for text, each in zip(conditions, kept, strict=True)}

    @property
    def _given(self) -> pa.Table:
        assert self._rows is not None
        return self._rows

    def values(self, text: str, rows: pa.Table, *, optimised: bool = True) -> list[Any]:
        if rows is self._rows and text in self._values:
            return self._values[text]
        return plain(self._asked(lambda frame: frame.selectExpr(f"({text}) AS x"), rows)["x"])

    def kept(self, text: str, rows: pa.Table) -> list[int]:
        if rows is self._rows and text in self._kept:
            return self._kept[text]

        def chosen(frame: Any) -> Any:
            return frame.where(text).select(f"`{ROW}`")

        return sorted(self._asked(chosen, numbered(rows))[ROW].to_pylist())

    def _asked(self, ask: Callable[[Any], Any], rows: pa.Table) -> pa.Table:
        from pyspark.errors import AnalysisException, ParseException, PySparkException

        (session,) = SESSIONS
        session.conf.set(_ZONE, self.zone)
        batch = rows.combine_chunks().to_batches()[0]
        frame = in_driver(session, batch, schema_of(rows.schema)[0])
        try:
            return ask(frame).toArrow()
        except (AnalysisException, ParseException) as error:
            raise LackingError(str(error)) from error
        except PySparkException as error:
            raise ValueFailure(str(error)) from error


SESSIONS: list[Any] = []
"""The Spark session that judges, in ANSI mode, as long as there is one."""
_ZONE = "spark.sql.session.timeZone"
_JUDGING = {_ZONE: UTC, "spark.sql.ansi.enabled": "true", "spark.sql.timeType.enabled": "true"}


@contextmanager
def judging(session: Any) -> Iterator[None]:
    """Let a Spark session judge by `_JUDGING`; put its settings back afterwards."""
    before = {name: session.conf.get(name, None) for name in _JUDGING}
    for name, value in _JUDGING.items():
        session.conf.set(name, value)
    SESSIONS.append(session)
    try:
        yield
    finally:
        SESSIONS.remove(session)
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)


def _plain_of_postgres(value: Any) -> Any:
    import datetime as dt
    import uuid

    if isinstance(value, dt.datetime):
        offset = value.utcoffset() or dt.timedelta()  # of a year beyond 9999 in UTC, too
        since = value.replace(tzinfo=None) - dt.datetime(1970, 1, 1) - offset
        return ("time", (since // dt.timedelta(microseconds=1)) * 1000)
    if isinstance(value, dt.date):
        return ("day", (value - dt.date(1970, 1, 1)).days)
    if isinstance(value, dt.time):
        ticks = ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
        return ("clock", ticks * 1000)
    return value.bytes if isinstance(value, uuid.UUID) else value


def numbered(rows: pa.Table) -> pa.Table:
    """Add the rows' numbers as a column."""
    return rows.append_column(ROW, pa.array(range(rows.num_rows), pa.int64()))


def taken(rows: pa.Table, kept: list[int]) -> pa.Table:
    """Return some rows; the same table if these are all."""
    if len(kept) == rows.num_rows:
        return rows
    return rows.take(pa.array(kept, pa.int64()))


Make = Callable[[], Judge]
__all__ = ["DataFusion", "DuckDb", "Judge", "LackingError", "Postgres", "ValueFailure", "alike"]
