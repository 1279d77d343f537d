"""One SQL file, run in two sessions of Spark: over Spark's tables and views, and over ours.

The first session runs everything. Each table and temporary view that it makes is copied into a
table of ours, whose rows are spread over overlapping parts and mostly written more than once, and
the second session has a view of that under the same name. A query must give the same rows in both,
under the same names and types, pruned by `sql` as a user's query is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import rowsieve as rs
from rowsieve.errors import RowsieveError
from rowsieve.providers.spark import explain_prune, read
from rowsieve.providers.spark import sql as pruned_sql
from tests.spark_sql.identity import register_identity
from tests.spark_sql.inline_tables import with_views

_KEY = "rowsieve row"
_NUMBERS = count()
_IN_CATALOG = re.compile(
    r"(CREATE\s+(OR\s+REPLACE\s+)?((EXTERNAL\s+)?TABLE|DATABASE|SCHEMA|VIEW|FUNCTION)|INSERT|ALTER"
    r"|DROP\s+(TABLE|DATABASE|SCHEMA|FUNCTION)|TRUNCATE|ANALYZE|MSCK|REPAIR|LOAD|COMMENT|RESTORE"
    r"|CREATE\s+(OR\s+REPLACE\s+)?GLOBAL|UPDATE|DELETE|MERGE|USE)\b",
    re.IGNORECASE,
)
_QUERY = re.compile(r"[\s(]*(SELECT|WITH|FROM|VALUES|TABLE)\b", re.IGNORECASE)
_WRITE = re.compile(r"\bINSERT\s+(INTO|OVERWRITE)\b", re.IGNORECASE)  # also after WITH or FROM
_VIEW = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?TEMP(?:ORARY)?\s+VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?(`[^`]+`|\w+)",
    re.IGNORECASE,
)
_ALTERED = re.compile(r"ALTER\s+VIEW\s+(`[^`]+`|\w+)\s+AS\b", re.IGNORECASE)
_SOME_ROWS = re.compile(r"\b(LIMIT|OFFSET|FETCH)\b", re.IGNORECASE)  # which ones, Spark decides
_ORDER = re.compile(r"\bORDER\s+BY\b", re.IGNORECASE)
_DIGITS = 9  # of a double that are compared: the order of a sum depends on the tasks


@dataclass(slots=True)
class Outcome:
    """How many queries were compared, the lines of others, and what was wrong: (line, message).

    over_our_tables, pruned: how many of the compared ones read a table of ours, and less of it
    undecided: Spark's own answers differ from each other, in another order of rows or time
    raised: fails over our tables alone; answered: fails over Spark's tables alone
    """

    compared: int = 0
    over_our_tables: int = 0
    pruned: int = 0
    failed_in_both: list[int] = field(default_factory=list)
    undecided: list[int] = field(default_factory=list)
    tables: int = 0
    tables_of_spark: int = 0
    wrong: list[tuple[int, str]] = field(default_factory=list)
    raised: list[tuple[int, str]] = field(default_factory=list)
    answered: list[tuple[int, str]] = field(default_factory=list)


class Pair:
    """Two sessions of one file; `merges`: our tables have a hidden key and several versions."""

    def __init__(
        self, spark: Any, folder: Path, settings: dict[str, str], *, merges: bool = True
    ) -> None:
        self._settings = settings
        self.theirs, self.ours = self._session(spark), self._session(spark)
        self.outcome = Outcome()
        self._folder = folder
        self._merges = merges
        self._shadows: set[str] = set()
        self._inline: dict[str, str | None] = {}

    def _session(self, spark: Any) -> Any:
        """Another session, with the settings of the file and `udf`."""
        session = spark.newSession()
        for name, value in self._settings.items():
            session.conf.set(name, value)
        register_identity(session)
        return session

    def give(self, name: str, rows: pa.Table) -> None:
        """Make a view of these rows in both sessions."""
        self.theirs.createDataFrame(rows).coalesce(1).createOrReplaceTempView(name)
        self._shadow(name)

    def run(self, line: int, sql: str) -> None:
        """Run a statement in one or both sessions, or compare a query."""
        writes = _WRITE.search(sql) is not None
        if _QUERY.match(sql) and not writes:
            self._compare(line, sql)
            return
        if _ran(self.theirs, sql) is not None:
            self.outcome.failed_in_both.append(line)
            return
        if writes or _IN_CATALOG.match(sql):
            self._shadow_tables()
            if (view := _ALTERED.match(sql)) and not self._shadow(view[1].strip("`")):
                _ran(self.ours, sql)
        elif view := _VIEW.match(sql):
            if not self._shadow(view[1].strip("`")):
                _ran(self.ours, sql)
        else:
            _ran(self.ours, sql)

    def end(self) -> None:
        """Drop what the file left in the catalog that all sessions share."""
        for row in self.theirs.sql("SHOW DATABASES").collect():
            if row[0] != "default":
                self.theirs.sql(f"DROP DATABASE `{row[0]}` CASCADE")
        self.theirs.sql("USE default")
        for row in self.theirs.sql("SHOW TABLES").collect():
            if not row.isTemporary and _ran(self.theirs, f"DROP TABLE `{row.tableName}`"):
                _ran(self.theirs, f"DROP VIEW `{row.tableName}`")

    def _compare(self, line: int, sql: str) -> None:
        expected = _answer(self.theirs.sql, sql)
        over_ours = self._with_views(sql)
        found = _answer(lambda text: pruned_sql(self.ours, text), over_ours)
        if isinstance(expected, Exception) and isinstance(found, Exception):
            self.outcome.failed_in_both.append(line)
        elif expected == found:
            self.outcome.compared += 1
            reads = explain_prune(self.ours.sql(over_ours)).reads
            self.outcome.over_our_tables += bool(reads)
            self.outcome.pruned += any(each.parts_read < each.parts for each in reads)
        elif self._is_unsteady(sql, expected, found):
            self.outcome.undecided.append(line)
        elif isinstance(found, Exception):
            self.outcome.raised.append((line, f"{_first(found)}\n{sql}"))
        elif isinstance(expected, Exception):
            self.outcome.answered.append((line, f"{_first(expected)}\n{sql}"))
        else:
            missing, more = expected[1] - found[1], found[1] - expected[1]
            shown = f"missing {list(missing)[:3]}, too many {list(more)[:3]}"
            types = "" if expected[0] == found[0] else f"; {found[0]} instead of {expected[0]}"
            self.outcome.wrong.append((line, f"{shown}{types}\n{sql}"))

    def _is_unsteady(self, sql: str, expected: Any, found: Any) -> bool:
        """Whether Spark's own tables give another answer when they are asked again."""
        if isinstance(expected, Exception) or isinstance(found, Exception):
            return False
        takes_some = _SOME_ROWS.search(sql) and not _ORDER.search(sql)
        if takes_some and expected[1].total() == found[1].total():
            return True
        again = [_answer(self.theirs.sql, sql)]
        names = [name for name in self._shadows if re.search(rf"\b{name}\b", sql, re.I)]
        for seed in range(2):  # the same rows, from one task, in two other orders
            session = self._session(self.theirs)
            for name in names:
                rows = self.theirs.table(f"`{name}`").toArrow()
                order = np.random.default_rng(seed).permutation(rows.num_rows)
                other = session.createDataFrame(rows.take(pa.array(order)))
                other.coalesce(1).createOrReplaceTempView(name)
            again.append(_answer(session.sql, sql))
        return any(each != expected for each in again)

    def _with_views(self, sql: str) -> str:
        """The query over views of ours, unless an inline table stands where no query may stand."""
        text = with_views(sql, self._view_of)
        try:
            self.ours._jsparkSession.sessionState().sqlParser().parsePlan(text)
        except (PySparkException, Py4JError):
            return sql
        return text

    def _view_of(self, inline_table: str) -> str | None:
        """The name of a view of ours with the rows of an inline table; None if none can be made."""
        if inline_table not in self._inline:
            name = f"inline_table_{len(self._inline)}"
            try:
                rows = self.theirs.sql(inline_table)
                shadowed = self._shadow(name, rows)
            except (PySparkException, Py4JError):
                shadowed = False
            self._inline[inline_table] = name if shadowed else None
        return self._inline[inline_table]

    def _shadow_tables(self) -> None:
        """Give the second session a view of our copy of each table of the current database."""
        self.ours._jsparkSession.sessionState().catalog().invalidateAllCachedTables()
        current = str(self.theirs.catalog.currentDatabase())
        if _ran(self.ours, f"USE `{current}`") is not None:  # the file has dropped it
            return
        for name in self._shadows & {row.tableName for row in self._temporary()}:
            self._shadows.discard(name)
            self.ours.catalog.dropTempView(name)
        for row in self.theirs.sql("SHOW TABLES").collect():
            if not row.isTemporary:
                self._shadow(row.tableName)

    def _temporary(self) -> list[Any]:
        theirs = {r.tableName for r in self.theirs.sql("SHOW TABLES").collect() if r.isTemporary}
        found = self.ours.sql("SHOW TABLES").collect()
        return [r for r in found if r.isTemporary and r.tableName not in theirs]

    def _shadow(self, name: str, theirs: Any = None) -> bool:
        """Whether the second session now has a view of ours under this name, with these rows."""
        try:
            theirs = self.theirs.table(f"`{name}`") if theirs is None else theirs
            wanted = [(f.name, f.dataType) for f in theirs.schema]
            rows = theirs.toArrow()
            uri = str(self._folder / f"t{next(_NUMBERS)}")
            table = stored(uri, rows, merges=self._merges)
            frame = read(self.ours, table.uri, columns=rows.schema.names)
        except (RowsieveError, PySparkException, Py4JError, pa.ArrowException):
            self.outcome.tables_of_spark += 1
            return False
        if [(f.name, f.dataType) for f in frame.schema] != wanted:
            self.outcome.tables_of_spark += 1
            return False
        frame.createOrReplaceTempView(name)
        self._shadows.add(name)
        self.outcome.tables += 1
        return True


def stored(uri: str, rows: pa.Table, *, merges: bool) -> rs.Table:
    """A table of ours with these rows, in several parts; with `merges` most are written twice."""
    half = rows.num_rows // 2
    if not merges:
        table = rs.create_table(uri, rows.slice(0, half))
        table.append(rows.slice(half))
        return table
    keys = pa.array(range(rows.num_rows), pa.int64())
    field_ = pa.field(_KEY, pa.int64(), nullable=False)
    keyed = rows.append_column(field_, keys)
    stale = rows.take(pa.array([*range(1, rows.num_rows), 0][: rows.num_rows], pa.int64()))
    table = rs.create_table(uri, stale.append_column(field_, keys), [_KEY])
    table.upsert(keyed.slice(0, half))
    table.upsert(keyed.slice(half))
    return table


def _answer(run: Any, sql: str) -> tuple[list[tuple[str, str]], Counter[str]] | Exception:
    """The names and types, and the rows in any order; or the failure."""
    try:
        frame = run(sql)
        rows = Counter(repr(_plain(tuple(row))) for row in frame.collect())
        columns = [(each.name, each.dataType.simpleString()) for each in frame.schema]
    except (PySparkException, Py4JError, RowsieveError) as error:
        return error
    except (ValueError, OverflowError) as error:  # Python has no such date, or Spark no such type
        return error
    return columns, rows


def _ran(session: Any, sql: str) -> Exception | None:
    """The failure of a statement that answers nothing."""
    try:
        session.sql(sql).collect()
    except (PySparkException, Py4JError) as error:
        return error
    return None


def _plain(value: Any) -> Any:
    match value:
        case float():
            return f"{value:.{_DIGITS}g}"
        case tuple() | list():
            return [_plain(each) for each in value]
        case dict():
            return sorted((repr(_plain(k)), _plain(v)) for k, v in value.items())
        case _:
            return value


def _first(error: Exception) -> str:
    lines: Sequence[str] = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
