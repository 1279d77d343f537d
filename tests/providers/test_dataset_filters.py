"""Random filters pushed into a dataset by DuckDB, Polars and pyarrow: each as over rows in memory.

None of the three applies again what it has pushed, so what comes back must be what that engine
itself finds in the same rows.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.profiles import examples
from tests.random_tables import COLUMNS, EVERYTHING, everything, memory_table

TABLES = 2
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


pytestmark = pytest.mark.usefixtures("tiny_row_groups")


@dataclass(frozen=True)
class Compare:
    column: str
    op: str
    value: Any


@dataclass(frozen=True)
class Listed:
    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Missing:
    column: str


@dataclass(frozen=True)
class Join:
    word: str
    terms: tuple[Any, ...]


@dataclass(frozen=True)
class Negation:
    term: Any


Condition = Compare | Listed | Missing | Join | Negation


@functools.cache
def memory(number: int) -> pa.Table:
    return memory_table(everything(number)[1], EVERYTHING)


@functools.cache
def values_of(column: str) -> tuple[Any, ...]:
    found = [v for n in range(TABLES) for v in memory(n)[column].drop_null().to_pylist()]
    return tuple(dict.fromkeys(found))


@st.composite
def leaves(draw: st.DrawFn) -> Condition:
    column = draw(st.sampled_from(["k", *COLUMNS]))
    one = st.sampled_from(values_of(column))
    kind = draw(st.sampled_from(["compare", "compare", "list", "null"]))
    if kind == "compare":
        return Compare(column, draw(st.sampled_from(sorted(OPERATORS))), draw(one))
    if kind == "list":
        return Listed(column, tuple(draw(st.lists(one, min_size=1, max_size=4))))
    return Missing(column)


def joined(terms: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    several = st.lists(terms, min_size=2, max_size=3).map(tuple)
    return st.builds(Join, st.sampled_from(["AND", "OR"]), several) | st.builds(Negation, terms)


conditions = st.recursive(leaves(), joined, max_leaves=4)
numbers = st.integers(0, TABLES - 1)


def in_sql(condition: Condition, parameters: list[Any]) -> str:
    match condition:
        case Compare(column, op, value):
            parameters.append(value)
            return f"{column} {op} ?"
        case Listed(column, values):
            parameters.extend(values)
            return f"{column} IN ({', '.join('?' * len(values))})"
        case Missing(column):
            return f"{column} IS NULL"
        case Join(word, terms):
            return f"({f' {word} '.join(in_sql(term, parameters) for term in terms)})"
        case Negation(term):
            return f"(NOT {in_sql(term, parameters)})"
        case _:
            assert_never(condition)


def in_polars(condition: Condition) -> pl.Expr:
    match condition:
        case Compare(column, op, value):
            found: pl.Expr = OPERATORS[op](pl.col(column), pl.lit(value))
            return found
        case Listed(column, values):
            return pl.col(column).is_in(list(values))
        case Missing(column):
            return pl.col(column).is_null()
        case Join(word, terms):
            join = operator.and_ if word == "AND" else operator.or_
            return functools.reduce(join, map(in_polars, terms))
        case Negation(term):
            return ~in_polars(term)
        case _:
            assert_never(condition)


def in_pyarrow(condition: Condition) -> pc.Expression:
    match condition:
        case Compare(column, op, value):
            return OPERATORS[op](pc.field(column), pa.scalar(value, type_of(column)))
        case Listed(column, values):
            return pc.field(column).isin(pa.array(values, type_of(column)))
        case Missing(column):
            return pc.field(column).is_null()
        case Join(word, terms):
            join = operator.and_ if word == "AND" else operator.or_
            return functools.reduce(join, map(in_pyarrow, terms))
        case Negation(term):
            return ~in_pyarrow(term)
        case _:
            assert_never(condition)


def type_of(column: str) -> pa.DataType:
    return memory(0).schema.field(column).type


@functools.cache
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    for number in range(TABLES):
        made.register(f"ours{number}", everything(number)[0].to_dataset())
        made.register("rows", memory(number))
        made.execute(f"CREATE TABLE theirs{number} AS SELECT * FROM rows")
    return made


@examples(60)
@given(number=numbers, condition=conditions)
def test_duckdb_finds_the_rows_that_it_finds_in_its_own_table(
    number: int, condition: Condition
) -> None:
    parameters: list[Any] = []
    where = in_sql(condition, parameters)

    def keys(name: str) -> list[tuple[int]]:
        query = f"SELECT k FROM {name}{number} WHERE {where} ORDER BY k"
        return connection().execute(query, parameters).fetchall()

    assert keys("ours") == keys("theirs")


@examples(60)
@given(number=numbers, condition=conditions)
def test_pyarrow_finds_the_rows_that_it_finds_in_memory(number: int, condition: Condition) -> None:
    expression = in_pyarrow(condition)
    theirs = memory(number).filter(expression)
    dataset = everything(number)[0].to_dataset()
    assert same(dataset.to_table(filter=expression), theirs)
    assert dataset.count_rows(filter=expression) == theirs.num_rows
    assert dataset.filter(expression).head(3).num_rows == min(3, theirs.num_rows)


def same(left: pa.Table, right: pa.Table) -> bool:
    """Whether both hold the same rows, with the same bits."""
    both = [repr(table.sort_by("k").to_pylist()) for table in (left, right)]
    return left.schema == right.schema and both[0] == both[1]


@examples(60)
@given(number=numbers, condition=conditions)
def test_polars_finds_the_rows_that_it_finds_in_memory(number: int, condition: Condition) -> None:
    expression = in_polars(condition)
    theirs = pl.from_arrow(memory(number))
    assert isinstance(theirs, pl.DataFrame)
    table = everything(number)[0]
    frame = pl.scan_pyarrow_dataset(table.to_dataset())
    keys = sorted(theirs.filter(expression)["k"])
    assert sorted(table.scan_polars().filter(expression).select("k").collect()["k"]) == keys
    try:
        ours = frame.filter(expression).select("k").collect()
    except Exception as error:
        assume("does not say what Polars means" not in str(error))
        raise
    assert sorted(ours["k"]) == keys
