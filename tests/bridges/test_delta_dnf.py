"""DNF filters: every operator both ways, and the rows that pyarrow keeps by them."""

from __future__ import annotations

import datetime
import decimal
import inspect
import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.bridges.delta_dnf import (
    OPERATORS,
    from_dnf_filters,
    is_dnf_filters,
    to_dnf_filters,
)
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Float, Int
from tests.bridges.awkward import rows
from tests.bridges.conformance import awkward_batch, ours
from tests.profiles import examples
from tests.strategies import SCHEMA

D = decimal.Decimal
CONSTANTS: dict[str, list[Any]] = {
    "b": [True, None],
    "i8": [0, -128, 200, 2**40, 1.5, None],
    "i32": [0, 7, -(2**31), 2**40, 0.5],
    "i64": [0, 1, 2**63 - 1, -(2**63), 2.5],
    "u8": [0, 255, 256],
    "f32": [0.0, -0.0, 1.5, 0.1, math.nan, math.inf],
    "f64": [0.0, -0.0, 1.5, 7, math.nan, -math.inf],
    "d": [D("1.50"), D("-2.50"), D("1.505")],
    "s": ["", "a", "é", None],
    "bin": [b"", b"a"],
    "day": [datetime.date(1970, 1, 1), datetime.date(2013, 1, 1)],
    "time": [datetime.time(10, 30)],
    "ts": [datetime.datetime(2013, 1, 1, 10, 30)],
    "tz": [datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC)],
}


@st.composite
def filters(draw: st.DrawFn) -> Any:
    def one() -> tuple[str, str, Any]:
        name = draw(st.sampled_from(list(CONSTANTS)))
        operator = draw(st.sampled_from([row.foreign for row in OPERATORS]))
        values = st.sampled_from(CONSTANTS[name])
        if "in" in operator:
            first = draw(values)
            same = [v for v in CONSTANTS[name] if v is None or type(v) is type(first)]
            return name, operator, [first, *draw(st.lists(st.sampled_from(same), max_size=4))]
        return name, operator, draw(values)

    groups = [
        [one() for _ in range(draw(st.integers(1, 3)))] for _ in range(draw(st.integers(1, 3)))
    ]
    return groups if draw(st.booleans()) or len(groups) > 1 else groups[0]


def theirs(listed: Any, batch: pa.RecordBatch) -> list[int]:
    numbered = batch.append_column("row number", pa.array(range(batch.num_rows)))
    kept = pa.Table.from_batches([numbered]).filter(pq.filters_to_expression(listed))
    found: list[int] = kept["row number"].to_pylist()
    return found


def test_every_operator_of_pyarrow_is_listed() -> None:
    source = inspect.getsource(pq.filters_to_expression)
    assert {row.foreign for row in OPERATORS} == set(re.findall(r"op == [\"']([^\"']+)", source))


@examples(300)
@given(listed=filters(), seed=st.integers(0, 99))
def test_rows_are_those_of_pyarrow(listed: Any, seed: int) -> None:
    read = from_dnf_filters(listed, SCHEMA)
    if read.exactness is not Exactness.EXACT:
        return
    try:
        found = theirs(listed, awkward_batch(seed))
    except pa.ArrowException:
        reject()
    assert ours(read.exact(), SCHEMA, awkward_batch(seed), Semantics.PYARROW) == found
    written = to_dnf_filters(read.exact(), SCHEMA)
    if written.exactness is Exactness.EXACT:
        assert theirs(written.exact(), awkward_batch(seed)) == found


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (("s", "like", "a%"), "the operator 'like' is unknown; known are ="),
        (("s", "=", 1j), "pyarrow has no constant of the value"),
        (("i32", "in", 5), "pyarrow has no constant of the value"),
        (("i32", "=", "1"), "int32"),
        (("pair", "=", {"x": 1}), "struct"),
    ],
    ids=str,
)
def test_constructs_without_a_counterpart_are_residual_and_named(item: Any, reason: str) -> None:
    read = from_dnf_filters([("b", "=", True), item], SCHEMA)
    assert read.exactness is Exactness.SUPERSET
    assert read.residual == [item]
    assert read.notes[0].startswith("condition 2 of 2 (")
    assert reason in read.notes[0]
    with pytest.raises(UnsupportedOperation, match="condition 2 of 2"):
        from_dnf_filters([("b", "=", True), item], SCHEMA, strict=True)
    either = [[("b", "=", True)], [item]]
    assert from_dnf_filters(either, SCHEMA).expression is None
    assert from_dnf_filters(either, SCHEMA).residual == either


@pytest.mark.parametrize("bad", [[], [[]], [("a", "=")], [("a", 1, 2)], ["a"], (("a", "=", 1),)])
def test_bad_filters_are_refused(bad: Any) -> None:
    assert not is_dnf_filters(bad)
    with pytest.raises(InvalidPredicate, match="list of tuples"):
        from_dnf_filters(bad, SCHEMA)


def test_shapes_of_filters() -> None:
    one = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i32"), ir.Literal(1, Int(32)))
    null = ir.IsNull(ir.Column("s"))
    assert to_dnf_filters(ir.And((one, ir.Not(one))), SCHEMA).exact() == [
        ("i32", "=", 1),
        ("i32", "!=", 1),
    ]
    assert to_dnf_filters(ir.Or((one, ir.Not(ir.IsNull(ir.Column("b"))))), SCHEMA).exact() == [
        [("i32", "=", 1)],
        [("b", "not in", [None])],
    ]
    assert to_dnf_filters(ir.Like(ir.Column("s"), "ab%"), SCHEMA).exact() == [
        ("s", ">=", "ab"),
        ("s", "<", "ac"),
    ]
    found: Any = to_dnf_filters(null, SCHEMA).exact()
    ((name, operator, listed),) = found
    assert (name, operator, listed.to_pylist()) == ("s", "in", [None])


def test_nan_of_every_kind_cannot_be_asked_for() -> None:
    above = ir.Comparison(ir.ComparisonOp.GT, ir.Column("f64"), ir.Literal(1.0))
    assert to_dnf_filters(above, SCHEMA).exact() == [("f64", ">", 1.0)]
    written = to_dnf_filters(above, SCHEMA, Semantics.SQL)
    assert written.expression is None
    assert "NaN of every kind" in written.notes[0]
    below = ir.Not(above)
    assert to_dnf_filters(below, SCHEMA, Semantics.SQL).exact() == [("f64", "<=", 1.0)]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_lists_find_the_zeros_that_the_semantics_find(zero: float) -> None:
    listed = ir.InList(ir.Column("f64"), ir.ValueSet(pa.array([zero, 1.0, None]), Float(64)))
    for semantics in (Semantics.PYARROW, Semantics.SQL, Semantics.DATAFUSION):
        for predicate in (
            listed,
            ir.Not(listed),
            ir.Not(ir.InList(ir.Column("f64"), ir.ValueSet(pa.array([zero]), Float(64)))),
        ):
            found = to_dnf_filters(predicate, SCHEMA, semantics)
            if found.expression is None:
                assert "NaN of every kind" in found.notes[0]
                continue
            assert theirs(found.exact(), awkward_batch(0)) == ours(
                predicate, SCHEMA, awkward_batch(0), semantics
            )


def test_ands_of_ors_do_not_grow_without_end() -> None:
    def equals(name: str, value: int) -> ir.Predicate:
        return ir.Comparison(ir.ComparisonOp.EQ, ir.Column(name), ir.Literal(value))

    terms = tuple(ir.Or((equals("i32", n), equals("i64", n))) for n in range(30))
    nested = ir.Or((ir.And(terms), equals("i8", 1)))
    assert "more than 100,000 filters" in to_dnf_filters(nested, SCHEMA).notes[0]
    written = to_dnf_filters(ir.And(tuple(ir.Not(ir.Not(term)) for term in terms)), SCHEMA)
    assert written.exactness is Exactness.SUPERSET
    assert isinstance(written.residual, ir.And)
    assert len(written.residual.terms) == 15


def test_scans_take_filters(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3], "x": [math.nan, 1.0, None]})
    t = rs.create_table(str(tmp_path / "t"), data, key=["id"])
    assert t.scan(where=[("x", "!=", 5.0)]).count() == 2
    assert t.scan(where=[[("id", "=", 1)], [("x", "in", [None])]]).count() == 2
    with pytest.raises(UnknownColumn):
        t.scan(where=[("nowhere", "=", 1)])
    made = rs.translate("id > 1 AND x < 5", "duckdb", target="delta_dnf", schema=data.schema)
    assert made.exact() == [("id", ">", 1), ("x", "<", 5.0)]


def test_deltalake_accepts_written_filters(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    batch = rows(7, 40).select(["i64", "s", "f64"])
    deltalake.write_deltalake(str(tmp_path / "d"), pa.table(batch))
    predicate = ir.And(
        (
            ir.Not(ir.InList(ir.Column("i64"), ir.ValueSet(pa.array([1, 7]), Int(64)))),
            ir.Or((ir.Like(ir.Column("s"), "a%"), ir.IsNull(ir.Column("s")))),
        )
    )
    schema = schema_of(batch.schema)[0]
    listed = to_dnf_filters(predicate, schema).exact()
    kept = deltalake.DeltaTable(str(tmp_path / "d")).to_pyarrow_table(filters=listed)
    wanted = matching(bind(predicate, schema, Semantics.PYARROW), batch).sum()
    assert kept.num_rows == wanted > 0
