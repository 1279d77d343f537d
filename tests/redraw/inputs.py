"""Random inputs for the record: conditions as trees, conditions as SQL text, rows to judge them on.

They are drawn once and stored. Drawing them again after a generator has changed gives others.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate, to_sql
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.errors import RowsieveError
from rowsieve.predicate.bind import bind
from rowsieve.predicate.codec import predicate_to_json
from rowsieve.predicate.ir import And, Predicate
from tests.bridges import awkward
from tests.bridges.spark_columns import nasty
from tests.bridges.spark_columns.random_texts import condition
from tests.bridges.test_round_trips import CONDITIONS
from tests.predicate.random_expressions import Expressions
from tests.strategies import COLUMN_TYPES, SCHEMA, predicates
from tests.zoned_strategies import conditions

PLAIN, ZONED, CALLS = 620, 160, 420  # conditions of each kind, besides those of the round trips
TEXTS, SPARK_TEXTS = 480, 650  # a dialect; in Spark's SQL over its own awkward rows
MOST_CHARACTERS = 2_500  # of a condition as JSON
ROWS, ROWS_IN_PARTS = 320, 40
TABLES = {"columns": SCHEMA, "spark": nasty.SCHEMA}


def as_json(predicate: Predicate) -> str:
    """The predicate as text, the same for the same tree."""
    return json.dumps(predicate_to_json(predicate), sort_keys=True, separators=(",", ":"))


def tables() -> dict[str, pa.RecordBatch]:
    """Awkward rows of each schema, and those that statistics are taken of."""
    few = awkward.rows(3, ROWS_IN_PARTS)
    return {"columns": awkward.rows(4, ROWS), "parts": few, "spark": nasty.BATCH}


def trees() -> list[Predicate]:
    """Distinct conditions over the columns of `tests.strategies`, of every function there is."""
    found: dict[str, Predicate] = {}
    for text in CONDITIONS:
        _keep(found, parse_predicate(text))
    for count, drawn in (
        (PLAIN, _drawn(predicates(2), 4 * PLAIN)),
        (ZONED, _drawn(conditions(), 4 * ZONED)),
        (CALLS, _calls()),
    ):
        wanted = len(found) + count
        for predicate in drawn:
            if len(found) == wanted:
                break
            _keep(found, predicate)
    return list(found.values())


def _keep(found: dict[str, Predicate], predicate: Predicate) -> None:
    try:
        bind(predicate, SCHEMA)
        text = as_json(predicate)
    except RowsieveError:
        return
    if len(text) <= MOST_CHARACTERS:
        found.setdefault(text, predicate)


def _drawn(strategy: st.SearchStrategy[Predicate], count: int) -> list[Predicate]:
    """Examples of a strategy, the same in every run."""
    found: list[Predicate] = []

    @seed(2026)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(predicate: Predicate) -> None:
        found.append(predicate)

    collect()
    return found


def _calls() -> Iterator[Predicate]:
    """Conditions on calls of the registry's functions, two or three of them by AND at times."""
    chance = random.Random(12)
    while True:
        expressions = Expressions(chance)
        expressions.columns, expressions.schema = dict(COLUMN_TYPES), SCHEMA
        made = expressions.predicate()
        if chance.random() < 0.25:
            made = And((made, expressions.predicate()))
        yield made


def texts(trees: list[Predicate]) -> list[tuple[str, str, str]]:
    """Dialect, table and text: what each dialect writes, read there or in another dialect."""
    chance, names = random.Random(7), list(DIALECTS)
    found: dict[tuple[str, str, str], None] = {}
    for name in names:
        wanted = len(found) + TEXTS
        for tree in chance.sample(trees, len(trees)):
            if len(found) == wanted:
                break
            text = _written(tree, name if chance.random() < 0.7 else chance.choice(names))
            if text is not None and len(text) <= MOST_CHARACTERS:
                found.setdefault((name, "columns", text))
    for number in range(SPARK_TEXTS):
        found.setdefault(("spark", "spark", condition(number)))
    return list(found)


def _written(tree: Predicate, dialect: str) -> str | None:
    try:
        return to_sql(tree, dialect)
    except RowsieveError:
        return None
