"""Functions undone and constants computed: what becomes of them, and that no outcome changes."""

from __future__ import annotations

import itertools
import random
import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.binding.inverses import INVERSES
from rowsieve.predicate.evaluate import compute, evaluate
from rowsieve.predicate.functions.casting.casts import cast
from rowsieve.predicate.literal_values import from_scalar
from rowsieve.predicate.semantics import OnFailure, Semantics
from rowsieve.types.logical import (
    Date,
    Decimal,
    Field,
    Float,
    Int,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
    is_ordered,
)
from rowsieve.types.schema import Schema
from tests.oracle_texts import known_texts
from tests.predicate.functions.sample_calls import SAMPLES, Sample, cast_samples
from tests.predicate.functions.sample_ranges import draw_parts, pool, schema_of
from tests.predicate.test_evaluate import answers
from tests.profiles import IS_DEEP, examples
from tests.strategies import SCHEMA, SEMANTICS, arrow_array, batches, predicates

TABLE = Schema(
    0,
    (
        Field(1, "id", Int(64)),
        Field(2, "n", Int(32)),
        Field(3, "s", String()),
        Field(4, "ts", Timestamp()),
        Field(5, "tz", Timestamp(utc=True)),
        Field(6, "day", Date()),
        Field(7, "d", Decimal(6, 2)),
        Field(8, "u", Uuid()),
        Field(9, "t", Time()),
        Field(10, "f", Float(64)),
    ),
)

# Both conditions bind to one tree.
UNDONE = [
    (
        "date_bin(INTERVAL '1 day', ts, TIMESTAMP '2001-01-01') = TIMESTAMP '2024-01-01 00:00:00'",
        "ts >= TIMESTAMP '2024-01-01 00:00:00' AND ts < TIMESTAMP '2024-01-02 00:00:00'",
    ),
    (
        "date_bin(INTERVAL '2 days', ts, TIMESTAMP '2001-01-01') < TIMESTAMP '2001-01-02 00:00:00'",
        "ts < TIMESTAMP '2001-01-03 00:00:00'",
    ),
    ("epoch_us(ts) > 1000", "ts > TIMESTAMP '1970-01-01 00:00:00.001'"),
    ("CAST(id AS varchar) = '5'", "id = 5"),
    ("CAST(id AS varchar) = '05'", "id <> id"),
    ("CAST(id AS varchar) = 'x'", "id <> id"),
    ("CAST(id AS varchar) <> 'x'", "id = id"),
    ("CAST(id AS varchar) IN ('5', '05', '7')", "id IN (5, 7)"),
    ("CAST(d AS varchar) = '5.00'", "d = 5.00"),
    ("CAST(d AS varchar) = '5'", "d <> d"),
    (
        "CAST(u AS varchar) = '00000000-0000-0000-0000-00000000000a'",
        "u = UUID '00000000-0000-0000-0000-00000000000a'",
    ),
    ("CAST(t AS varchar) = '10:00:00'", "t = TIME '10:00:00'"),
    ("CAST(n AS bigint) = 5", "n = 5"),
    ("CAST(n AS bigint) < 5000000000", "n = n"),
    ("CAST(n AS decimal(12, 2)) > 1.5", "n > 1"),
    ("CAST(ts AS date) = DATE '2013-01-05'", "ts >= '2013-01-05' AND ts < '2013-01-06'"),
    ("CAST(ts AS date) <> DATE '2013-01-05'", "ts < '2013-01-05' OR ts >= '2013-01-06'"),
    ("CAST(ts AS date) <= DATE '2013-01-05'", "ts < '2013-01-06'"),
    ("DATE '2013-01-05' < CAST(ts AS date)", "ts >= '2013-01-06'"),
    (
        "date_trunc('day', tz) = TIMESTAMPTZ '2013-01-05T00:00:00Z'",
        "tz >= TIMESTAMPTZ '2013-01-05T00:00:00Z' AND tz < TIMESTAMPTZ '2013-01-06T00:00:00Z'",
    ),
    ("date_trunc('month', ts) = '2013-02-01'", "ts >= '2013-02-01' AND ts < '2013-03-01'"),
    ("date_trunc('month', ts) = '2013-02-02'", "ts <> ts"),
    ("date_trunc('month', ts) >= '2013-02-02'", "ts >= '2013-03-01'"),
    ("date_trunc('month', ts) > '2013-02-02'", "ts >= '2013-03-01'"),
    ("date_trunc('month', ts) < '2013-02-02'", "ts < '2013-03-01'"),
    ("date_trunc('week', ts) = '2013-01-07'", "ts >= '2013-01-07' AND ts < '2013-01-14'"),
    ("date_trunc('century', ts) = '2001-01-01'", "ts >= '2001-01-01' AND ts < '2101-01-01'"),
    ("extract(year FROM ts) = 2013", "ts >= '2013-01-01' AND ts < '2014-01-01'"),
    ("extract(year FROM day) > 2013", "day >= '2014-01-01'"),
    ("extract(epoch FROM ts) = 1.5", "ts = '1970-01-01 00:00:01.5'"),
    ("substr(s, 1, 2) = 'ab'", "starts_with(s, 'ab')"),
    ("substr(s, 1, 2) <> 'ab'", "NOT starts_with(s, 'ab')"),
    ("substr(s, 1, 2) = 'a'", "s = 'a'"),
    ("left(s, 2) = 'abc'", "s <> s"),
    ("s LIKE 'abc'", "s = 'abc'"),
    ("d + 1.5 = 3", "d = 1.50"),
    ("10 - d < 3", "d > 7"),
    ("d * -2 < 3", "d > -1.5"),
    ("-d = 3", "d = -3"),
    ("CAST(n AS bigint) + 1 = 6", "n = 5"),
    ("CAST(n AS bigint) * 2 = 10", "n = 5"),
    ("CAST(n AS bigint) * 2 = 11", "CAST(n AS bigint) <> CAST(n AS bigint)"),
    ("CAST(n AS bigint) * -2 < 11", "n > -6"),
    ("CAST(CAST(n AS bigint) + 1 AS varchar) = '6'", "n = 5"),
    ("id > 2 + 3", "id > 5"),
    ("id = length('abc')", "id = 3"),
    ("tz > now() - INTERVAL '30 days'", "tz > TIMESTAMPTZ '2013-01-02T00:00:00Z'"),
    ("id + 1 = 5", "id = 4 OR (id > 9223372036854775806 AND id + 1 = 5)"),
    (
        "id * 2 = 11",
        "id <> id OR ((id < -4611686018427387904 OR id > 4611686018427387903) AND id * 2 = 11)",
    ),
]
KEPT = [
    "id + 1 > 5",
    "(id + 1) * 2 = 10",
    "f + 1 = 5",
    "substr(s, 2, 2) = 'ab'",
    "upper(s) = 'AB'",
    "CAST(day AS varchar) = '2013-01-01'",
    "CAST(f AS bigint) = 5",
    "id / 2 = 5",
    "extract(month FROM ts) = 5",
    "CAST(s AS bigint) = 5",
    "id = 1 / 0",
]
DEEPER = 4 if IS_DEEP else 1
OPERATORS = 8 if IS_DEEP else 1  # of each constant
EVERY = 1 if IS_DEEP else 2  # each rules of comparison try one in so many operands, in turn
NOW_US = 1_359_676_800_000_000  # 2013-02-01


@pytest.mark.parametrize(("text", "wanted"), UNDONE, ids=[text for text, _ in UNDONE])
def test_these_functions_are_inverted(text: str, wanted: str) -> None:
    found = bind(parse_predicate(text), TABLE, now_us=NOW_US)
    plain = bind(parse_predicate(wanted), TABLE, now_us=NOW_US, simplified=False)
    assert found.root == plain.root


@pytest.mark.parametrize("text", KEPT)
def test_these_functions_are_not_inverted(text: str) -> None:
    predicate = parse_predicate(text)
    assert bind(predicate, TABLE).root == bind(predicate, TABLE, simplified=False).root


def test_sums_that_wrap_are_undone_without_a_failure() -> None:
    found = bind(parse_predicate("id + 1 = -9223372036854775808", "datafusion"), TABLE, _WRAP)
    wanted = bind(parse_predicate("id = 9223372036854775807"), TABLE, _WRAP)
    assert found.root == wanted.root


_WRAP = Semantics.DATAFUSION
assert _WRAP.integer_overflow is OnFailure.WRAP


def same_outcomes(
    predicate: ir.Predicate, batch: pa.RecordBatch, schema: Schema, semantics: Semantics
) -> None:
    plain = bind(predicate, schema, semantics, simplified=False)
    simple = bind(predicate, schema, semantics)
    found, expected = list(answers(evaluate(simple, batch))), list(answers(evaluate(plain, batch)))
    if semantics.has_infinite_times:  # a range decides a time next to infinity, a function fails
        for row in rows_next_to_infinity(batch):
            if expected[row] == "E":
                found[row] = "E"
    assert found == expected, predicate


def rows_next_to_infinity(batch: pa.RecordBatch) -> set[int]:
    """The rows with a time within a millennium of the first or last one that 64 bits hold."""
    near = 2**63 - 1_001 * 366 * 86_400_000_000
    times = [each for each in batch.columns if pa.types.is_timestamp(each.type)]
    return {
        row
        for column in times
        for row, moment in enumerate(column.view(pa.int64()).to_pylist())
        if moment is not None and abs(moment) > near
    }


def constants_near(sample: Sample, batch: pa.RecordBatch, rng: random.Random) -> list[ir.Literal]:
    """Constants that the operand gives on some rows, and ones beside them."""
    bound = bind_operand(sample.operand, schema_of(sample.columns))
    values, _ = compute(bound, batch)
    found = [from_scalar(values[rng.randrange(len(values))], bound.type) for _ in range(6)]
    near = [*found, *(ir.Literal(value, bound.type) for value in rng.sample(pool(bound.type), 2))]
    for literal in found[:3]:
        if isinstance(literal.value, int) and isinstance(bound.type, Timestamp):
            near.append(ir.Literal(min(literal.value + 1, 2**63 - 1), bound.type))
        if isinstance(literal.value, str):
            near += [
                ir.Literal(text, String()) for text in (literal.value + "a", literal.value[:1])
            ]
    return near


INVERTIBLE = [(name, sample) for name in INVERSES for sample in SAMPLES[name]]
INVERTIBLE += [
    ("cast", sample)
    for sample in cast_samples()
    if is_ordered(bind_operand(sample.operand, schema_of(sample.columns)).type)
]


@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda semantics: semantics.name)
def test_no_outcome_changes_whatever_is_undone(semantics: Semantics) -> None:
    for index, (name, sample) in enumerate(INVERTIBLE):
        if (index + SEMANTICS.index(semantics)) % EVERY:
            continue
        rng = random.Random(zlib.crc32(f"{name} {index} {semantics.name}".encode()))
        batch = draw_parts(sample.columns, rng, 12).batch
        schema = schema_of(sample.columns)
        for constant in rng.sample(constants_near(sample, batch, rng), 2 * DEEPER):
            for op in rng.sample(list(ir.ComparisonOp), OPERATORS):
                with known_texts():
                    same_outcomes(
                        ir.Comparison(op, sample.operand, constant), batch, schema, semantics
                    )


@examples(200)
@given(predicates(), batches(), st.sampled_from(SEMANTICS))
@known_texts()
def test_the_simple_form_means_the_same(
    predicate: ir.Predicate, batch: pa.RecordBatch, semantics: Semantics
) -> None:
    same_outcomes(predicate, batch, SCHEMA, semantics)


_TAILS: tuple[list[Any], ...] = ([], [None], ["x", "007"])


@pytest.mark.parametrize("type_", [Int(8), Int(64), Decimal(4, 2), Uuid(), Time()], ids=str)
def test_lists_of_texts_keep_their_outcomes(type_: LogicalType) -> None:
    values = arrow_array([*pool(type_), None], type_)
    texts = cast(values, type_, String(), Semantics.SQL).values.to_pylist()
    schema, batch = schema_of({"x": type_}), pa.record_batch({"x": values})
    operand = parse_predicate("CAST(x AS varchar) = ''")
    assert isinstance(operand, ir.Comparison)
    for count, tail in itertools.product((1, 3), _TAILS):
        members = [*(text for text in texts[:count] if text is not None), *tail]
        listed = ir.InList(operand.left, ir.ValueSet(pa.array(members, pa.string()), String()))
        same_outcomes(listed, batch, schema, Semantics.SQL)
    found = bind(listed, schema).root
    assert isinstance(found, ir.InList)
    assert isinstance(found.operand, ir.BoundColumn)
