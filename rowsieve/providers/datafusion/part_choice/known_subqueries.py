"""Runs the subqueries of a query first, so that their values choose parts of its tables.

`id IN (SELECT …)` becomes `id IN (SELECT * FROM rows)` over its rows, and `ts > (SELECT max(ts) …)`
a comparison with its value. DataFusion then plans, prunes and runs a query without them.

Soundness: only a subquery that can be planned alone is replaced: inside it, its own tables and
columns have precedence over those of the outer query, so it means the same there. A query with WITH
may give a table another meaning, and is left as it is. So is a subquery whose value may change
within a statement, that fails, or that has too many rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import datafusion
import pyarrow as pa

from rowsieve.providers.datafusion.own_table import OwnTable
from rowsieve.providers.datafusion.part_choice.subquery_values import (
    MAX_VALUES,
    UNSTABLE,
    is_ordered,
)
from rowsieve.providers.datafusion.query_plan import QueryPlan
from rowsieve.providers.datafusion.rows_in_memory import batches_of
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.statements.query_words import searchable
from rowsieve.statements.subqueries import may_have_subqueries, replaced, subqueries
from rowsieve.statements.tokens import tokens_of, words_of

_BEFORE: Final = "x"  # so that EXPLAIN is not first: sqlglot would make the rest one token
_REPEATED_ROWS: Final = 1
"""A subquery of `IN` may read as many rows of our tables as the outer query, times this."""


@dataclass(slots=True)
class KnownQuery:
    """A query in place of another: its text, the tables of ours in it, its planner and values."""

    query: str
    named: Mapping[str, OwnTable]
    plan: Callable[..., datafusion.DataFrame]
    values: dict[str, pa.Scalar] = field(default_factory=dict)
    rows: dict[str, pa.Table] = field(default_factory=dict)


Runner = Callable[[str, Mapping[str, OwnTable]], datafusion.DataFrame]
"""Plans the text of a subquery over these tables of ours."""


@contextmanager
def known_query(
    session: OwnSession,
    query: str,
    named: Mapping[str, OwnTable],
    plan: Callable[..., datafusion.DataFrame],
    *,
    asks: bool,
) -> Iterator[KnownQuery]:
    """The query with the values of its subqueries, while their rows are registered.

    `plan` has DataFusion plan a text, for which it `asks` catalogs of ours for tables.
    """

    def run(text: str, inner: Mapping[str, OwnTable]) -> datafusion.DataFrame:
        inside = partial(plan, text=text)
        return QueryPlan(session, text, inner, (), inside, asks=asks).frame()

    known = _known(query, named, plan, run)
    try:
        for name, rows in known.rows.items():
            batches = batches_of(rows)
            session.register_record_batches(name, [batches])
        yield known
    finally:
        for name in known.rows:
            datafusion.SessionContext.deregister_table(session, name)


def _known(
    query: str,
    named: Mapping[str, OwnTable],
    plan: Callable[..., datafusion.DataFrame],
    run: Runner,
) -> KnownQuery:
    as_it_is = KnownQuery(query, named, plan)
    if not may_have_subqueries(query) or not any(own.has_choice for own in named.values()):
        return as_it_is
    tokens = tokens_of(query)
    if tokens is None or {"WITH", "INTO"} & set(tokens.words):
        return as_it_is
    spans = list(subqueries(tokens))
    outer = _tables_in(replaced(tokens, spans, ["()"] * len(spans)), named)
    most_rows = _REPEATED_ROWS * sum(map(_row_count, outer.values()))
    if not any(own.has_choice for own in outer.values()):
        return as_it_is
    known = KnownQuery(query, named, plan)
    texts = []
    for start, stop in spans:
        text = tokens.piece(start + 1, stop - 1)
        inner = _tables_in(text, named)
        new = None
        if UNSTABLE.search(text) is None:
            if tokens.words[start - 1] != "IN":
                new = _value(known, run, text, inner)
            elif sum(map(_row_count, inner.values())) <= most_rows:
                new = _members(known, run, text, inner)
        texts.append(tokens.piece(start, stop) if new is None else new)
    if not (known.values or known.rows):
        return as_it_is
    known.query = replaced(tokens, spans, texts)
    known.named = _tables_in(known.query, named)
    known.plan = partial(plan, text=known.query, values=known.values or None)
    return known


def _new_name() -> str:
    """A name that `OWN_ROWS` matches."""
    return f"rowsieve_subquery_{uuid.uuid4().hex}"


def _value(known: KnownQuery, run: Runner, text: str, inner: Mapping[str, OwnTable]) -> str | None:
    """A parameter with the value of a subquery, NULL without a row; None if it is not known."""
    rows = _rows(run, text, inner, 1)
    if rows is None or rows.num_columns != 1 or not is_ordered(rows.column(0).type):
        return None
    column = rows.column(0)
    name = _new_name()
    known.values[name] = column[0] if rows.num_rows else pa.scalar(None, column.type)
    return f"${name}"


def _members(
    known: KnownQuery, run: Runner, text: str, inner: Mapping[str, OwnTable]
) -> str | None:
    """A query of the rows of a subquery; None if they are not known."""
    rows = _rows(run, text, inner, MAX_VALUES)
    if rows is None or rows.num_columns != 1:
        return None
    name = _new_name()
    known.rows[name] = rows
    return f"(SELECT * FROM {name})"  # noqa: S608 - a name of ours


def _rows(run: Runner, text: str, inner: Mapping[str, OwnTable], most: int) -> pa.Table | None:
    """The rows of a subquery; None if it fails alone, or has more than this."""
    try:
        query = f"SELECT * FROM ({text}) LIMIT {most + 1}"  # noqa: S608 - text of the statement
        rows = run(query, inner).to_arrow_table()
    except Exception:  # DataFusion has no class for its errors; the statement reports it
        return None
    return rows if rows.num_rows <= most else None


def _row_count(own: OwnTable) -> int:
    return int(own.snapshot.parts.data_rows().sum())


def _tables_in(text: str, named: Mapping[str, OwnTable]) -> dict[str, OwnTable]:
    """The tables of ours that a text may name."""
    words = {searchable(word) for word in words_of(f"{_BEFORE} {text}")}
    return {name: own for name, own in named.items() if searchable(own.last_name) in words}
