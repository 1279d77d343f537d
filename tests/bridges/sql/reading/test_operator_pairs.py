"""Two operators in a row without parentheses group as in the engine, or are refused.

Every pair is read and written again with its groups in parentheses; the engine must give the same
for both texts, on every combination of TRUE, FALSE and NULL, and of texts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.bridges.sql import parse_predicate, to_sql
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from tests.bridges.sql.engines import datafusion_values, duckdb_values
from tests.bridges.sql.postgres import postgres_values

Ask = Callable[[str], list[Any]]
OPERATORS = [
    "= {0}",
    "< {0}",
    "<=> {0}",
    "IS DISTINCT FROM {0}",
    "IS NOT DISTINCT FROM {0}",
    "LIKE '1%'",
    "NOT LIKE '1%'",
    "ILIKE '1%'",
    "RLIKE '1'",
    "~ '1'",
    "SIMILAR TO '1'",
    "IN ('1', {0})",
    "NOT IN ({0})",
    "BETWEEN {0} AND '2'",
    "NOT BETWEEN '0' AND {0}",
    "IS NULL",
    "IS NOT NULL",
    "IS TRUE",
    "IS NOT FALSE",
]
AT_ONCE = 60
TRUTHS = list(itertools.product([True, False, None], repeat=3))
TEXTS = {True: "1", False: "a", None: None}
ROWS = pa.table(
    {
        **{name: pa.array([row[i] for row in TRUTHS], pa.bool_()) for i, name in enumerate("pqr")},
        **{name: pa.array([TEXTS[row[i]] for row in TRUTHS]) for i, name in enumerate("stu")},
    }
)


def pairs(dialect: str) -> Iterator[tuple[str, str]]:
    """Each text of two operators that is read, and what is written of it."""
    operators = itertools.product(OPERATORS, OPERATORS)
    for (one, two), names in itertools.product(operators, itertools.product("ps", "qt", "ru")):
        if ("{0}" not in one and names[1] == "t") or ("{0}" not in two and names[2] == "u"):
            continue
        text = f"{names[0]} {one.format(names[1])} {two.format(names[2])}"
        try:
            yield text, to_sql(parse_predicate(text, dialect), dialect)
        except (InvalidPredicate, UnsupportedOperation):
            continue


ENGINES: dict[str, Callable[[], Ask]] = {
    "duckdb": lambda: duckdb_values(ROWS),
    "datafusion": lambda: datafusion_values(ROWS),
    "postgres": lambda: lambda text: postgres_values(f"({text})", ROWS),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_pairs_of_operators_group_as_in_the_engine(engine: str) -> None:
    ask, agreed = ENGINES[engine](), 0
    for text, grouped in pairs(engine):
        try:
            expected = ask(text)
        except Exception:  # the engine refuses ill-typed text in many ways
            continue
        assert (text, grouped, ask(grouped)) == (text, grouped, expected)
        agreed += 1
    assert agreed >= 80


@pytest.mark.spark
def test_pairs_of_operators_group_as_in_spark(spark: Any) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        types = ", ".join(f"{name} {'boolean' if name < 's' else 'string'}" for name in "pqrstu")
        frame = spark.createDataFrame([tuple(row.values()) for row in ROWS.to_pylist()], types)
        read = []
        for text, grouped in pairs("spark"):
            try:
                frame.select(f.expr(text))
            except PySparkException:
                continue
            read.append((text, grouped))
        for start in range(0, len(read), AT_ONCE):
            some = read[start : start + AT_ONCE]
            asked = [f.expr(part).alias(f"c{i}") for i, part in enumerate(itertools.chain(*some))]
            found = [column.to_pylist() for column in frame.select(*asked).toArrow().columns]
            for place, (text, grouped) in enumerate(some):
                assert (text, grouped, found[2 * place + 1]) == (text, grouped, found[2 * place])
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert len(read) >= 80


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("spark", "b <=> 'x' LIKE '_b%'"),
        ("spark", "a <=> b < c"),
        ("spark", "a <=> b BETWEEN c AND d"),
        ("datafusion", "a <=> b >= c"),
        ("datafusion", "a IS DISTINCT FROM b IS NULL"),
        ("datafusion", "a IS NOT DISTINCT FROM b IS DISTINCT FROM c"),
        ("datafusion", "CASE WHEN a IS DISTINCT FROM b IS NULL THEN 1 END = 1"),
        ("postgres", "p NOT BETWEEN '0' AND t ~ '1'"),
    ],
)
def test_conditions_in_a_row_without_a_clear_grouping_are_refused(dialect: str, text: str) -> None:
    with pytest.raises(InvalidPredicate, match="in parentheses"):
        parse_predicate(text, dialect)


@pytest.mark.parametrize("dialect", ["spark", "datafusion"])
def test_safe_equality_is_not_distinct(dialect: str) -> None:
    same = parse_predicate("(a IS NOT DISTINCT FROM b) IS NULL AND c", dialect)
    assert parse_predicate("a <=> b IS NULL AND c", dialect) == same


@pytest.mark.parametrize(
    "text",
    [
        "(a IS DISTINCT FROM b) IS NULL",
        "CASE WHEN a IS DISTINCT FROM b THEN c IS NULL ELSE d IS NULL END",
        "coalesce(a IS DISTINCT FROM b, c IS NULL)",
    ],
)
def test_conditions_next_to_a_distinct_in_parentheses_are_read_for_datafusion(text: str) -> None:
    assert parse_predicate(text, "datafusion") == parse_predicate(text, "duckdb")


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "trino"])
def test_an_operator_that_the_engine_lacks_is_refused(dialect: str) -> None:
    with pytest.raises(InvalidPredicate, match="write IS NOT DISTINCT FROM"):
        parse_predicate("a <=> b", dialect)
