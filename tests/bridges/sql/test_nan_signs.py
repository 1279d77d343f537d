"""DataFusion orders NaN by its sign bit; `where=` in its dialect answers what it answers."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import datafusion
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.bridges.translate import translate
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import EvaluationError
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.codec import predicate_from_json, predicate_to_json
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.sql.engines import datafusion_rows
from tests.predicate.part_statistics import Known
from tests.small_tables import fresh_uri

NUMBERS = [1.0, math.nan, None, -1.0, 0.0, -0.0, math.inf, -math.inf]
DATA = pa.table(
    {
        "id": list(range(8)),
        "f": NUMBERS,
        "g": [1.0, 2.0, math.nan, math.nan, 0.0, 1.0, math.inf, 0.0],
        "r": pa.array(NUMBERS, pa.float32()),
        "s": ["-NaN", "NaN", "1", "nan", "-nan", "-inf", None, "2"],
        "l": pa.array([[x] for x in NUMBERS], pa.list_(pa.float64())),
    }
)
VALUES = [
    *("-f", "-(-f)", "0 - f", "1 - f", "f * -1", "-f + 1", "(-f) / 2", "f % 2", "-r", "r / r"),
    *("f / 0.0", "0.0 / f", "f / f", "f % 0.0", "f * 0.0", "f - f", "r - r"),
    *("f / g", "f * g", "f % g", "f + g", "f - g", "(-f) - f", "f - (-f)", "f / (-f)"),
    *("abs(-f)", "floor(-f)", "ceil(-f)", "round(-f)", "round(-f, 2)", "signum(-f)", "degrees(-f)"),
    *("radians(-f)", "sqrt(abs(-f))", "CAST(-f AS real)", "CAST(-r AS double)"),
    *("coalesce(-f, 1.0)", "nullif(-f, f)", "greatest(-f, 1.0)", "least(-f, 0.0)"),
    *("greatest(-f, f)", "least(f, -f)", "CASE WHEN id < 4 THEN -f ELSE f END"),
    *("'-NaN'::double", "-'NaN'::double", "CAST(s AS double)", "CAST('-NaN' AS real)"),
    *("arrow_cast('-NaN', 'Float64')", "-(l[1])", "[-f][1]"),
]
CONDITIONS = [
    *("{v} > 1", "{v} < -1e308", "{v} = 'NaN'::double", "{v} <> 0.0", "{v} >= f", "f >= {v}"),
    *("{v} IN (1, 'NaN'::double)", "{v} NOT IN (1, 2, 3, 4, 'NaN'::double)", "isnan({v})"),
    *("{v} BETWEEN -2 AND 2", "{v} IS DISTINCT FROM f", "{v} IS NOT DISTINCT FROM -f"),
    *("NOT ({v} < 0.0)", "{v} = {v}", "{v} IS NULL", "[{v}] < [0.0]", "[{v}] = [f]"),
]


SCHEMA = schema_of(DATA.schema)[0]
BATCH = DATA.to_batches()[0]


# Rows that make a part: each row, each with its neighbour, and numbers beside infinity and NaN.
PARTS = [[row] for row in range(8)] + [[row, row + 1] for row in range(7)] + [[0, 6], [0, 1, 7]]


@cache
def known() -> Known:
    """What statistics say of the parts: bounds of what is neither NULL nor NaN."""
    columns = {}
    for name in ("id", "f", "g", "r", "s"):
        parts = [BATCH.column(name).take(pa.array(part)) for part in PARTS]
        numbers = [part.filter(pc.equal(part, part)) for part in parts]
        ends = [pc.min_max(part) for part in numbers]
        nulls = np.array([part.null_count > 0 for part in parts])
        empty = np.array([part.null_count == len(part) for part in parts])
        nan = [len(n) < len(p) - p.null_count for n, p in zip(numbers, parts, strict=True)]
        lower, upper = (
            pa.array([end[side].as_py() for end in ends], BATCH.column(name).type)
            for side in ("min", "max")
        )
        columns[name] = AbstractColumn(lower, upper, empty, nulls, np.array(nan))
    return Known(len(PARTS), columns)


@pytest.fixture(scope="module")
def context() -> datafusion.SessionContext:
    context = datafusion.SessionContext()
    context.register_record_batches("m", [DATA.to_batches()])
    return context


@pytest.mark.parametrize("value", VALUES)
def test_a_computed_nan_matches_the_rows_of_datafusion(
    context: datafusion.SessionContext, value: str
) -> None:
    texts = [condition.format(v=value) for condition in CONDITIONS]
    columns = ", ".join(f"({text}) AS c{place}" for place, text in enumerate(texts))
    answers = context.sql(f"SELECT {columns} FROM m ORDER BY id").to_arrow_table()
    for place, text in enumerate(texts):
        predicate = to_predicate(text, "datafusion", SCHEMA)
        bound = bind(predicate, SCHEMA, Semantics.DATAFUSION)
        outcome = evaluate(bound, BATCH)
        expected = np.array(pc.fill_null(answers[f"c{place}"], fill_value=False))
        assert (outcome.true == expected).all(), text
        assert not outcome.failed.any(), text
        verdicts = interpret(bound, known())
        for part, verdict in zip(PARTS, verdicts, strict=True):
            assert verdict != Verdict.NONE or not expected[part].any(), (text, part)
            assert verdict != Verdict.ALL or expected[part].all(), (text, part)


def test_a_scan_with_pruned_parts_matches_the_rows_of_datafusion(
    tmp_path: Path, context: datafusion.SessionContext
) -> None:
    table = rs.create_table(str(tmp_path / "t"), DATA[:1], key=["id"])
    for row in range(1, DATA.num_rows):
        table.upsert(DATA[row : row + 1])
    for text in ("-f < -1e308", "f / 0.0 > 1", "-f + 1 BETWEEN -2 AND 2", "NOT (f % 2 < 0.0)"):
        expected = context.sql(f"SELECT id FROM m WHERE {text} ORDER BY id").to_pydict()
        found = table.scan(text, dialect="datafusion").to_arrow().sort_by("id")
        assert found["id"].to_pylist() == expected["id"], text


@pytest.mark.parametrize("value", ["f + (-f)", "f * (-f)", "(f / f) + f"])
def test_nans_of_two_signs_that_meet_are_an_error_where_they_survive(
    tmp_path: Path, value: str
) -> None:
    table = rs.create_table(str(tmp_path / "t"), pa.table({"id": [1, 2], "f": [1.0, math.nan]}))
    text = f"{value} > -5"
    if "/" in value:
        assert table.scan(text, dialect="datafusion").count() == 2  # 0 / 0 is on no row
        table.append(pa.table({"id": [3], "f": [-math.nan]}))
        assert table.scan(text, dialect="datafusion").count() == 3  # it is stored as NaN
        return
    with pytest.raises(EvaluationError):
        table.scan(text, dialect="datafusion").count()
    assert table.scan(f"{text} AND id = 1", dialect="datafusion").count() == 1
    assert table.scan(text, dialect="postgres").count() == 2


@pytest.mark.parametrize(
    "text", ["-f > 1", "f / g > 1", "CAST(s AS double) > 1", "f > '-NaN'::double", "-f IN (1, 2)"]
)
def test_conditions_that_depend_on_the_sign_of_nan_are_not_translated(text: str) -> None:
    for target in (
        "spark",
        "duckdb",
        "polars",
        "postgres",
        "pyarrow_exprs",
        "delta_dnf",
        "iceberg",
        "spark_filters",
        "rowsieve",
    ):
        found = translate(text, "datafusion", target=target, schema=DATA.schema)
        assert found.expression is None, target
    for source in ("duckdb", "postgres", "spark"):
        meant = text.replace("'-NaN'::double", "-f")
        found = translate(meant, source, target="datafusion", schema=DATA.schema)
        assert found.expression is None or "nanvl(-" in found.expression, (
            source
        )  # NaN made positive


def test_the_sign_of_a_constant_nan_survives_the_codec() -> None:
    for value in (math.nan, -math.nan):
        plain = ir.Comparison(ir.ComparisonOp.GT, ir.Column("f"), ir.Literal(value))
        assert predicate_from_json(predicate_to_json(plain)) == plain


def test_a_list_finds_nan_of_the_sign_of_its_member_alone() -> None:
    negated = ir.Call("negate", (ir.Column("f"),))
    for members, expected in (([-math.nan, 7.0], [1]), ([math.nan, 7.0], []), ([7.0], [])):
        predicate = ir.InList(negated, ir.ValueSet(pa.array(members)))
        outcome = evaluate(bind(predicate, SCHEMA, Semantics.DATAFUSION), BATCH)
        assert np.flatnonzero(outcome.true).tolist() == expected
    outcome = evaluate(bind(predicate, SCHEMA, Semantics.POSTGRES), BATCH)
    assert not outcome.true.any()


@pytest.mark.parametrize(
    "where",
    [
        "nanvl(f, g) = 2",
        "nanvl(f, 0) = 0",
        "nanvl(f, NULL) IS NULL",
        "nanvl(r, r) < 1",
        "nanvl(f + 1.5, CAST('NaN' AS DOUBLE)) > 1.5",
    ],
)
def test_nanvl_is_read_as_datafusion_means_it(where: str) -> None:
    table = rs.create_table(fresh_uri(), DATA.schema, key=["id"])
    table.upsert(DATA)
    found = table.scan(where, ["id"], dialect="datafusion").to_arrow()["id"].to_pylist()
    assert sorted(found) == datafusion_rows(where, DATA.to_batches()[0])
