"""Expressions as Python text: what is pasted is the object that the bridge makes."""

from __future__ import annotations

from typing import Any

import datafusion
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.bridges.pasted import Pasted, pasted
from rowsieve.bridges.python_text import spelled
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Predicate
from rowsieve.types.encodings import arrow_schema
from tests.oracle_texts import known_texts
from tests.profiles import examples
from tests.strategies import SCHEMA, predicates

COLUMNS = pa.schema(
    [
        ("x", pa.int64()),
        ("i", pa.int32()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("l", pa.timestamp("us")),
        ("n", pa.decimal128(10, 2)),
        ("b", pa.bool_()),
        ('X "y', pa.int64()),
    ]
)
CONDITIONS = [
    "x > 5",
    "i IN (1, 2, NULL) AND s = 'it''s \\ \"so\"'",
    "NOT (x < -9223372036854775807 OR b) AND x % 7 = 3 - x",
    "f = 'NaN'::float8 OR f < -0.5 OR f = '-Infinity'::float8",
    "d >= DATE '2020-01-01' AND ts < TIMESTAMPTZ '2020-01-01 00:00:00+00'",
    "l = TIMESTAMP '2020-01-02 03:04:05.6' OR l > TIMESTAMP '12000-01-01 00:00:00'",
    "n = 1.50 AND \"X \"\"y\" = 3 AND s LIKE 'a%b' AND upper(s) = 'A'",
    "extract(year from l) = 2020 AND date_trunc('day', l) IS NOT NULL",
    "extract(hour from ts AT TIME ZONE 'Europe/Berlin') = 3",
    "CASE WHEN x > 1 THEN i IS NULL ELSE f > 1 END AND x IN ("
    + ", ".join(map(str, range(400)))
    + ")",
]
TARGETS = [
    "pyarrow_exprs",
    "polars",
    "iceberg",
    "delta_dnf",
    "spark_filters",
    "substrait",
    "rowsieve",
]


def run(found: Pasted, **names: Any) -> Any:
    """What the text makes, after its imports and nothing else."""
    assert found.text is not None
    for statement in found.imports:
        exec(compile(statement, "<imports>", "exec"), names)
    exec(compile(f"made = {found.text}", "<pasted>", "exec"), names)
    return names["made"]


def are_same(ours: Any, theirs: Any) -> bool:
    match ours:
        case pc.Expression():
            return bool(ours.equals(theirs))
        case pl.Expr():
            return bool(ours.meta.eq(theirs))
        case list():
            return repr(ours) == repr(theirs)
        case _:
            return bool(ours == theirs)


def check(condition: Any, source: str | None, target: str, schema: pa.Schema) -> None:
    found = pasted(condition, source, target=target, schema=schema)
    wanted = rs.translate(condition, source, target=target, schema=schema)
    assert found.residual == wanted.residual
    assert found.is_python
    if wanted.expression is None:
        assert (found.text, found.imports) == (None, ())
        return
    made = run(found)
    assert are_same(made, wanted.expression), found.text


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_pasted_code_builds_the_expression_of_the_bridge(condition: str, target: str) -> None:
    check(condition, "postgres", target, COLUMNS)


@examples(150)
@given(predicates(), st.sampled_from(["pyarrow_exprs", "polars", "iceberg"]))
@known_texts()
def test_any_condition_is_pasted_as_it_is_made(predicate: Predicate, target: str) -> None:
    check(predicate, None, target, arrow_schema(SCHEMA))


def test_the_text_is_idiomatic() -> None:
    texts = {
        target: pasted("x > 5", "postgres", target=target, schema=COLUMNS).text
        for target in [*TARGETS[:5], "spark_columns", "datafusion_exprs"]
    }
    assert texts == {
        "pyarrow_exprs": "pc.field('x') > 5",
        "polars": "pl.col('x') > pl.lit(5, dtype=pl.Int64)",
        "datafusion_exprs": "df.parse_sql_expr('\"x\" > 5')",
        "iceberg": "GreaterThan('x', literal(5))",
        "delta_dnf": "[('x', '>', 5)]",
        "spark_filters": "[GreaterThan(attribute=('x',), value=5)]",
        "spark_columns": "F.expr('`x` > 5')",
    }


@pytest.mark.parametrize("condition", ["x > 5", "i IN (1, 2, NULL)", "s LIKE 'a%' OR s = 'it''s'"])
def test_code_pasted_for_datafusion_keeps_the_rows_of_its_bridge(condition: str) -> None:
    columns = pa.schema([COLUMNS.field(name) for name in ("x", "i", "s")])
    rows = pa.table({"x": [3, 6, None], "i": [1, 5, None], "s": ["ab", "it's", None]}, columns)
    frame = datafusion.SessionContext().from_arrow(rows)
    found = pasted(condition, "postgres", target="datafusion_exprs", schema=columns)
    made = rs.translate(condition, "postgres", target="datafusion_exprs", schema=columns).exact()
    kept = frame.filter(run(found, df=frame)).to_pydict()
    assert kept == frame.filter(made).to_pydict()
    assert len(kept["x"]) == (2 if "LIKE" in condition else 1)


def test_a_residual_stays_out_of_the_text() -> None:
    found = pasted("x > 5 AND soundex(s) = 'A'", "spark", target="polars", schema=COLUMNS)
    assert found.text == "pl.col('x') > pl.lit(5, dtype=pl.Int64)"
    assert found.residual == "soundex(s) = 'A'"


def test_expressions_without_text_are_rejected() -> None:
    with pytest.raises(UnsupportedOperation, match="object has no form in Python text"):
        spelled(object())
    with pytest.raises(UnsupportedOperation, match="list<"):
        spelled(pa.list_(pa.int64()))
