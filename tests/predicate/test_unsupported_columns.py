"""Columns of types that tables do not support, in schemas of somebody else's files."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import predicate as p
from rowsieve.bridges.languages import BRIDGES
from rowsieve.errors import SchemaMismatch

X = pa.schema([("x", pa.int64())])
SCHEMA = pa.schema([("n", pa.null()), ("l", pa.list_(pa.null())), *X])
CONDITION = p.Comparison(p.ComparisonOp.GT, p.Column("x"), p.Literal(5))


def test_a_null_column_does_not_matter_to_conditions_on_others() -> None:
    assert p.prune(CONDITION, SCHEMA, min={"x": [1, 9]}, max={"x": [2, 9]}).tolist() == [
        False,
        True,
    ]
    batch = pa.record_batch([pa.nulls(2), pa.nulls(2, pa.list_(pa.null())), [5, 6]], schema=SCHEMA)
    assert p.matching(p.bind(CONDITION, SCHEMA), batch).tolist() == [False, True]
    read = rs.translate("x > 5", "duckdb", target="postgres", schema=SCHEMA)
    assert read.exact() == rs.translate("x > 5", "duckdb", target="postgres", schema=X).exact()


@pytest.mark.parametrize("target", [each.name for each in BRIDGES if each.name != "spark_columns"])
def test_it_does_not_matter_to_a_bridge(target: str) -> None:
    with_it, without = (
        rs.translate("x > 5", "duckdb", target=target, schema=schema) for schema in (SCHEMA, X)
    )
    assert str(with_it.exact()) == str(without.exact())


@pytest.mark.parametrize("name", ["n", "l"])
def test_a_condition_on_it_says_what_its_type_is(name: str) -> None:
    with pytest.raises(SchemaMismatch, match="has the type null"):
        p.bind(p.IsNull(p.Column(name)), SCHEMA)
    with pytest.raises(SchemaMismatch, match="has the type null"):
        rs.translate(f"{name} IS NULL", "duckdb", target="postgres", schema=SCHEMA)


def test_it_counts_where_engines_may_take_another_name_for_it() -> None:
    schema = pa.schema([("X", pa.null()), *X])
    with pytest.raises(SchemaMismatch, match="'X' has the type null"):
        p.bind(CONDITION, schema)
