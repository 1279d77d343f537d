"""Lists that DataFusion's optimiser makes one of, forgetting NULL, are left; others are exact."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.sql.language import to_text
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.conformance import ours
from tests.bridges.datafusion_exprs.engine import frame
from tests.bridges.sql.engines import JUDGES

BATCH = pa.record_batch(
    {
        "x": pa.array([7, 0, None, 2**40, -1]),
        "y": pa.array([7, 0, 1, None, 7]),
        "f": pa.array([1.5, 7.0, None, 0.0, -0.0]),
        "s": pa.array(["a", "b", None, "e", ""]),
    }
)
SCHEMA = schema_of(BATCH.schema)[0]
WITH_NULLS = [
    "x IN (NULL)",
    "x NOT IN (NULL)",
    "x IN (1, NULL)",
    "x NOT IN (1, NULL)",
    "x IN (2)",
    "x NOT IN (1, 2)",
    "x NOT IN (2, 3, 4, 7, 8)",
    "x NOT IN (2, 3, 4, 7, NULL)",
]
FORGOTTEN = [
    "x NOT IN (7, 8) OR x NOT IN (0, 1)",
    "x NOT IN (7) OR x NOT IN (0)",
    "NOT (x IN (7, 8) AND x IN (0, 1))",
    "NOT (x IN (7, 8) AND x NOT IN (7, 8, 9))",
    "(x IN (7, 8, 9, 10) AND x IN (0, 1, 2, 3)) IS NULL",
    "NOT (x + 1 IN (7, 8, 9, 10) AND x + 1 IN (0, 1, 2, 3))",
    "NOT (s IN ('a', 'b', 'c', 'd') AND s IN ('e', 'f', 'g', 'h'))",
    "NOT (f IN (7e0, 8e0, 9e0, 10e0) AND f IN (1e0, 2e0, 3e0, 4e0))",
    "NOT ((x = 7 OR x = 8 OR x = 9 OR x = 10) AND (x = 0 OR x = 1 OR x = 2 OR x = 3))",
    "x IN (3, 4) OR NOT ((x IN (7, 8) AND x IN (8, 9)) AND x IN (0, 9))",
    "NOT (x IN (y, 9) AND x IN (7, 8))",
    "x NOT IN (y, 9) OR x NOT IN (7, 8)",
]
KEPT = [
    "NOT (x IN (7, 8) AND x IN (8, 9))",
    "x NOT IN (7, 8) OR x NOT IN (7, 1)",
    "NOT (x IN (7, 8) OR x IN (0, 1))",
    "NOT (x IN (7, 8) AND x NOT IN (8, 9))",
    "NOT ((x IN (7, 8) AND s IN ('a')) OR (x IN (0, 1) AND s IN ('b')))",
    "NOT (x IN (7, 8) AND s IN ('e'))",
    "x IN (7, 8) AND x IN (0, 1)",
    "NOT (x IN (7, 8) AND x <> 7 AND x <> 8 AND x <> 1 AND x <> 2)",
    "x <> 7 OR x <> 0 OR x <> 1 OR x <> 2",
    "NOT (x = 7 AND x = 0 AND x = 1 AND x = 2)",
]


@pytest.mark.parametrize("text", FORGOTTEN)
def test_lists_without_a_common_member_are_residual(text: str) -> None:
    predicate = parse_predicate(text, "datafusion")
    mine = ours(predicate, SCHEMA, BATCH, Semantics.DATAFUSION)
    assert JUDGES["datafusion"](text, BATCH) != mine
    for source in (text, frame(BATCH).parse_sql_expr(text)):
        name = "datafusion" if isinstance(source, str) else None
        read = rs.translate(source, name, target="rowsieve", schema=BATCH.schema)
        assert "no member in common" in read.notes[0]
    for target in ("datafusion", "datafusion_exprs"):
        written = rs.translate(predicate, target=target, schema=BATCH.schema)
        assert written.expression is None
        assert written.residual == predicate


@pytest.mark.parametrize("text", KEPT)
def test_lists_with_a_common_member_keep_their_rows(text: str) -> None:
    predicate = parse_predicate(text, "datafusion")
    mine = ours(predicate, SCHEMA, BATCH, Semantics.DATAFUSION)
    assert JUDGES["datafusion"](text, BATCH) == mine
    again = rs.translate(predicate, target="datafusion", schema=BATCH.schema).exact()
    assert JUDGES["datafusion"](again, BATCH) == mine
    assert rs.translate(text, "datafusion", target="rowsieve", schema=BATCH.schema).exact()


@pytest.mark.parametrize("shape", ["{}", "NOT ({})", "({}) IS NULL"])
def test_a_null_in_one_of_two_lists_is_not_forgotten(shape: str) -> None:
    batch = pa.record_batch({"x": pa.array([None, 1, 2, 5])})
    schema = schema_of(batch.schema)[0]
    for one, junction, other in itertools.product(WITH_NULLS, ("AND", "OR"), WITH_NULLS):
        text = shape.format(f"{one} {junction} {other}")
        predicate = parse_predicate(text, "datafusion")
        mine = ours(predicate, schema, batch, Semantics.DATAFUSION)
        written = rs.translate(predicate, target="datafusion", schema=batch.schema)
        if written.expression is not None:
            assert JUDGES["datafusion"](written.exact(), batch) == mine
        read = rs.translate(text, "datafusion", target="rowsieve", schema=batch.schema)
        if read.residual is None:
            assert JUDGES["datafusion"](text, batch) == mine


@pytest.mark.parametrize("zero", ["0e0", "-0e0"])
@pytest.mark.parametrize(
    "members", ["NULL, 7e0, NULL, 7e0, {}", "NULL, 7e0, {}", "1e0, NULL, {}, 2e0, 3e0"]
)
@pytest.mark.parametrize("shape", ["f IN ({})", "f NOT IN ({})", "(f IN ({})) IS NULL"])
def test_a_list_with_null_tells_zeros_as_a_list_of_its_length(
    shape: str, members: str, zero: str
) -> None:
    text = shape.format(members.format(zero))
    predicate = parse_predicate(text, "datafusion")
    mine = ours(predicate, SCHEMA, BATCH, Semantics.DATAFUSION)
    written = to_text(predicate, SCHEMA, dialect="datafusion").exact()
    assert JUDGES["datafusion"](written, BATCH) == mine
    assert JUDGES["datafusion"](text, BATCH) == mine


@pytest.mark.parametrize(
    "text",
    [
        "x IN (y, 9) AND x IN (7, 8)",
        "x IN (7, 8) AND x IN (y, 8) AND s <> 'z'",
        "NOT (x NOT IN (y, NULL)) AND x IN (7, 8)",
    ],
)
def test_lists_with_columns_stay_in_one_condition(text: str) -> None:
    predicate = parse_predicate(text, "datafusion")
    mine = ours(predicate, SCHEMA, BATCH, Semantics.DATAFUSION)
    assert JUDGES["datafusion"](text, BATCH) != mine
    read = rs.translate(text, "datafusion", target="rowsieve", schema=BATCH.schema)
    assert str(read.expression) == ("s <> 'z'" if "z" in text else "None")
    assert all("loses the columns" in note for note in read.notes)
    assert len(read.notes) == 2
    alone = rs.translate(
        "x IN (y, 9) AND s IN ('a')", "datafusion", target="rowsieve", schema=BATCH.schema
    )
    assert alone.residual is None


@pytest.mark.parametrize("text", ["TRY_CAST(x AS INT) <> 7", "NOT TRY_CAST(x AS SMALLINT) > 9"])
def test_a_try_cast_that_the_optimiser_drops_is_left(text: str) -> None:
    """NULL where the number does not fit, but in a comparison the number itself."""
    predicate = parse_predicate(text, "datafusion")
    mine = ours(predicate, SCHEMA, BATCH, Semantics.DATAFUSION)
    found = JUDGES["datafusion"](text, BATCH)
    assert found != mine or "SMALLINT" in text
    expression = frame(BATCH).parse_sql_expr(text)
    assert rs.translate(expression, target="rowsieve", schema=BATCH.schema).expression is None
    read = rs.translate(text, "datafusion", target="rowsieve", schema=BATCH.schema)
    assert read.residual == text
