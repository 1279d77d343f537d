"""The tables name everything that the installed DataFusion has, and nothing that it lacks."""

from __future__ import annotations

import re

import datafusion
import datafusion.expr
import pytest

from rowsieve.bridges.datafusion_exprs import function_table
from rowsieve.bridges.translation import Exactness, Row
from rowsieve.predicate.functions.registry import BUILT_IN

ROWS = [*function_table.VARIANTS, *function_table.OPERATORS, *function_table.FUNCTIONS]
NO_EXPRESSIONS = frozenset(
    [
        "EXPR_TYPE_ERROR",
        "Aggregate",
        "Analyze",
        "CaseBuilder",
        "CopyTo",
        "CreateCatalog",
        "CreateCatalogSchema",
        "CreateExternalTable",
        "CreateFunction",
        "CreateFunctionBody",
        "CreateIndex",
        "CreateMemoryTable",
        "CreateView",
        "Deallocate",
        "DescribeTable",
        "DmlStatement",
        "DropCatalogSchema",
        "DropFunction",
        "DropTable",
        "DropView",
        "EmptyRelation",
        "Execute",
        "Explain",
        "Expr",
        "Extension",
        "FileType",
        "Filter",
        "Join",
        "JoinConstraint",
        "JoinType",
        "Limit",
        "OperateFunctionArg",
        "Partitioning",
        "Prepare",
        "Projection",
        "RecursiveQuery",
        "Repartition",
        "SetVariable",
        "Sort",
        "SortKey",
        "Subquery",
        "SubqueryAlias",
        "TableScan",
        "TransactionAccessMode",
        "TransactionConclusion",
        "TransactionEnd",
        "TransactionIsolationLevel",
        "TransactionStart",
        "Union",
        "Values",
        "Window",
        "WindowFrame",
        "WindowFrameBound",
        "coerce_to_expr",
        "coerce_to_expr_list",
        "coerce_to_expr_or_none",
        "ensure_expr",
        "ensure_expr_list",
    ]
)


def test_every_variant_that_the_engine_shows_is_listed() -> None:
    shown = set(datafusion.expr.__all__) - NO_EXPRESSIONS
    assert shown <= set(function_table.VARIANT_ROWS)
    named_otherwise = {"Column", "ScalarFunction", "RLike"}  # by `variant_name` alone
    assert set(function_table.VARIANT_ROWS) - shown <= named_otherwise


def test_every_function_is_one_of_the_engine() -> None:
    """By its name, or as the template that the table of functions has for it."""
    frame = datafusion.SessionContext().sql("SELECT 1 AS x, 'x' AS s")
    for row in function_table.FUNCTIONS:
        if "{" in row.foreign:
            assert frame.parse_sql_expr(re.sub(r"\{\w+\}", "s", row.foreign))
        else:
            assert row.foreign == "get_field" or hasattr(datafusion.functions, row.foreign)


def test_every_call_in_the_table_is_a_registered_function() -> None:
    nodes = {"FieldAccess", "InList", "Now", "CAST(Now AS date)", "local_time"}
    assert {row.ours for row in function_table.FUNCTIONS} <= BUILT_IN | nodes


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"\W", "_", row.foreign))
def test_rows_that_are_not_exact_have_a_reason(row: Row) -> None:
    if Exactness.EXACT not in (row.reads, row.writes):
        assert row.note


def test_no_row_is_repeated() -> None:
    for rows in (function_table.VARIANTS, function_table.OPERATORS, function_table.FUNCTIONS):
        assert len({row.foreign for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("a = 1", "="),
        ("a <> 1", "!="),
        ("a % 2", "%"),
        ("a || 'x'", "||"),
        ("a & 1", "&"),
        ("a ^ 1", "BIT_XOR"),
        ("a << 1", "<<"),
        ("s ~ 'x'", "~"),
        ("s !~* 'x'", "!~*"),
        ("a IS DISTINCT FROM 1", "IS DISTINCT FROM"),
        ("a IS NOT DISTINCT FROM 1", "IS NOT DISTINCT FROM"),
        ("a = 1 AND a = 2", "AND"),
    ],
)
def test_operators_have_the_engine_s_spelling(text: str, operator: str) -> None:
    context = datafusion.SessionContext()
    found = context.sql("SELECT 1 AS a, 'x' AS s").parse_sql_expr(text)
    assert found.rex_call_operator() == operator
    assert operator in function_table.OPERATOR_ROWS
