"""Substrait's messages both ways: pyarrow makes them for the reader, and judges the writer's."""

from __future__ import annotations

import datetime
import decimal
import math
import random
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.substrait as ps
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.bridges.functions import substrait
from rowsieve.bridges.languages import bridge_named
from rowsieve.bridges.substrait_exprs import (
    from_substrait,
    function_table,
    is_substrait_message,
    read,
    to_substrait,
    write,
)
from rowsieve.bridges.substrait_exprs.types import literal_of_message
from rowsieve.bridges.substrait_exprs.wire import fields, number, one, part, raw
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_field, arrow_schema, arrow_type, schema_of
from rowsieve.types.logical import Field, Float, Int, String, Time, Timestamp
from rowsieve.types.schema import Schema, named_type
from tests.bridges.conformance import awkward_batch, check_written, ours
from tests.profiles import examples
from tests.strategies import IEEE, SCHEMA, SEMANTICS

# pyarrow has no functions of a time in a zone, nor their words.
D = decimal.Decimal
BRIDGE = bridge_named("substrait")
YEAR = ir.Literal(1999)
PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])
PLAIN = pa.schema(
    [(it.name, PAIR if it.name == "pair" else it.type) for it in arrow_schema(SCHEMA)]
)
UTC = pa.timestamp("us", "UTC")
NEW_YEAR = datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC)
f = pc.field
EXPRESSIONS: list[pc.Expression] = [
    f("b"),
    ~f("b"),
    f("b") & (f("i64") > 0),
    f("b") | (f("i64") > 0) | (f("s") == "a"),
    f("i64") == 1,
    f("i64") != f("i64"),
    f("i8") < pa.scalar(7, pa.int8()),
    f("i32") >= pa.scalar(-(2**31), pa.int32()),
    f("f64") > 1.5,
    f("f64") <= math.inf,
    f("f64") == pa.scalar(math.nan),
    f("f32") != pa.scalar(0.1, pa.float32()),
    pc.is_nan(f("f64")),
    pc.is_finite(f("f32")),
    f("d") == pa.scalar(D("1.50"), pa.decimal128(6, 2)),
    f("wide") < pa.scalar(D("9" * 28), pa.decimal128(38, 10)),
    f("s") > "a",
    f("bin") == b"\xff",
    f("day") >= pa.scalar(datetime.date(1970, 1, 1)),
    f("ts") < pa.scalar(datetime.datetime(2013, 1, 1, 10, 30), pa.timestamp("us")),
    f("tz")
    != pa.scalar(datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC), pa.timestamp("us", "UTC")),
    f("time") == pa.scalar(datetime.time(10, 30), pa.time64("us")),
    f("uid") == pa.scalar(b"a" * 16, pa.binary(16)),
    f("pair", "x") == pa.scalar(2, pa.int32()),
    f("pair", "y").is_null(),
    f("i64").is_valid(),
    f("u64").is_null(),
    f("i64") == pa.scalar(None, pa.int64()),
    f("i64").isin([1, 7]),
    f("s").isin(["a", ""]),
    pc.starts_with(f("s"), "a"),
    pc.ends_with(f("s"), "b"),
    pc.match_substring(f("s"), "b"),
    pc.coalesce(f("i64"), pa.scalar(7, pa.int64())) == 7,
    pc.if_else(f("b").is_null(), f("i64"), pa.scalar(1, pa.int64())) == 1,
    pc.add_checked(f("i8"), pa.scalar(0, pa.int8())) == pa.scalar(7, pa.int8()),
    pc.subtract_checked(f("i64"), f("i64")) == 0,
]


def message_of(expression: pc.Expression) -> bytes:
    return bytes(ps.serialize_expressions([expression], ["x"], PLAIN))


def theirs(message: bytes, batch: pa.RecordBatch) -> list[int]:
    """The rows that pyarrow keeps by the message, which knows columns by their places."""
    (expression,) = ps.deserialize_expressions(message).expressions.values()
    kept = batch.append_column("row number", pa.array(range(batch.num_rows))).filter(expression)
    found: list[int] = kept["row number"].to_pylist()
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_rows_are_those_of_pyarrow(expression: pc.Expression) -> None:
    message = message_of(expression)
    read = from_substrait(message, SCHEMA)
    assert read.exactness is Exactness.EXACT, read.notes
    for batch in map(awkward_batch, range(5)):
        assert ours(read.exact(), SCHEMA, batch, Semantics.SUBSTRAIT) == theirs(message, batch)
    if "== nan" in str(expression):
        return
    written = to_substrait(read.exact(), SCHEMA).exact()
    for batch in map(awkward_batch, range(5)):
        assert theirs(written, batch) == theirs(message, batch)


@examples(150)
@given(
    parts=st.lists(st.sampled_from(range(len(EXPRESSIONS))), min_size=2, max_size=5),
    seed=st.integers(0, 99),
)
def test_junctions_of_them_too(parts: list[int], seed: int) -> None:
    whole = EXPRESSIONS[parts[0]] & ~EXPRESSIONS[parts[1]]
    for place in parts[2:]:
        whole = whole | EXPRESSIONS[place]
    message = message_of(whole)
    read = from_substrait(message, SCHEMA).exact()
    assert ours(read, SCHEMA, awkward_batch(seed), Semantics.SUBSTRAIT) == theirs(
        message, awkward_batch(seed)
    )


@pytest.mark.parametrize("semantics", [Semantics.SUBSTRAIT, *SEMANTICS], ids=lambda it: it.name)
@pytest.mark.parametrize("op", [op for op in ir.ComparisonOp if "DISTINCT" not in op.name])
def test_a_comparison_of_nan_with_null_is_null(semantics: Semantics, op: ir.ComparisonOp) -> None:
    number, null = ir.Column("f32"), ir.Literal(None, Float(32))
    sides: list[tuple[ir.Operand, ir.Operand]] = [(number, null), (null, number), (number, number)]
    for left, right in [
        *sides,
        (ir.Column("f64"), ir.Literal(1.5)),
        (ir.Literal(1.5), ir.Column("f64")),
    ]:
        check_written(BRIDGE, ir.Not(ir.Comparison(op, left, right)), awkward_batch(0), semantics)
        check_written(BRIDGE, ir.Comparison(op, left, right), awkward_batch(0), semantics)


@pytest.mark.parametrize("op", [op for op in ir.ComparisonOp if "DISTINCT" not in op.name])
def test_comparing_nan_with_null_is_null_for_columns(op: ir.ComparisonOp) -> None:
    values = [math.nan, None, 1.0, 2.0]
    pairs = [(a, b) for a in values for b in values]
    batch = pa.record_batch({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    schema = schema_of(batch.schema)[0]
    for semantics in (Semantics.SQL, Semantics.DUCKDB, Semantics.SUBSTRAIT):
        for predicate in (
            compared := ir.Comparison(op, ir.Column("a"), ir.Column("b")),
            ir.Not(compared),
        ):
            written = to_substrait(predicate, schema, semantics)
            bound = bind(predicate, schema, semantics)
            wanted = [int(row) for row in evaluate(bound, batch).true.nonzero()[0]]
            assert written.exactness is Exactness.EXACT
            assert written.expression is not None
            assert theirs(written.expression, batch) == wanted


def test_every_function_of_pyarrow_is_listed() -> None:
    found = set()
    for name in ps.get_supported_functions():
        uri, _, function = name.rpartition("#")
        file = uri.rpartition("/")[2].removesuffix(".yaml").removeprefix("urn:")
        found.add((file, function))
    of_zones = {(substrait.DATETIME, name) for name in ("local_timestamp", "assume_timezone")}
    assert found | of_zones == set(function_table.FUNCTIONS)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (pc.if_else(f("b"), f("i64"), 1) == 1, "if_then on a condition that may be NULL"),
        (pc.add(f("i64"), 1) == 1, "with overflow=ERROR only"),
        (pc.abs(f("i64")) == 1, "the function abs of functions_arithmetic: it has no counterpart"),
        (pc.divide_checked(f("i64"), 2) == 1, "the function divide"),
        (pc.add_checked(f("f64"), 1.0) == 1.0, "whole numbers of one type"),
        (pc.starts_with(f("s"), "a", ignore_case=True), "case_sensitivity=CASE_SENSITIVE"),
        (f("i64").cast(pa.int32(), safe=False) == pa.scalar(1, pa.int32()), "cast: its result"),
    ],
    ids=str,
)
def test_constructs_without_a_counterpart_are_named_and_go_to_the_residual(
    expression: pc.Expression, reason: str
) -> None:
    message = message_of(f("b") & expression)
    read = from_substrait(message, SCHEMA)
    assert read.expression == ir.BooleanOperand(ir.Column("b"))
    assert read.exactness is Exactness.SUPERSET
    assert read.notes[0].startswith("condition 2 of 2 (")
    assert reason in read.notes[0]
    assert read.residual == message
    with pytest.raises(UnsupportedOperation, match="condition 2 of 2"):
        from_substrait(message, SCHEMA, strict=True)
    for kept in (f("b") | expression, ~(f("b") & expression)):
        assert from_substrait(message_of(kept), SCHEMA).expression is None


def test_conditions_without_a_substrait_expression_go_to_the_residual() -> None:
    one = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("i64"), ir.Literal(1, Int(64)))
    cast = ir.Comparison(
        ir.ComparisonOp.EQ, ir.Cast(ir.Column("s"), Int(64)), ir.Literal(1, Int(64))
    )
    unsigned = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("u64"), ir.Literal(1))
    for left in (cast, unsigned, ir.Opaque("rlike(s, 'a')", "spark", ("s",))):
        written = to_substrait(ir.And((one, left)), SCHEMA)
        assert written.exactness is Exactness.SUPERSET
        assert written.residual == left
        for predicate in (ir.Or((one, left)), ir.Not(ir.And((one, left)))):
            assert to_substrait(predicate, SCHEMA).expression is None
    total = ir.Comparison(
        ir.ComparisonOp.GT, ir.Call("add", (ir.Column("i64"), ir.Literal(1))), ir.Literal(0)
    )
    assert to_substrait(total, SCHEMA).exactness is Exactness.EXACT
    assert "wraps" in to_substrait(total, SCHEMA, Semantics.DATAFUSION).notes[0]


def test_columns_that_substrait_has_no_types_for_do_not_matter_to_others() -> None:
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", pa.schema([("id", pa.int64())]))
    table.add_column("n", "numeric")
    table.add_column("span", "interval")
    inner = arrow_field(Field(0, "n", named_type("numeric")))
    table.add_column("pair", pa.struct([inner, pa.field("x", pa.int64())]))
    table.add_column("listed", pa.list_(inner))
    table.add_column("last", "int64")
    rows = {"n": ["1.5", None, "3"], "pair": [{"n": "1", "x": 7}, None, {"n": None, "x": 8}]}
    table.append(pa.table({"id": [1, 2, 3], "last": [30, 20, 10], **rows}))
    batch = table.scan().to_arrow()

    def kept(where: str) -> tuple[Exactness, list[int]]:
        written = rs.translate(where, "postgres", target="substrait", schema=table)
        assert written.expression is not None, written.notes
        made = ps.deserialize_expressions(written.expression).expressions["filter"]
        back = from_substrait(written.expression, schema_of(table.schema)[0])
        assert back.exactness is Exactness.EXACT or "n" in where
        return written.exactness, sorted(batch.filter(made)["id"].to_pylist())

    assert kept("last > 10") == (Exactness.EXACT, [1, 2])
    assert kept("(pair).x = 8 AND last < 30") == (Exactness.EXACT, [3])
    assert kept("n IS NULL") == (Exactness.EXACT, [2])
    assert kept("(pair).n IS NULL AND span IS NULL") == (Exactness.EXACT, [2, 3])
    assert kept("last < 30 AND n < 2") == (Exactness.SUPERSET, [2, 3])


def test_members_of_structs_in_lists_are_named_or_not() -> None:
    pairs = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    columns = pa.schema([("pairs", pairs), ("x", pa.int64()), ("y", pa.int64())])
    schema, _ = schema_of(columns)
    message = bytes(ps.serialize_expressions([f("x") > 1], ["keep"], columns))
    read = from_substrait(message, schema).exact()
    assert to_substrait(read, schema).exact()
    base = fields(one(fields(message), 4))
    assert [bytes(name) for name in base[1]] == [b"pairs", b"x", b"y"]
    names = b"".join(part(1, name) for name in (b"pairs", b"a", b"b", b"x", b"y"))
    struct = one(base, 2)
    assert isinstance(struct, bytes)
    whole: dict[int, list[Any]] = {**fields(message), 4: [names + part(2, struct)]}
    named = b"".join(part(at, raw(item)) for at, items in whole.items() for item in items)
    assert from_substrait(named, schema).exact() == read
    written = ps.deserialize_expressions(to_substrait(read, schema).exact())
    assert "FieldPath(1) > 1" in str(written.expressions["filter"])


def test_null_in_conditions_of_case_is_the_else_branch() -> None:
    case = ir.Case(
        ((ir.BooleanOperand(ir.Column("b")), ir.Literal(1, Int(64))),), ir.Literal(2, Int(64))
    )
    predicate = ir.Comparison(ir.ComparisonOp.EQ, case, ir.Literal(2, Int(64)))
    for batch in map(awkward_batch, range(5)):
        written = to_substrait(predicate, SCHEMA).exact()
        assert theirs(written, batch) == ours(predicate, SCHEMA, batch, Semantics.SUBSTRAIT)


def test_is_nan_is_written_where_engines_differ() -> None:
    above = ir.Comparison(ir.ComparisonOp.GT, ir.Column("f64"), ir.Literal(1.0))
    plain = to_substrait(ir.Not(ir.IsNull(ir.Column("f64"))), SCHEMA).exact()
    for semantics in (Semantics.SQL, IEEE):
        written = to_substrait(above, SCHEMA, semantics).exact()
        assert b"is_nan" in written
        assert theirs(written, awkward_batch(0)) == ours(above, SCHEMA, awkward_batch(0), semantics)
    assert b"is_nan" not in plain


@pytest.mark.parametrize(("field", "written"), [("year", True), ("month", False)])
def test_parts_that_pyarrow_reads_are_written(field: str, written: bool) -> None:
    predicate = ir.Comparison(
        ir.ComparisonOp.GT, ir.Call("extract", (ir.Literal(field), ir.Column("ts"))), YEAR
    )
    made = to_substrait(predicate, SCHEMA)
    assert (made.expression is not None) is written
    if written:
        for batch in map(awkward_batch, range(5)):
            assert theirs(made.exact(), batch) == ours(
                predicate, SCHEMA, batch, Semantics.SUBSTRAIT
            )


def test_columns_are_known_by_their_places_and_types() -> None:
    message = message_of(f("i64") == 1)
    other = schema_of(PLAIN.set(3, pa.field("i64", pa.int32())))[0]
    assert "'i64' is int64 there and int32 here" in from_substrait(message, other).notes[0]
    with pytest.raises(UnknownColumn):
        from_substrait(message, schema_of(PLAIN.remove(3))[0])
    moved = schema_of(pa.schema([PLAIN.field("s"), PLAIN.field("i64")]))[0]
    assert from_substrait(message, moved).exact() == ir.Comparison(
        ir.ComparisonOp.EQ, ir.Column("i64"), ir.Literal(1, Int(64))
    )


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        (number(14, 7_000_000), ir.Literal(7_000_000, Timestamp())),
        (part(34, number(1, 0), number(2, 7)), ir.Literal(7_000_000, Timestamp())),
        (part(34, number(1, 3), number(2, -7)), ir.Literal(-7_000, Timestamp())),
        (part(35, number(1, 9), number(2, 7_000)), ir.Literal(7, Timestamp(utc=True))),
        (part(35, number(1, 9), number(2, 7_001)), None),
        (part(37, number(1, 6), number(2, 7)), ir.Literal(7, Time())),
        (part(22, part(1, b"a"), number(2, 1)), ir.Literal("a", String())),
        (part(21, b"a"), ir.Literal("a", String())),
        (number(19, 1), None),
    ],
)
def test_constants_in_other_forms(message: bytes, wanted: ir.Literal | None) -> None:
    if wanted is None:
        with pytest.raises(UnsupportedOperation):
            literal_of_message(fields(message))
    else:
        assert literal_of_message(fields(message)) == wanted


@pytest.mark.parametrize(
    ("constant", "reason"),
    [
        (part(24, part(1, bytes(16)), number(2, 0)), "1 to 38 digits"),
        (part(24, part(1, bytes(16)), number(2, 39)), "1 to 38 digits"),
        (part(24, part(1, bytes(16)), number(2, 3), number(3, 4)), "1 to 38 digits"),
        (part(24, part(1, b"\x7f" * 16), number(2, 38)), "more than 38 digits"),
        (number(2, 128), "holds 128 as int8"),
        (number(5, 2**32), "as int32"),
        (number(16, 2**31), "as date"),
        (number(17, 86_400_000_000), "as time"),
        (number(17, -1), "as time"),
        (part(34, number(1, 2**40), number(2, 1)), "digits of a second"),
        (part(34, number(1, -(2**40)), number(2, 1)), "digits of a second"),
        (part(34, number(1, 0), number(2, 2**62)), "as timestamp"),
        (number(7, 1) + number(7, 2), "2 values of the field 7"),
        (part(1, b"a"), "bytes where a number is expected"),
    ],
)
def test_constants_that_no_type_holds_are_refused(constant: bytes, reason: str) -> None:
    with pytest.raises(InvalidPredicate, match=reason):
        literal_of_message(fields(constant))


def test_a_list_of_nothing_finds_nothing_nor_null() -> None:
    nothing = part(8, part(1, part(2, part(1, part(2, number(1, 3))), part(4))))
    message = message_of(f("i64") == 7)
    found = read.SubstraitSource(message, SCHEMA)
    assert found.predicate(nothing) == ir.FALSE
    with pytest.raises(InvalidPredicate, match="no branch"):
        found.operand(part(6, part(2, part(1, number(7, 7)))))


@examples(300)
@given(seed=st.integers(0, 2**32), place=st.sampled_from(range(len(EXPRESSIONS))))
def test_damage_is_named(seed: int, place: int) -> None:
    chosen = random.Random(seed)
    data = bytearray(message_of(EXPRESSIONS[place]))
    for _ in range(chosen.randint(1, 3)):
        data[chosen.randrange(len(data))] = chosen.randrange(256)
    cut = bytes(data[: chosen.randint(1, len(data))])
    for damaged in (bytes(data), cut):
        try:
            from_substrait(damaged, SCHEMA)
        except (InvalidPredicate, UnsupportedOperation, UnknownColumn):
            continue


@pytest.mark.parametrize("bad", [b"", b"x", b"\x0a", bytes(20)])
def test_bytes_that_are_not_a_message_are_rejected(bad: bytes) -> None:
    with pytest.raises(InvalidPredicate, match="Substrait"):
        from_substrait(bad, SCHEMA)


def test_several_expressions_are_several_messages() -> None:
    both = bytes(ps.serialize_expressions([f("b"), ~f("b")], ["x", "y"], PLAIN))
    with pytest.raises(InvalidPredicate, match="one message of each"):
        from_substrait(both, SCHEMA)


LISTS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "i32": (pa.int32(), [-(2**31), -1, 0, 127, 128, 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), -1, 0, 127, 128, 2**62, 2**63 - 1]),
    "s": (pa.string(), ["", "a", "é" * 20, "x" * 100]),
    "day": (pa.int32(), [-(2**31), 0, 19_000]),
    "ts": (pa.int64(), [-(2**63), 0, 1_357_000_000_123_456]),
    "tz": (pa.int64(), [-1, 0, 2**63 - 1]),
    "time": (pa.int64(), [0, 86_399_999_999, 127]),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_long_list_is_read_at_once_as_member_by_member(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, values = LISTS[name]
    type_ = SCHEMA.field(name).type
    array = pa.array(values * 30, storage).view(arrow_type(type_))
    listed = ir.InList(ir.Column(name), ir.ValueSet(array, type_))
    message = to_substrait(listed, SCHEMA).exact()
    with monkeypatch.context() as patch:
        patch.setattr(read, "_member", None)
        at_once = from_substrait(message, SCHEMA).exact()
    with monkeypatch.context() as patch:
        patch.setattr(read, "MIN_MEMBERS", 10**9)
        one_by_one = from_substrait(message, SCHEMA).exact()
    assert at_once == one_by_one == listed


@pytest.mark.parametrize(
    "odd",
    [
        part(1, number(5, 7)),  # of another width
        part(1, number(7, 7), number(50, 1)),  # nullable
        part(1, part(29, part(7, number(2, 1)))),  # NULL
        b"\x0a\x0b\x38" + b"\xff" * 9 + b"\x02",  # more than 64 bits
        b"\x0a\x03\x38\x87\x00",  # a longer form of 7
        b"\x0a\x02\x38\x87",  # cut off
        b"\x0a\x05\x38\x07",  # of another length
        part(2, number(7, 7)),  # no constant
    ],
    ids=[
        "of-another-width",
        "nullable",
        "NULL",
        "more-than-64-bits",
        "a-longer-form-of-7",
        "cut-off",
        "of-another-length",
        "no-constant",
    ],
)
def test_odd_items_are_read_alike_in_long_and_short_lists(odd: bytes) -> None:
    def outcome(count: int) -> object:
        operand = write._selected([[field.name for field in SCHEMA].index("i64")])
        plain = [part(2, part(1, number(7, n))) for n in range(count)]
        listed = part(8, part(1, operand), *plain, part(2, odd))
        try:
            read_ = from_substrait(write.SubstraitWriter(SCHEMA).message([listed]), SCHEMA)
        except InvalidPredicate as error:
            return str(error)
        if not isinstance(read_.expression, ir.InList):
            return [note.rpartition(": ")[2] for note in read_.notes]
        return read_.expression.values.array[-1]

    assert outcome(2) == outcome(200)


def test_scans_take_messages(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3], "x": [math.nan, 1.0, None]})
    t = rs.create_table(str(tmp_path / "t"), data, key=["id"])
    message = bytes(ps.serialize_expressions([f("x") != 5.0], ["x"], data.schema))
    assert t.scan(where=message).to_arrow()["id"].to_pylist() == [1, 2]
    made = rs.translate("x < 5 AND id > 1", "duckdb", target="substrait", schema=data.schema)
    assert rs.translate(made.exact(), target="rowsieve", schema=data.schema).exact()
    assert is_substrait_message(message)
    assert not is_substrait_message("id")


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_a_call_names_the_unsigned_type_that_the_message_declares(bits: int) -> None:
    """Unsigned types are numbered in the order of the columns; `coalesce` has one as its result."""
    widths = {f"u{width}": width for width in (16, 64, 8, 32)} | {"x": bits, "y": bits}
    columns = [(name, Int(width, signed=False)) for name, width in widths.items()]
    schema = Schema(0, tuple(Field(at, *column) for at, column in enumerate(columns, 1)))
    call = ir.Call("coalesce", (ir.Column("x"), ir.Column("y")))
    predicate = ir.Comparison(ir.ComparisonOp.EQ, call, ir.Column("y"))
    message = fields(to_substrait(predicate, schema).exact())
    declared = [fields(one(fields(raw(item)), 1)) for item in message[2] if raw(item)[0] == 10]
    names = {one(each, 2, 0): raw(one(each, 3)) for each in declared}
    equal = fields(one(fields(one(fields(one(message, 3)), 1)), 3))
    coalesce = fields(one(fields(one(fields(raw(equal[4][0])), 3)), 3))
    type_ = fields(one(fields(one(coalesce, 3)), 30))
    assert names[one(type_, 1, 0)] == f"u{bits}".encode()
