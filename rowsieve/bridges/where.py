"""Whatever a caller passes as `where=` or as an expression, as our tree and its semantics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowsieve.bridges.datafusion_exprs import from_datafusion, is_datafusion_expression
from rowsieve.bridges.pyarrow_exprs import from_pyarrow, is_pyarrow_expression
from rowsieve.bridges.spark_filters import from_spark_filters, is_spark_filters
from rowsieve.bridges.sql import parse_expression, parse_predicate
from rowsieve.errors import InvalidInput
from rowsieve.predicate.ir import TRUE, Operand, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

_SEMANTICS: Mapping[str, Semantics] = {
    "postgres": Semantics.SQL,
    "spark": Semantics.SPARK,
    "datafusion": Semantics.DATAFUSION,
    "duckdb": Semantics.DUCKDB,
}


def to_predicate(where: Any, dialect: str = "postgres", schema: Schema | None = None) -> Predicate:
    """SQL text, a predicate, an expression of pyarrow or DataFusion, Spark's filters; None is TRUE.

    The last two are read for the columns of a schema, and whole or not at all.
    """
    if where is None:
        return TRUE
    if isinstance(where, str):
        return parse_predicate(where, dialect)
    if isinstance(where, Predicate):
        return where
    if is_pyarrow_expression(where):
        return from_pyarrow(where, in_matches_null=True)
    if schema is not None and is_datafusion_expression(where):
        return from_datafusion(where, schema).exact()
    if schema is not None and is_spark_filters(where):
        return from_spark_filters(where, schema).exact()
    raise InvalidInput(
        f"where= takes SQL text, a rowsieve predicate, a pyarrow expression, a DataFusion "
        f"expression or a list of Spark's filters, not {type(where).__name__}"
    )


def to_operand(expression: Any, dialect: str = "postgres") -> Operand:
    """SQL text or one of our operands."""
    if isinstance(expression, str):
        return parse_expression(expression, dialect)
    if isinstance(expression, Operand):
        return expression
    raise InvalidInput(
        f"an expression is SQL text or a rowsieve operand, not {type(expression).__name__}"
    )


def semantics_of(dialect: str, where: Any = None) -> Semantics:
    """The rules that go with a dialect of SQL text, or with another engine's expression."""
    if is_datafusion_expression(where):
        return Semantics.DATAFUSION
    if is_spark_filters(where):
        return Semantics.SPARK
    try:
        return _SEMANTICS[dialect]
    except KeyError:
        raise InvalidInput(
            f"unknown SQL dialect {dialect!r}; known are {', '.join(_SEMANTICS)}"
        ) from None
