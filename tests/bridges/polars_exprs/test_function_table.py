"""The tables name everything of polars that gives a boolean, and nothing that it lacks."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import polars as pl
import pytest

from rowsieve.bridges.polars_exprs import function_table
from rowsieve.bridges.translation import Exactness
from rowsieve.predicate.functions.registry import BUILT_IN

polars_nodes: Any = pytest.importorskip("polars._plr")._expr_nodes
FRAME = pl.LazyFrame(
    schema={
        "i": pl.Int64,
        "f": pl.Float64,
        "s": pl.String,
        "y": pl.Binary,
        "day": pl.Date,
        "ts": pl.Datetime("us"),
        "l": pl.List(pl.Int64),
        "lb": pl.List(pl.Boolean),
        "a": pl.Array(pl.Int64, 2),
        "ab": pl.Array(pl.Boolean, 2),
        "cat": pl.Categorical,
        "p": pl.Struct({"x": pl.Int64}),
    }
)
NO = Exactness.UNSUPPORTED
NAMESPACES = ("arr", "bin", "cat", "dt", "ext", "list", "str", "struct")
GIVEN: tuple[Any, ...] = (1, "x", [1], ["x"], b"x", pl.col("i"), pl.col("s"))
OPERATOR_METHODS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "eq_missing", "ne_missing"})


def members(owner: Any) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]


def test_every_operator_is_listed() -> None:
    assert set(function_table.OPERATOR_ROWS) == set(members(polars_nodes.Operator))


def test_every_boolean_function_is_listed() -> None:
    assert set(function_table.BOOLEANS) == set(members(polars_nodes.BooleanFunction))


def test_the_functions_listed_exist() -> None:
    families = {
        "StringExpr": polars_nodes.StringFunction,
        "StructExpr": polars_nodes.StructFunction,
        "TemporalExpr": polars_nodes.TemporalFunction,
        "ListExpr": polars_nodes.ListFunction,
    }
    for name, row in function_table.FUNCTIONS.items():
        family, _, function = name.partition(".")
        if function:
            assert function in members(families[family]), name
        namespace, _, method = row.foreign.rpartition(".")
        owner: Any = getattr(pl.col("i"), namespace) if namespace else pl.col("i")
        assert hasattr(owner, method) or hasattr(pl, method), row.foreign
        if row.ours in BUILT_IN or not row.ours:
            continue
        assert row.ours in ("FieldAccess", "CAST(… AS date)") or row.ours.startswith("extract ")


def test_rows_that_are_not_exact_have_a_note() -> None:
    rows = [*function_table.NODES, *function_table.OPERATORS, *function_table.BOOLEANS.values()]
    for row in (*rows, *function_table.FUNCTIONS.values(), *function_table.OTHERS):
        assert row.note or (row.reads is row.writes is Exactness.EXACT)
        assert row.ours or row.foreign in ("BinaryExpr", "Function") or row.reads is NO


def types_given(method: str) -> dict[str, set[Any]]:
    """The types that the method gives on each column, with whatever it takes."""
    namespace, _, name = method.rpartition(".")
    found: dict[str, set[Any]] = {}
    for column in FRAME.collect_schema():
        owner: Any = pl.col(column)
        owner = getattr(owner, namespace) if namespace else owner
        for arguments in ((), *((item,) for item in GIVEN), (0, 1), ("x", "y")):
            try:
                made = getattr(owner, name)(*arguments)
                type_ = FRAME.select(x=made).collect_schema()["x"]
            except Exception:  # it does not take these
                continue
            found.setdefault(column, set()).add(type_)
    return found


def gives_boolean(method: str) -> bool:
    """Whether it makes booleans, and does not only take them out of lists."""
    given = types_given(method)
    for column, other in (("lb", "l"), ("ab", "a")):
        if other in given:
            given.pop(column, None)
    return any(pl.Boolean in types for types in given.values())


def test_every_method_that_gives_a_boolean_is_listed() -> None:
    listed = {row.foreign for row in (*function_table.BOOLEANS.values(), *function_table.OTHERS)}
    listed |= {row.foreign for row in function_table.FUNCTIONS.values()} | OPERATOR_METHODS
    methods = [name for name in members(pl.Expr) if inspect.isfunction(getattr(pl.Expr, name))]
    for namespace in NAMESPACES:
        methods += [f"{namespace}.{name}" for name in members(getattr(pl.col("i"), namespace))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {method for method in methods if gives_boolean(method)}
    assert found <= listed
    assert {row.foreign for row in function_table.OTHERS} <= found
