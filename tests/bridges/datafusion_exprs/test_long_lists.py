"""Long lists stand as one constant, and find what IN finds."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import datafusion
import pyarrow as pa
import pytest

from rowsieve.bridges.datafusion_exprs import from_datafusion, to_datafusion
from rowsieve.bridges.datafusion_exprs.long_lists import LONG
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import logical_type, schema_of
from tests.bridges.conformance import ours
from tests.bridges.datafusion_exprs.engine import theirs

DAY = datetime.date(2024, 3, 31)
MEMBERS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-128, 0, 127]),
    "int64": (pa.int64(), [*range(LONG), -(2**63), 2**63 - 1]),
    "uint64": (pa.uint64(), [*range(LONG), 2**64 - 1]),
    "float64": (pa.float64(), [0.0, math.nan, math.inf, 1.5]),
    "float32": (pa.float32(), [-0.0, -math.inf, 1.5]),
    "text": (pa.string(), ["", "a", "it's", "é", "\U0010ffff"]),
    "binary": (pa.binary(), [b"", b"\xff\x00"]),
    "bool": (pa.bool_(), [True]),
    "date": (pa.date32(), [DAY, datetime.date(1, 1, 1)]),
    "timestamp": (pa.timestamp("us"), [datetime.datetime(1969, 12, 31, 23, 59, 59, 1)]),
    "instant": (pa.timestamp("us", "UTC"), [datetime.datetime(2024, 3, 31, tzinfo=datetime.UTC)]),
    "decimal": (pa.decimal128(20, 2), [decimal.Decimal("-0.01"), decimal.Decimal("9.99")]),
}
OTHERS: dict[str, list[Any]] = {
    "float64": [-0.0, 2.5],
    "float32": [0.0, 2.5],
    "text": ["b"],
    "bool": [False],
}


@pytest.mark.parametrize("semantics", [Semantics.SQL, Semantics.DATAFUSION], ids=lambda s: s.name)
@pytest.mark.parametrize("has_null", [False, True])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("name", MEMBERS)
def test_rows_are_those_of_our_evaluator(
    name: str, semantics: Semantics, *, negated: bool, has_null: bool
) -> None:
    storage, cells = MEMBERS[name]
    members = pa.array((cells * LONG)[: max(4 * LONG, len(cells))], storage)
    batch = pa.record_batch({"x": pa.array(cells + OTHERS.get(name, []) + [None], storage)})
    if has_null:
        members = pa.concat_arrays([members, pa.nulls(1, storage)])
    schema = schema_of(batch.schema)[0]
    values = ir.ValueSet(members, logical_type(batch.schema.field(0), lambda: 0))
    listed = ir.InList(ir.Column("x"), values)
    predicate: ir.Predicate = ir.Not(listed) if negated else listed
    written = to_datafusion(predicate, schema, semantics).exact()
    assert "array_has" in written.canonical_name()[:40]
    assert theirs(written, batch) == ours(predicate, schema, batch, semantics)
    if not has_null and semantics is Semantics.DATAFUSION:
        assert from_datafusion(written, schema).exact() == predicate


def test_a_million_values_are_one_constant() -> None:
    schema = schema_of(pa.schema([("x", pa.int64())]))[0]
    listed = ir.InList(
        ir.Column("x"), ir.ValueSet(pa.array(range(1_000_000)), schema.field("x").type)
    )
    written = to_datafusion(listed, schema).exact()
    assert from_datafusion(written, schema).exact() == listed


def test_lists_with_null_are_left() -> None:
    schema = schema_of(pa.schema([("x", pa.int64())]))[0]
    listed = datafusion.lit(pa.scalar([1, None], pa.list_(pa.int64())))
    expression = datafusion.functions.array_has(listed, datafusion.col("x"))
    with pytest.raises(UnsupportedOperation, match="without NULL"):
        from_datafusion(expression, schema, strict=True)


def test_lists_of_another_type_are_left() -> None:
    schema = schema_of(pa.schema([("x", pa.float32())]))[0]
    listed = datafusion.lit(pa.scalar([0.1], pa.list_(pa.float64())))
    expression = datafusion.functions.array_has(listed, datafusion.col("x"))
    assert from_datafusion(expression, schema).expression is None
