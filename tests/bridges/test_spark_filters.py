"""Spark's filters: every class both ways, and the rows that an evaluator by hand keeps."""

from __future__ import annotations

import datetime
import decimal
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark.sql.datasource as spark
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.bridges.spark_filters import (
    FILTERS,
    from_spark_filters,
    is_spark_filters,
    to_spark_filters,
)
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate, matching
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Float, Int
from tests.profiles import examples
from tests.strategies import IEEE, SCHEMA, batches, predicates

D = decimal.Decimal
UTC = datetime.UTC
CELLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.bool_(), [True, False]),
    "i": (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31)]),
    "k": (pa.int64(), [0, 2**53 + 1, -(2**63), 2**63 - 1]),
    "f": (pa.float64(), [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf]),
    "g": (pa.float32(), [0.0, -0.0, 1.5, math.nan, math.inf]),
    "d": (pa.decimal128(8, 2), [D("0.00"), D("1.50"), D("-999999.99")]),
    "s": (pa.string(), ["", "a", "ab", "ba", "é", "a%"]),
    "y": (pa.binary(), [b"", b"a", b"\xff"]),
    "day": (pa.date32(), [datetime.date(1970, 1, 1), datetime.date(1, 1, 1)]),
    "ts": (
        pa.timestamp("us"),
        [datetime.datetime(2024, 3, 31, 2, 30), datetime.datetime(1969, 12, 31, 23, 59, 59, 1)],
    ),
    "tz": (pa.timestamp("us", "UTC"), [datetime.datetime(2024, 3, 31, 1, tzinfo=UTC)]),
}
SPARK_SCHEMA = schema_of(pa.schema([(name, type_) for name, (type_, _) in CELLS.items()]))[0]
ORDERED = ("EqualTo", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual")


@st.composite
def filters(draw: st.DrawFn) -> Any:
    name = draw(st.sampled_from(list(CELLS)))
    values = st.none() | st.sampled_from(CELLS[name][1])
    kind = draw(st.sampled_from([row.foreign for row in FILTERS]))
    if kind == "Not":
        return spark.Not(draw(filters()))
    if kind in ("IsNull", "IsNotNull"):
        return getattr(spark, kind)((name,))
    if kind == "In":
        return spark.In((name,), tuple(draw(st.lists(values, max_size=5))))
    if kind.startswith("String"):
        return getattr(spark, kind)(("s",), draw(st.sampled_from(["", "a", "b", "%", "é"])))
    return getattr(spark, kind)((name,), draw(values))


@st.composite
def rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    row = st.fixed_dictionaries(
        {name: st.none() | st.sampled_from(cells) for name, (_, cells) in CELLS.items()}
    )
    return draw(st.lists(row, min_size=1, max_size=6))


def truth(item: Any, row: dict[str, Any]) -> Any:
    """What Spark's documents say that a filter is on a row."""
    kind = type(item).__name__
    if kind == "Not":
        inner = truth(item.child, row)
        return None if inner is None else not inner
    cell = row[item.attribute[0]]
    if kind in ("IsNull", "IsNotNull"):
        return (cell is None) == (kind == "IsNull")
    if kind == "EqualNullSafe":
        missing = cell is None, item.value is None
        return all(missing) if any(missing) else rank(cell) == rank(item.value)
    if kind == "In":
        if not item.value:
            return False
        found = cell is not None and any(
            value is not None and rank(cell) == rank(value) for value in item.value
        )
        return True if found else None if cell is None or None in item.value else False
    if cell is None or item.value is None:
        return None
    if kind.startswith("String"):
        starts, ends = cell.startswith(item.value), cell.endswith(item.value)
        contains = item.value in cell
        return {"StringStartsWith": starts, "StringEndsWith": ends}.get(kind, contains)
    a, b = rank(cell), rank(item.value)
    return dict(zip(ORDERED, (a == b, a > b, a >= b, a < b, a <= b), strict=True))[kind]


def rank(value: Any) -> Any:
    """NaN is equal to itself and above all."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def batch_of(found: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.record_batch(
        {name: pa.array([row[name] for row in found], type_) for name, (type_, _) in CELLS.items()}
    )


def test_every_class_of_spark_is_listed() -> None:
    found = {
        name
        for name, value in vars(spark).items()
        if isinstance(value, type) and issubclass(value, spark.Filter) and value is not spark.Filter
    }
    assert found == {row.foreign for row in FILTERS}


@examples(300)
@given(item=filters(), found=rows())
def test_rows_are_those_of_the_documents(item: Any, found: list[dict[str, Any]]) -> None:
    read = from_spark_filters([item], SPARK_SCHEMA, ansi=True)
    assert read.exactness is Exactness.EXACT, read.notes
    bound = bind(read.exact(), SPARK_SCHEMA, Semantics.SPARK)
    kept = matching(bound, batch_of(found)).tolist()
    assert kept == [truth(item, row) is True for row in found]


@examples(200)
@given(item=filters(), found=rows())
def test_read_filters_are_written_back(item: Any, found: list[dict[str, Any]]) -> None:
    predicate = from_spark_filters([item], SPARK_SCHEMA, ansi=True).exact()
    written = to_spark_filters(predicate, SPARK_SCHEMA)
    if written.expression is None:
        assert "()" in repr(item)  # an empty list
        return
    again = from_spark_filters(written.exact(), SPARK_SCHEMA).exact()
    assert normalize(again) == normalize(predicate)
    judged = [all(truth(part, row) is True for part in written.exact()) for row in found]
    assert judged == [truth(item, row) is True for row in found]


@examples(100)
@given(predicate=predicates(1), batch=batches(min_rows=1))
def test_random_predicates_lose_no_row(predicate: ir.Predicate, batch: pa.RecordBatch) -> None:
    try:
        written = to_spark_filters(predicate, SCHEMA)
    except InvalidPredicate:
        reject()
    whole = evaluate(bind(predicate, SCHEMA, Semantics.SPARK), batch)
    if written.expression is None:
        assert written.residual is not None
        return
    again = from_spark_filters(written.expression, SCHEMA, strict=True).exact()
    terms = (again,) if written.residual is None else (again, written.residual)
    both = evaluate(bind(ir.And(terms), SCHEMA, Semantics.SPARK), batch)
    assert both.true.tolist() == whole.true.tolist()


def test_members_of_structs_are_paths() -> None:
    read = from_spark_filters([spark.EqualTo(("pair", "x"), 1)], SCHEMA).exact()
    assert to_spark_filters(read, SCHEMA).exact() == [spark.EqualTo(("pair", "x"), 1)]


@pytest.mark.parametrize(
    "item",
    [
        spark.EqualTo(("i",), "1"),
        spark.EqualTo(attribute=("i",), value=True),
        spark.EqualTo(("i",), 1.0),
        spark.EqualTo(("s",), 1),
        spark.EqualTo(("ts",), datetime.datetime(2024, 1, 1, tzinfo=UTC)),
        spark.EqualTo(("tz",), datetime.datetime(2024, 1, 1)),
        spark.EqualTo(("day",), datetime.datetime(2024, 1, 1)),
        spark.EqualTo(("i",), 2**31),
        spark.StringContains(("y",), "a"),
        spark.EqualTo(("s", "x"), 1),
        spark.Not(spark.In(("i",), (1, "2"))),
    ],
    ids=repr,
)
def test_values_of_another_type_go_to_the_residual(item: Any) -> None:
    read = from_spark_filters([spark.IsNull(("b",)), item], SPARK_SCHEMA)
    assert read.exactness is Exactness.SUPERSET
    assert read.residual == [item]
    assert read.notes[0].startswith("condition 2 of 2")
    with pytest.raises(UnsupportedOperation, match=r"condition 2 of 2"):
        from_spark_filters([spark.IsNull(("b",)), item], SPARK_SCHEMA, strict=True)


def test_conditions_without_a_spark_filter_are_residual() -> None:
    one = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i"), ir.Literal(1, Int(32)))
    either = ir.Or((one, ir.Comparison(ir.ComparisonOp.EQ, ir.Column("k"), ir.Literal(1, Int(64)))))
    written = to_spark_filters(ir.And((one, either)), SPARK_SCHEMA)
    assert written.exactness is Exactness.SUPERSET
    assert written.expression == [spark.EqualTo(("i",), 1)]
    assert written.residual == either


def test_differences_of_semantics_go_to_the_residual() -> None:
    above = ir.Comparison(ir.ComparisonOp.GT, ir.Column("f"), ir.Literal(0.0, Float(64)))
    assert to_spark_filters(above, SPARK_SCHEMA, IEEE).expression is None
    zeros = ir.InList(ir.Column("f"), ir.ValueSet(pa.array([0.0, 1.0, 2.0, 3.0]), Float(64)))
    assert to_spark_filters(zeros, SPARK_SCHEMA, Semantics.DATAFUSION).expression is None
    assert to_spark_filters(zeros, SPARK_SCHEMA).expression is not None


def test_in_with_an_empty_list_keeps_no_row_and_not_in_needs_the_mode() -> None:
    nothing = spark.In(("i",), ())
    for item in (nothing, spark.Not(spark.Not(nothing))):
        assert from_spark_filters([item], SPARK_SCHEMA).exact() == ir.FALSE
    for item in (spark.Not(nothing), spark.Not(spark.Not(spark.Not(nothing)))):
        read = from_spark_filters([spark.IsNull(("b",)), item], SPARK_SCHEMA)
        assert read.exactness is Exactness.SUPERSET
        assert read.residual == [item]
        assert "ansi=" in read.notes[0]
    batch = pa.record_batch({"i": pa.array([1, None], pa.int32())})
    for ansi, wanted in ((True, [True, True]), (False, [True, False])):
        found = from_spark_filters([spark.Not(nothing)], SPARK_SCHEMA, ansi=ansi).exact()
        assert matching(bind(found, SPARK_SCHEMA, Semantics.SPARK), batch).tolist() == wanted


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("a%", spark.StringStartsWith(("s",), "a")),
        ("%a", spark.StringEndsWith(("s",), "a")),
        ("%a%", spark.StringContains(("s",), "a")),
        ("%", spark.StringEndsWith(("s",), "")),
        ("a_%", None),
        ("a%b", None),
        ("a\\%", None),
    ],
)
def test_patterns_with_a_filter_of_their_own(pattern: str, wanted: Any) -> None:
    written = to_spark_filters(ir.Like(ir.Column("s"), pattern), SPARK_SCHEMA)
    assert written.expression == (None if wanted is None else [wanted])


def test_scans_take_filters(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), pa.table({"id": [1, 2, 3]}), key=["id"])
    assert table.scan(where=[spark.Not(spark.EqualTo(("id",), 2))]).count() == 2
    with pytest.raises(UnknownColumn):
        table.scan(where=[spark.IsNull(("nowhere",))])
    assert is_spark_filters([spark.IsNull(("id",))])
    assert not is_spark_filters(["id IS NULL"])
    assert not is_spark_filters([])


def test_one_filter_is_a_list_of_one() -> None:
    one = spark.EqualTo(("i",), 5)
    assert is_spark_filters(one)
    assert from_spark_filters(one, SPARK_SCHEMA) == from_spark_filters([one], SPARK_SCHEMA)
    unknown = spark.EqualTo(("i",), "5")
    assert from_spark_filters(unknown, SPARK_SCHEMA).residual == [unknown]
