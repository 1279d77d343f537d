"""The readers of a table, the language that each takes conditions in, and who judges them.

A reader that joins is a row of `ALONE` or `WITH_SPARK`; a language, a row of `LANGUAGES`.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from rowsieve import Session, Table
from rowsieve.bridges.languages import bridge_named
from rowsieve.errors import InvalidInput, InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.types.schema import Schema
from tests.bridges.against_engines.judges import SESSIONS
from tests.bridges.spark_columns.nasty import in_driver
from tests.duckdb_sessions import duckdb_session

Ids = list[int]
REFUSALS = (InvalidPredicate, UnsupportedOperation, InvalidInput)


class Asked(Protocol):
    """Rows of a table, asked through a reader or in an engine's memory."""

    def kept(self, condition: Any) -> Ids:
        """Return the sorted ids of the rows that a filter keeps."""

    def count(self, condition: Any) -> int:
        """Count the rows that a filter keeps."""


class Judge(Protocol):
    """An engine over the visible rows in its memory."""

    def truths(self, condition: Any) -> tuple[Ids, Ids, Ids]:
        """Evaluate the condition on each row: ids where it is TRUE, FALSE and NULL."""

    def kept(self, condition: Any) -> Ids:
        """Return the sorted ids of the rows that a filter keeps."""


@dataclass(frozen=True)
class Language:
    """Conditions of an engine: how they are written and negated, and who judges them."""

    write: Callable[[ir.Predicate, Schema, random.Random], Any]
    negated: Callable[[Any], Any]
    unknown: Callable[[Any], Any]
    judge: Callable[[Table], Judge]


@dataclass(frozen=True)
class Reader:
    """A way to read a table.

    `raises`: it fails exactly where its judge fails. An expensive one is asked every so many
    conditions.
    """

    language: str
    over: Callable[[Table], Asked]
    raises: bool = False
    every: int = 1


def truths_of(ids: pa.ChunkedArray, values: pa.ChunkedArray) -> tuple[Ids, Ids, Ids]:
    """Ids by the value of a condition."""
    pairs = list(zip(ids.to_pylist(), values.to_pylist(), strict=True))
    true, false, null = (
        sorted(i for i, value in pairs if value is wanted) for wanted in (True, False, None)
    )
    return true, false, null


# Our conditions, evaluated as a column of each row or used as a filter


@dataclass(frozen=True)
class Ours:
    """A condition of ours under the rules of a dialect's session."""

    predicate: ir.Predicate
    dialect: str
    session: Session | None

    def scan(self, table: Table, pruning: Any) -> Any:
        return table.scan(
            self.predicate, ["id"], dialect=self.dialect, session=self.session, pruning=pruning
        )


_ZONES = ("America/New_York", "Asia/Kathmandu", "Europe/Berlin", "UTC")


def _ours(predicate: ir.Predicate, schema: Schema, chance: random.Random) -> Ours:
    dialect = chance.choice(("postgres", "duckdb", "datafusion", "spark"))
    session = None
    if dialect != "datafusion" and chance.random() < 0.3:
        modes = {"ansi": chance.random() < 0.5} if dialect == "spark" else {}
        session = Session(time_zone=chance.choice(_ZONES), **modes)
    del schema
    return Ours(predicate, dialect, session)


@dataclass(frozen=True)
class Projected:
    """Judge: the condition as a column of all rows, which no statistics prune."""

    table: Table

    def truths(self, condition: Ours) -> tuple[Ids, Ids, Ids]:
        columns = {"id": "id", "truth": ir.Condition(condition.predicate)}
        found = self.table.scan(
            columns=columns,
            dialect=condition.dialect,
            session=condition.session,
            pruning="off",
        ).to_arrow()
        return truths_of(found["id"], found["truth"])

    def kept(self, condition: Ours) -> Ids:
        return self.truths(condition)[0]


@dataclass(frozen=True)
class Scanned:
    """`scan` with a condition of ours."""

    table: Table
    pruning: str

    def kept(self, condition: Ours) -> Ids:
        return sorted(condition.scan(self.table, self.pruning).to_arrow()["id"].to_pylist())

    def count(self, condition: Ours) -> int:
        return int(condition.scan(self.table, self.pruning).count())


# Text of SQL


def _text(dialect: str) -> Callable[[ir.Predicate, Schema, random.Random], str]:
    bridge = bridge_named(dialect)

    def write(predicate: ir.Predicate, schema: Schema, chance: random.Random) -> str:
        del chance
        bind(predicate, schema, bridge.semantics)
        return str(bridge.writes(predicate, schema, bridge.semantics).exact())

    return write


@dataclass(frozen=True)
class Queried:
    """Reader and judge: queries of an engine over a relation of that name."""

    ask: Callable[[str], pa.Table]

    def truths(self, condition: str) -> tuple[Ids, Ids, Ids]:
        found = self.ask(f"SELECT id, ({condition}) AS truth FROM t")
        return truths_of(found["id"], found["truth"])

    def kept(self, condition: str) -> Ids:
        return sorted(self.ask(f"SELECT id FROM t WHERE {condition}")["id"].to_pylist())

    def count(self, condition: str) -> int:
        return int(self.ask(f"SELECT count(*) AS n FROM t WHERE {condition}")["n"][0].as_py())


def visible(table: Table) -> pa.Table:
    """All rows, as engines see them."""
    return table.to_dataset().to_table()


def _in_duckdb(relation: Any, *, copied: bool) -> Queried:
    """DuckDB over Arrow data; copied into its own memory, it filters by itself."""
    session = duckdb_session()
    session.execute("SET TimeZone = 'UTC'")
    session.register("given" if copied else "t", relation)
    if copied:
        session.execute("CREATE OR REPLACE TEMP TABLE t AS SELECT * FROM given")

    def ask(query: str) -> pa.Table:
        found: pa.Table = session.sql(query).to_arrow_table()
        return found

    return Queried(ask)


def _in_datafusion(context: Any) -> Queried:
    def ask(query: str) -> pa.Table:
        found: pa.Table = context.sql(query).to_arrow_table()
        return found

    return Queried(ask)


def _datafusion_memory(table: Table) -> Queried:
    import datafusion

    context = datafusion.SessionContext()
    context.register_record_batches("t", [visible(table).combine_chunks().to_batches()])
    return _in_datafusion(context)


def _plain_datafusion(table: Table) -> Queried:
    import datafusion

    context = datafusion.SessionContext()
    context.register_table("t", table.to_datafusion())
    return _in_datafusion(context)


def _own_datafusion(table: Table) -> Queried:
    from rowsieve.providers.datafusion import SessionContext

    context = SessionContext()
    context.register_table("t", table)
    return _in_datafusion(context)


@dataclass(frozen=True)
class TextScanned:
    """`scan` with text of a dialect, or another engine's expression."""

    table: Table
    dialect: str

    def kept(self, condition: Any) -> Ids:
        found = self.table.scan(condition, ["id"], dialect=self.dialect).to_arrow()
        return sorted(found["id"].to_pylist())

    def count(self, condition: Any) -> int:
        return self.table.count(condition, dialect=self.dialect)


# Expressions of polars


def _polars(predicate: ir.Predicate, schema: Schema, chance: random.Random) -> Any:
    del chance
    bridge = bridge_named("polars")
    bind(predicate, schema, bridge.semantics)
    return bridge.writes(predicate, schema, bridge.semantics).exact()


@dataclass(frozen=True)
class Framed:
    """Reader and judge: a lazy frame of polars."""

    frame: Any

    def truths(self, condition: Any) -> tuple[Ids, Ids, Ids]:
        found = self.frame.select("id", truth=condition).collect().to_arrow()
        return truths_of(found["id"], found["truth"])

    def kept(self, condition: Any) -> Ids:
        return sorted(self.frame.filter(condition).select("id").collect()["id"].to_list())

    def count(self, condition: Any) -> int:
        import polars as pl

        return int(self.frame.filter(condition).select(pl.len()).collect().item())


def _polars_memory(table: Table) -> Framed:
    import polars as pl

    frame = pl.from_arrow(visible(table))
    assert isinstance(frame, pl.DataFrame)
    return Framed(frame.lazy())


def _polars_dataset(table: Table) -> Framed:
    import polars as pl

    return Framed(pl.scan_pyarrow_dataset(table.to_dataset()))


# Text of Spark's SQL, in the session of the tests


def _in_spark(frame: Any, run: Callable[[Any, str], Any] | None = None) -> Queried:
    """A frame as the relation `t`; by default Spark runs the queries, without us."""
    (session,) = SESSIONS

    def ask(query: str) -> pa.Table:
        frame.createOrReplaceTempView("t")
        found: pa.Table = (session.sql(query) if run is None else run(session, query)).toArrow()
        return found

    return Queried(ask)


def _spark_memory(table: Table) -> Queried:
    """Rows of the driver, over which the optimiser computes conditions, without a job."""
    (session,) = SESSIONS
    (batch,) = table.scan().to_arrow().combine_chunks().to_batches() or [None]
    return _in_spark(in_driver(session, batch, table.handle.pinned.schema))


def _to_spark(table: Table) -> Queried:
    (session,) = SESSIONS
    return _in_spark(table.to_spark(session))


def _spark_source(table: Table) -> Queried:
    from rowsieve.providers.spark import read

    (session,) = SESSIONS
    return _in_spark(read(session, table.uri, routes=["source"]))


def _pruned_spark(table: Table) -> Queried:
    from rowsieve.providers.spark import sql

    (session,) = SESSIONS
    return _in_spark(table.to_spark(session), sql)


@dataclass(frozen=True)
class SparkScanned:
    """`to_spark` with text as its condition."""

    table: Table

    def _frame(self, condition: str) -> Any:
        (session,) = SESSIONS
        return self.table.to_spark(session, where=condition, columns=["id"])

    def kept(self, condition: str) -> Ids:
        return sorted(self._frame(condition).toArrow()["id"].to_pylist())

    def count(self, condition: str) -> int:
        return int(self._frame(condition).count())


def _sql(dialect: str, judge: Callable[[Table], Judge]) -> Language:
    return Language(
        _text(dialect), lambda text: f"NOT ({text})", lambda text: f"({text}) IS NULL", judge
    )


LANGUAGES: Mapping[str, Language] = {
    "ours": Language(
        _ours,
        lambda c: Ours(ir.Not(c.predicate), c.dialect, c.session),
        lambda c: Ours(ir.IsNull(ir.Condition(c.predicate)), c.dialect, c.session),
        Projected,
    ),
    "duckdb": _sql("duckdb", lambda table: _in_duckdb(visible(table), copied=True)),
    "datafusion": _sql("datafusion", _datafusion_memory),
    "spark": _sql("spark", _spark_memory),
    "polars": Language(_polars, lambda e: ~e, lambda e: e.is_null(), _polars_memory),
}
ALONE: Mapping[str, Reader] = {
    "scan": Reader("ours", lambda table: Scanned(table, "on"), raises=True),
    "soft scan": Reader("ours", lambda table: Scanned(table, "soft"), raises=True, every=5),
    "whole scan": Reader("ours", lambda table: Scanned(table, "off"), raises=True, every=5),
    "duckdb": Reader("duckdb", lambda table: _in_duckdb(table.to_dataset(), copied=False)),
    "duckdb text": Reader("duckdb", lambda table: TextScanned(table, "duckdb")),
    "datafusion": Reader("datafusion", _plain_datafusion),
    "our datafusion": Reader("datafusion", _own_datafusion),
    "datafusion text": Reader("datafusion", lambda table: TextScanned(table, "datafusion")),
    "polars": Reader("polars", _polars_dataset),
    "polars frame": Reader("polars", lambda table: Framed(table.scan_polars())),
    "polars expression": Reader("polars", lambda table: TextScanned(table, "postgres")),
}
WITH_SPARK: Mapping[str, Reader] = {
    "spark": Reader("spark", _to_spark),
    "spark source": Reader("spark", _spark_source, every=3),
    "our spark": Reader("spark", _pruned_spark),
    "spark condition": Reader("spark", SparkScanned),
    "spark text": Reader("spark", lambda table: TextScanned(table, "spark")),
}
READERS: Mapping[str, Reader] = {**ALONE, **WITH_SPARK}


@contextmanager
def place_for(readers: Collection[str]) -> Iterator[str | None]:
    """Make a place for the table of these readers: a folder where Spark reads; None for memory."""
    if WITH_SPARK.keys().isdisjoint(readers):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        yield f"{folder}/t"
