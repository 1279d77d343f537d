"""`prune` never leaves out a file with a row that matches or fails, whatever facts are missing."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve import predicate as p
from rowsieve.errors import InvalidInput, InvalidPredicate, UnknownColumn
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Float
from tests.bridges.awkward import rows
from tests.duckdb_sessions import duckdb_session
from tests.oracle_texts import known_texts
from tests.profiles import examples
from tests.strategies import COLUMN_TYPES, SCHEMA, SEMANTICS, predicates

FIELDS = ("pair.x", "pair.y")
NAMES = (*COLUMN_TYPES, *FIELDS)
Facts = dict[str, dict[str, list[Any]]]


def cells(batch: pa.RecordBatch, name: str) -> pa.Array:
    column, _, field = name.partition(".")
    return pc.struct_field(batch.column(column), field) if field else batch.column(column)


def facts_of(files: list[pa.RecordBatch], lost: set[tuple[str, str, int]]) -> dict[str, Any]:
    """The facts of files, row by row; those that are lost are None."""
    facts: Facts = {"min": {}, "max": {}, "nulls": {}, "nans": {}}
    for name in NAMES:
        for number, file in enumerate(files):
            column = cells(file, name)
            values = [value for value in column if value.as_py() is not None]
            is_float = pa.types.is_floating(column.type)
            numbers = [v for v in values if not (is_float and math.isnan(v.as_py()))]
            numbers.sort(
                key=lambda value: value.value if hasattr(value, "value") else value.as_py()
            )
            known = {
                "min": numbers[0].as_py() if numbers else None,
                "max": numbers[-1].as_py() if numbers else None,
                "nulls": column.null_count,
                "nans": len(values) - len(numbers),
            }
            for side, value in known.items():
                kept = None if (side, name, number) in lost else value
                facts[side].setdefault(name, []).append(kept)
    typed = {
        side: {
            name: pa.array(values, cells(files[0], name).type)
            for name, values in facts[side].items()
        }
        for side in ("min", "max")
    }
    return {**facts, **typed}


@examples(500)
@given(
    predicate=predicates(2),
    seed=st.integers(0, 99),
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=5),
    semantics=st.sampled_from((*SEMANTICS, Semantics.ICEBERG_JSON)),
    lost=st.sets(
        st.tuples(
            st.sampled_from(("min", "max", "nulls", "nans")),
            st.sampled_from(NAMES),
            st.integers(0, 4),
        ),
        max_size=30,
    ),
    counted=st.booleans(),
)
@known_texts()
def test_a_file_that_is_left_out_has_no_row_that_matches_or_fails(
    predicate: ir.Predicate,
    seed: int,
    sizes: list[int],
    semantics: Semantics,
    lost: set[tuple[str, str, int]],
    counted: bool,
) -> None:
    whole = rows(seed, sum(sizes) or 1)
    starts = np.cumsum([0, *sizes])
    files = [whole.slice(start, size) for start, size in zip(starts, sizes, strict=False)]
    try:
        bound = bind(predicate, SCHEMA, semantics)
    except InvalidPredicate:
        return
    facts: dict[str, Any] = facts_of(files, lost)
    kept = p.prune(bound, SCHEMA, **facts, rows=sizes if counted else None)
    for file, is_kept in zip(files, kept, strict=True):
        outcome = evaluate(bound, file)
        assert is_kept or not (outcome.true | outcome.failed).any()


SIMPLE = (
    "= {}",
    "<> {}",
    "< {}",
    "<= {}",
    "> {}",
    ">= {}",
    "IS NULL",
    "IS NOT NULL",
    "IN ({}, {})",
)
DUCKDB = (
    "b",
    "i8",
    "i32",
    "i64",
    "u8",
    "f32",
    "f64",
    "d",
    "s",
    "bin",
    "day",
    "time",
    "ts",
    "tz",
    "uid",
)


@examples(100)
@given(
    name=st.sampled_from(DUCKDB),
    test=st.sampled_from(SIMPLE),
    seed=st.integers(0, 9),
    places=st.tuples(st.integers(0, 23), st.integers(0, 23)),
    negated=st.booleans(),
)
def test_duckdb_finds_no_row_in_a_file_that_is_left_out(
    name: str, test: str, seed: int, places: tuple[int, int], negated: bool
) -> None:
    whole = rows(seed, 24)
    files = [whole.slice(start, 3) for start in range(0, 24, 3)]
    constants = [whole.column(name)[place] for place in places]
    if any(value.as_py() is None for value in constants):
        return
    table = whole.select([name]).append_column("file", pa.array(np.arange(24) // 3))
    values = [f'(SELECT "{name}" FROM t LIMIT 1 OFFSET {place})' for place in places]
    text = f'"{name}" {test.format(*values)}'
    text = f"NOT ({text})" if negated else text
    session = duckdb_session()
    session.register("t", table)
    found = {file for (file,) in session.sql(f"SELECT file FROM t WHERE {text}").fetchall()}
    session.unregister("t")
    tree = simple(name, test, constants)
    kept = p.prune(
        ir.Not(tree) if negated else tree,
        SCHEMA,
        **facts_of(files, set()),
        rows=[3] * 8,
        semantics=Semantics.DUCKDB,
    )
    assert found <= set(np.flatnonzero(kept).tolist())


def simple(name: str, test: str, constants: list[pa.Scalar]) -> ir.Predicate:
    column, type_ = ir.Column(name), COLUMN_TYPES[name]
    literals = [ir.Literal(physical(each), type_) for each in constants]
    if "NULL" in test:
        null = ir.IsNull(column)
        return null if test == "IS NULL" else ir.Not(null)
    if test.startswith("IN"):
        equal = [ir.Comparison(ir.ComparisonOp.EQ, column, each) for each in literals]
        return ir.Or(tuple(equal))
    return ir.Comparison(ir.ComparisonOp(test.split(maxsplit=1)[0]), column, literals[0])


def physical(value: pa.Scalar) -> Any:
    is_time = pa.types.is_temporal(value.type)
    return value.value if is_time else value.as_py()


def condition(text: str, schema: pa.Schema) -> ir.Predicate:
    tree: ir.Predicate = rs.translate(text, "duckdb", target="rowsieve", schema=schema).exact()
    return tree


INT = pa.schema([("x", pa.int64()), ("day", pa.date32())])


@pytest.mark.parametrize(
    "made",
    [
        list,
        np.array,
        pa.array,
        pd.Series,
        pl.Series,
        lambda values: pa.chunked_array([values[:1], values[1:]]),
        lambda values: pa.array(values).dictionary_encode(),
        lambda values: pd.Series(values, dtype="Int64"),
        lambda values: pa.array(values, pa.int16()),
    ],
)
def test_bounds_are_lists_and_arrays_of_any_library(made: Callable[[list[int]], Any]) -> None:
    tree = condition("x = 5", INT)
    kept = p.prune(tree, INT, min={"x": made([1, 6, 5])}, max={"x": made([4, 9, 5])})
    assert kept.tolist() == [False, False, True]
    assert kept.dtype == np.bool_


@pytest.mark.parametrize(
    ("text", "facts", "kept"),
    [
        ("x = 5", {"min": {"x": [None, 1]}, "max": {"x": [4, None]}}, [False, True]),
        ("x = 5", {"min": {"x": [9]}, "max": {"x": [1]}}, [True]),  # contradictory
        ("x = 5", {"rows": [3, 0]}, [True, False]),
        ("x IS NULL", {"nulls": {"x": [0, 1, None, -1]}}, [False, True, True, True]),
        ("x > 0", {"nulls": {"x": [2, 1, 3]}, "rows": [2, 2, 2]}, [False, True, True]),
        ("x IS NOT NULL", {"nulls": {"x": [2]}, "rows": [2], "min": {"x": [1]}}, [True]),
        ("x + 1 > 5", {"min": {"x": [0, 4]}, "max": {"x": [4, 4]}}, [False, False]),
        ("x = 2 ** 53 + 1", {"min": {"x": [2.0**53]}, "max": {"x": [2.0**53]}}, [True]),
        ("x = 9", {"min": {"x": [1.5, 3.5]}, "max": {"x": [2.5, np.nan]}}, [False, True]),
        ("FALSE", {"rows": [1]}, [False]),
    ],
)  # fmt: skip
def test_what_is_missing_or_contradictory_is_unknown(
    text: str, facts: Mapping[str, Any], kept: list[bool]
) -> None:
    schema = INT
    tree = condition(text.replace("2 ** 53 + 1", str(2**53 + 1)), schema)
    assert p.prune(tree, schema, **facts).tolist() == kept


def test_nan_is_above_all_numbers_unless_there_is_none() -> None:
    schema = pa.schema([("f", pa.float64())])
    facts: dict[str, Any] = {"min": {"f": [1.0] * 3}, "max": {"f": [2.0] * 3}}
    above, below = condition("f > 5", schema), condition("f < 0", schema)
    assert p.prune(above, schema, **facts, nans={"f": [0, 1, None]}).tolist() == [False, True, True]
    assert p.prune(below, schema, **facts).tolist() == [False] * 3
    only = p.prune(below, schema, nans={"f": [2, 2]}, nulls={"f": [0, 0]}, rows=[2, 3])
    assert only.tolist() == [False, True]


def test_bounds_are_rounded_outwards() -> None:
    schema = pa.schema([("f", pa.float32()), ("d", pa.decimal128(5, 1)), ("t", pa.timestamp("us"))])
    tenth = float(np.float32(0.1))  # above 0.1
    exact = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("f"), ir.Literal(tenth, Float(32)))
    facts: dict[str, Any] = {"nans": {"f": [0]}}
    assert p.prune(exact, schema, max={"f": [0.1]}, min={"f": [0.0]}, **facts).tolist() == [True]
    number = condition("d = 1.2", schema)
    digits = [decimal.Decimal("1.15")]
    assert p.prune(number, schema, min={"d": [0]}, max={"d": digits}).tolist() == [True]
    assert p.prune(condition("d = 1.3", schema), schema, max={"d": digits}).tolist() == [False]
    nanos = pa.array([1_500], pa.timestamp("ns"))
    second = condition("t = TIMESTAMP '1970-01-01 00:00:00.000002'", schema)
    assert p.prune(second, schema, max={"t": nanos}, min={"t": nanos}).tolist() == [True]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({}, "no bounds are given"),
        ({"min": {"x": [1]}, "max": {"x": [1, 2]}}, r"min\['x'\] has 1 values and"),
        ({"min": {"x": ["a"]}}, r"min of the column 'x' are of type string.*int64"),
        ({"min": {"x": [True]}}, "are of type bool"),
        ({"min": {"day": [5]}}, r"are of type int64.*date"),
        ({"max": {"day": [dt.datetime(2020, 1, 1)]}}, "are of type timestamp"),
        ({"min": {"x": [object()]}}, "not an array of one type"),
        ({"nulls": {"x": ["a"]}}, "are not counts"),
        ({"rows": [True]}, "not counts"),
        ({"min": {"x": 5}}, "is int; give a list or an array"),
        ({"min": [5]}, "takes one array of each column by name"),
    ],
)  # fmt: skip
def test_lengths_and_types_that_do_not_fit_are_named(facts: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        p.prune(ir.TRUE, INT, **facts)


def test_bounds_of_text_may_be_categories_of_polars() -> None:
    schema = pa.schema([("s", pa.string())])
    words = pl.Series(["b", None, "a"], dtype=pl.Categorical)
    kept = p.prune(condition("s = 'a'", schema), schema, min={"s": words})
    assert kept.tolist() == [False, True, True]


def test_an_unknown_column_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownColumn, match=r"'dya'.*did you mean 'day'"):
        p.prune(ir.TRUE, INT, min={"dya": [1]})


def test_a_name_that_means_two_columns_has_no_bounds() -> None:
    schema = pa.schema([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())]))])
    with pytest.raises(UnknownColumn, match="not the name of one column"):
        p.prune(ir.TRUE, schema, min={"a.b": [1]})


def test_a_hundred_thousand_files_are_judged_without_a_loop() -> None:
    count = 100_000
    low = np.arange(count) * 10
    tree = condition("x BETWEEN 55 AND 64 AND day >= DATE '2020-01-01'", INT)
    kept = p.prune(tree, INT, min={"x": low}, max={"x": low + 9}, rows=np.full(count, 10))
    assert np.flatnonzero(kept).tolist() == [5, 6]


def test_numbers_of_64_bits_without_a_sign_are_bounds() -> None:
    schema = pa.schema([("u", pa.uint64())])
    condition = rs.translate("u = 5", "duckdb", target="rowsieve", schema=schema).exact()
    kept = p.prune(condition, schema, min={"u": [0, 6, None]}, max={"u": [2**64 - 1, 7, 4]})
    assert kept.tolist() == [True, False, False]


def test_bounds_wider_than_the_type_are_its_ends() -> None:
    schema = pa.schema([("x", pa.int8()), ("y", pa.int64())])
    least, most = {"x": [-1000, 100, -128], "y": [-(2**63)] * 3}, {"x": [1000, 300, -1000]}
    tree = rs.translate("x = 5", "duckdb", target="rowsieve", schema=schema).exact()
    kept = p.prune(tree, schema, min=least, max=most)
    assert kept.tolist() == [True, False, True]  # the last one has no values: its bound is unknown


@pytest.mark.parametrize("given", ["x = 1", None, {"type": "eq"}])
def test_what_is_no_tree_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match=f"the predicate is {type(given).__name__}, not a tree"):
        p.prune(given, pa.schema([("x", pa.int64())]), min={"x": [1]})
