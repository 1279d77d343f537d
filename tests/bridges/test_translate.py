"""`rs.translate`: sources found, conditions kept or left, nothing dropped where it may not be."""

from __future__ import annotations

import copy

import datafusion
import pyarrow as pa
import pyspark.sql.datasource as spark
import pytest

import rowsieve as rs
from rowsieve.bridges.languages import BRIDGES, bridge_of
from rowsieve.bridges.translation import Note
from rowsieve.errors import InvalidInput, InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir

ROWS = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("pair", pa.struct([("a", pa.int32())])),
    ]
)
ABOVE = ir.Comparison(ir.ComparisonOp.GT, ir.Column("id"), ir.Literal(5))


@pytest.mark.parametrize(
    ("expression", "source", "target", "wanted"),
    [
        ("`id` > 5 AND `name` = 'x'", "spark", "datafusion", '"id" > 5 AND "name" = \'x\''),
        ("\"name\" = 'it''s'", "duckdb", "spark", "`name` = 'it\\'s'"),
        (ABOVE, None, "duckdb", '"id" > 5'),
        (datafusion.col("id") > datafusion.lit(5), None, "spark", "`id` > 5"),
        ([spark.GreaterThan(("id",), 5)], None, "postgres", '"id" > 5'),
        ("id > 5", "duckdb", "spark_filters", [spark.GreaterThan(("id",), 5)]),
        ("id > 5", "duckdb", "rowsieve", ir.Comparison(ABOVE.op, ir.Column("id"), ir.Literal(5))),
        ("x IN (0, 1, 2, 3)", "spark", "datafusion", '"x" IN (1.0, 2.0, 3.0, 0.0, -0.0)'),
    ],
)
def test_conditions_are_translated_to_other_languages(
    expression: object, source: str | None, target: str, wanted: object
) -> None:
    made = rs.translate(expression, source, target=target, schema=ROWS)
    assert made.exactness is rs.Exactness.EXACT, made.notes
    assert made.residual is None
    if target == "rowsieve":
        again = rs.translate(made.expression, target="postgres", schema=ROWS)
        assert again.expression == '"id" > 5'
    else:
        assert made.expression == wanted


def test_conditions_that_cannot_be_read_are_residual_unchanged() -> None:
    text = "id > 5 AND name RLIKE 'a*+' AND (x < 1 OR id = 0)"
    made = rs.translate(text, "spark", target="datafusion", schema=ROWS)
    assert made.exactness is rs.Exactness.SUPERSET
    assert made.residual == "name RLIKE 'a*+'"
    assert made.notes[0].startswith("condition 2 of 3 (name RLIKE 'a*+'): ")
    assert "offset 11" in made.notes[0]
    assert made.expression == '"id" > 5 AND ("x" < 1.0 OR "id" = 0)'


def test_conditions_that_cannot_be_written_are_residual_in_the_source_language() -> None:
    made = rs.translate("`id` + 1 > 5 AND `name` > 'a'", "spark", target="datafusion", schema=ROWS)
    assert made.expression == "\"name\" > 'a'"
    assert made.residual == "`id` + 1 > 5"
    assert made.notes == (
        (
            'condition 1 of 2 ("id" + 1 > 5): add of whole numbers that overflows fails in spark '
            "and wraps around in datafusion; cast an operand to a wider type"
        ),
    )


def test_the_residual_is_the_original_if_reading_and_writing_both_have_one() -> None:
    text = "id + 1 > 5 AND name RLIKE 'a*+' AND id = 7"
    made = rs.translate(text, "spark", target="datafusion", schema=ROWS)
    assert made.expression == '"id" = 7'
    assert made.residual == text
    assert len(made.notes) == 2


@pytest.mark.parametrize(
    "text",
    [
        "id > 5 OR name RLIKE 'a*+'",
        "NOT (id > 5 AND name RLIKE 'a*+')",
        "CASE WHEN name RLIKE 'a*+' THEN id > 5 ELSE TRUE END",
        "id BETWEEN 1 AND length(regexp_replace(name, 'a*+', 'b'))",
    ],
)
def test_nothing_is_dropped_inside_a_condition(text: str) -> None:
    made = rs.translate(text, "spark", target="datafusion", schema=ROWS)
    assert made.exactness is rs.Exactness.UNSUPPORTED
    assert made.expression is None
    assert made.residual == text
    with pytest.raises(UnsupportedOperation, match=r"condition 1 of 1"):
        rs.translate(text, "spark", target="datafusion", schema=ROWS, strict=True)


def test_conditions_are_split_at_the_ands_of_the_text() -> None:
    text = (
        "id BETWEEN 1 AND 2 AND name RLIKE ' AND *+' AND (id = 1 AND x = 2)"
        " AND CASE WHEN id = 1 AND x = 2 THEN TRUE END"
    )
    made = rs.translate(text, "spark", target="duckdb", schema=ROWS)
    assert made.residual == "name RLIKE ' AND *+'"


def test_an_open_distinct_is_not_taken_apart() -> None:
    text = "id IS DISTINCT FROM 1 AND regexp_like(name, 'a') AND id = 2"
    made = rs.translate(text, "datafusion", target="duckdb", schema=ROWS)
    assert made.expression is None
    assert made.residual == text


def test_long_lists_are_unchanged_in_a_residual() -> None:
    members = ", ".join(map(str, range(200)))
    text = f"name RLIKE 'a*+' AND id IN ({members}) AND name RLIKE 'b*+'"
    made = rs.translate(text, "spark", target="duckdb", schema=ROWS)
    assert made.residual == "(name RLIKE 'a*+') AND (name RLIKE 'b*+')"
    assert made.expression == f'"id" IN ({members})'
    listed = f"name RLIKE 'a*+' OR id IN ({members})"
    assert rs.translate(listed, "spark", target="duckdb", schema=ROWS).residual == listed


def test_conditions_of_another_engine_are_left() -> None:
    elsewhere = ir.Opaque("rlike(name, 'a')", "spark", ("name",))
    made = rs.translate(ir.Or((ABOVE, elsewhere)), target="duckdb", schema=ROWS)
    assert made.expression is None
    assert made.residual == ir.Or((ABOVE, elsewhere))


def test_conditions_for_all_rows_and_no_rows_are_translated() -> None:
    assert rs.translate("TRUE", "spark", target="duckdb", schema=ROWS).expression == "TRUE"
    assert rs.translate("FALSE", "spark", target="duckdb", schema=ROWS).expression == "FALSE"


def test_errors_name_the_invalid_argument() -> None:
    with pytest.raises(InvalidInput, match="source='spark'"):
        rs.translate("id > 5", target="duckdb", schema=ROWS)
    with pytest.raises(InvalidInput, match="float"):
        rs.translate(1.5, target="duckdb", schema=ROWS)
    with pytest.raises(InvalidInput, match=r"'mongo'.*known are rowsieve, postgres"):
        rs.translate("id > 5", "spark", target="mongo", schema=ROWS)
    with pytest.raises(InvalidInput, match="Arrow schema"):
        rs.translate("id > 5", "spark", target="duckdb", schema="id bigint")
    with pytest.raises(InvalidInput, match="is text, not int"):
        rs.translate(5, "spark", target="duckdb", schema=ROWS)
    with pytest.raises(InvalidPredicate, match="offset 5"):
        rs.translate("id > AND", "spark", target="duckdb", schema=ROWS)
    with pytest.raises(UnknownColumn):
        rs.translate("nowhere > 5", "spark", target="duckdb", schema=ROWS)


@pytest.mark.parametrize(
    "source", ["rowsieve", "datafusion_exprs", "polars", "pyarrow_exprs", "iceberg"]
)
def test_expressions_of_another_source_are_rejected(source: str) -> None:
    with pytest.raises(InvalidInput, match=f"source='{source}' takes .*, not str"):
        rs.translate("i > 1", source, target="duckdb", schema=ROWS)


@pytest.mark.parametrize(
    "text", ["name = '\ud800'", "name IN ('a', '\ud800')", "name LIKE '\udfff%'"]
)
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate, match="an unpaired surrogate"):
        rs.translate(text, "duckdb", target="pyarrow_exprs", schema=ROWS)
    halved = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("name"), ir.Literal("a\ud800"))
    with pytest.raises(InvalidPredicate, match="offset 1"):
        rs.translate(halved, target="pyarrow_exprs", schema=ROWS)


def test_a_bridge_has_one_name_and_text_belongs_to_none() -> None:
    names = [bridge.name for bridge in BRIDGES]
    assert len(set(names)) == len(names)
    assert bridge_of("id > 5") is None
    found = bridge_of(datafusion.col("id"))
    assert found is not None
    assert found.name == "datafusion_exprs"


def test_a_change_of_syntax_is_not_an_exact_filter() -> None:
    made = rs.translate("`id` > 5", "spark", target="mysql", syntax_only=True)
    assert made.expression == "`id` > 5"
    assert made.exactness is rs.Exactness.UNSUPPORTED
    assert made.residual == "`id` > 5"
    with pytest.raises(UnsupportedOperation, match="syntax only"):
        made.exact()
    read = rs.translate("[id] > 5", "tsql", target="duckdb", syntax_only=True)
    assert read.expression == '"id" > 5'
    with pytest.raises(InvalidInput, match="'mongo'; sqlglot knows"):
        rs.translate("id > 5", "spark", target="mongo", syntax_only=True)
    with pytest.raises(InvalidInput, match="never strict"):
        rs.translate("id > 5", "spark", target="mysql", syntax_only=True, strict=True)
    with pytest.raises(InvalidPredicate):
        rs.translate("id > (SELECT 1)", "mysql", target="duckdb", syntax_only=True)


def test_a_condition_of_the_wrong_types_is_unchanged() -> None:
    made = rs.translate("id > 5 AND greatest(name, id) = 1", "spark", target="duckdb", schema=ROWS)
    assert made.expression == '"id" > 5'
    assert made.residual == "greatest(name, id) = 1"


def test_a_note_is_text_with_its_pieces() -> None:
    made = rs.translate("id > 5 AND soundex(s) = 'A400'", "spark", target="duckdb", schema=NOTED)
    (note,) = made.notes
    assert isinstance(note, Note)
    assert note == f"condition 2 of 2 ({note.shown}): {note.reason}"
    moved = note.at(0, 9)
    assert (moved.shown, moved.reason) == (note.shown, note.reason)
    assert moved.startswith("condition 1 of 9 (")
    again = copy.deepcopy(note)
    assert (again, again.reason) == (note, note.reason)


NOTED = pa.schema([("id", pa.int64()), ("s", pa.string())])


def test_a_function_that_the_engine_lacks_is_not_said_to_give_other_values() -> None:
    schema = pa.schema([("n", pa.int64())])
    made = rs.translate("gcd(n, 6) = 3", source="duckdb", target="spark", schema=schema)
    assert made.expression is None
    assert "gcd has no verified counterpart in spark" in made.notes[0]
