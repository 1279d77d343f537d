"""Statistics of a JSON path, as text and cast, contain the values of the rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.predicate import ir
from rowsieve.predicate.arrays import null_mask
from rowsieve.predicate.functions.casting.casts import cast
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.stats.collect import StatisticsCollector
from rowsieve.stats.expressions import value_of
from rowsieve.stats.selection import StatisticsOptions
from rowsieve.types.logical import Bool, Decimal, Field, Float, Int, Json, LogicalType, String
from rowsieve.types.schema import Schema
from tests.oracle_texts import known_texts
from tests.profiles import examples
from tests.stats.manifests import batch_of, bound, collected, contradictions, manifest
from tests.strategies import SEMANTICS

SCHEMA = Schema(0, (Field(1, "j", Json()),))
OPTIONS = StatisticsOptions(json={1: (("a", "k"),)})
COLUMN = ir.BoundColumn(1, "j", Json())
TEXT = ir.Call("json_get_text", (COLUMN, ir.Literal("a", String()), ir.Literal("k", String())))

NUMBERS = ["0", "-0", "7", "-12", "128", "99999999999", str(2**63), str(10**30), "1.0", "0.1"]
NUMBERS += ["-2.675", "1e2", "-1.5E-3", "123456789.123456789", "9007199254740993.0", "1e300"]
OTHERS = ["true", "false", '"x"', '"12"', '"\\u00e9"', "[1]", '{"x": 1}']
TARGETS: list[LogicalType] = [
    Int(),
    Int(8),
    Float(),
    Float(32),
    Decimal(38, 10),
    Decimal(5, 2),
    Decimal(38, 0),
    Bool(),
]


def document(raw: str | None) -> str:
    """A document with this JSON text at the path, or without one."""
    return '{"a": {}}' if raw is None else f'{{"a": {{"k": {raw}}}}}'


def as_text(raw: str | None) -> str | None:
    """What `->>` gives."""
    if raw in (None, "null"):
        return None
    assert raw is not None
    return json.loads(raw) if raw.startswith('"') else raw


def claim(operand: ir.Operand, parts: Sequence[Sequence[str | None]]) -> AbstractValue:
    statistics = []
    for part in parts:
        batch = batch_of([{"j": document(raw)} for raw in part], SCHEMA)
        statistics.append(collected(batch, SCHEMA, StatisticsCollector(SCHEMA, OPTIONS)))
    found = value_of(operand, manifest([len(part) for part in parts], statistics, SCHEMA))
    assert found is not None
    return found


def assert_contains(value: AbstractValue, part: int, found: pa.Array, failed: np.ndarray) -> None:
    null = null_mask(found)
    assert value.fails[part] or not failed.any()
    assert value.null[part] or not null.any()  # where failures are NULL, they count here
    present = found.filter(pa.array(~null)).to_pylist()
    if not present:
        return
    assert value.present[part]
    lower, upper = value.lower[part].as_py(), value.upper[part].as_py()
    assert lower is None or all(lower <= each for each in present)
    assert upper is None or all(each <= upper for each in present)


parts = st.lists(
    st.lists(st.sampled_from([*NUMBERS, "null", None]), min_size=1, max_size=4)
    | st.lists(st.sampled_from(["true", "false", None]), min_size=1, max_size=3)
    | st.lists(st.sampled_from(['"a"', '"b"', '"12"', "null"]), min_size=1, max_size=3)
    | st.lists(st.sampled_from([*NUMBERS[:4], *OTHERS, "null", None]), min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@given(parts)
@examples(50)
def test_a_cast_of_a_path_contains_that_of_the_rows(
    target: LogicalType, raws: list[list[str | None]]
) -> None:
    value = claim(ir.Cast(TEXT, target), raws)
    for i, part in enumerate(raws):
        texts = pa.array([as_text(raw) for raw in part], pa.string())
        computed = cast(texts, String(), target, Semantics.SQL)
        failed = np.zeros(len(part), bool) if computed.failed is None else computed.failed
        assert_contains(value, i, computed.values, failed)


@given(parts)
@examples(150)
def test_a_path_as_text_contains_the_rows(raws: list[list[str | None]]) -> None:
    value = claim(TEXT, raws)
    for i, part in enumerate(raws):
        texts = pa.array([as_text(raw) for raw in part], pa.string())
        assert_contains(value, i, texts, np.zeros(len(part), bool))


def test_numbers_have_bounds_and_do_not_fail() -> None:
    value = claim(
        ir.Cast(TEXT, Decimal(38, 10)), [["3", "12.5"], ["100", "null"], ["1e2"], ['"x"']]
    )
    assert value.fails.tolist() == [False, False, True, True]
    assert value.null.tolist() == [False, True, True, True]
    lower, upper = value.lower.to_pylist(), value.upper.to_pylist()
    assert (lower[0], lower[1], lower[2:]) == (3, 100, [None, None])
    assert (upper[1], upper[2:]) == (100, [None, None])
    assert abs(float(upper[0]) - 12.5) < 1e-5


def test_text_has_bounds_only_without_other_kinds() -> None:
    value = claim(TEXT, [['"a"', '"c"'], ['"a"', "1"], ["null", None]])
    assert value.lower.to_pylist() == ["a", None, None]
    assert value.upper.to_pylist() == ["c", None, None]
    assert value.present.tolist() == [True, True, False]
    assert value.null.tolist() == [False, False, True]


def test_json_null_is_a_value_and_missing_is_null() -> None:
    operand = ir.Call("json_get", TEXT.arguments)
    value = claim(operand, [["null"], [None], ["1"]])
    assert value.present.tolist() == [True, False, True]
    assert value.null.tolist() == [False, True, False]


def test_a_path_may_be_followed_in_steps() -> None:
    inner = ir.Call("json_get", (COLUMN, ir.Literal("a", String())))
    stepped = ir.Call("json_get_text", (inner, ir.Literal("k", String())))
    assert claim(stepped, [['"a"']]).upper.to_pylist() == ["a"]


@pytest.mark.parametrize(
    "operand",
    [
        ir.Call("json_get_text", (COLUMN, ir.Literal("z", String()))),
        ir.Call("json_path_text", (COLUMN, ir.Literal("a", String()), ir.Literal("0", String()))),
        ir.Call("json_get_text", (COLUMN, ir.Call("lower", (ir.Literal("a", String()),)))),
        ir.Call("json_get_text", (TEXT, ir.Literal("a", String()))),
        ir.Cast(ir.Call("json_get", TEXT.arguments), Int()),
    ],
)
def test_an_undeclared_path_is_unknown(operand: ir.Operand) -> None:
    statistics = collected(
        batch_of([{"j": document("1")}], SCHEMA), SCHEMA, StatisticsCollector(SCHEMA, OPTIONS)
    )
    assert value_of(operand, manifest([1], [statistics], SCHEMA)) is None


def test_t21_parts_without_the_statistics_claim_nothing() -> None:
    batch = batch_of([{"j": document("1")}], SCHEMA)
    with_path = collected(batch, SCHEMA, StatisticsCollector(SCHEMA, OPTIONS))
    statistics = manifest([1, 1], [with_path, collected(batch, SCHEMA)], SCHEMA)
    value = value_of(ir.Cast(TEXT, Int()), statistics)
    assert value is not None
    assert value.fails.tolist() == [False, True]
    assert value.lower.to_pylist() == [1, None]


SQL = [
    "cast(j->'a'->>'k' as bigint) {op} {n}",
    "cast(j->'a'->>'k' as decimal(18,2)) {op} {n}",
    "cast(j->'a'->>'k' as double) {op} {n}",
    "cast(j->'a'->>'k' as boolean)",
    "(j->'a'->>'k') {op} 'b'",
    "(j->'a'->>'k') is null",
    "(j->'a'->'k') is null",
    "(j->'a'->'k'->>0) = 'a'",
    "cast(j->'a'->'k'->>1 as int) {op} {n}",
    "(j#>>'{{a,k}}') {op} 'b'",
    "coalesce(cast(j->'a'->>'k' as double), 0) {op} {n}",
]
duplicated = st.builds(
    lambda one, other: f'{{"a": {{"k": {one}, "k": {other}}}}}',
    st.sampled_from(["1", "2.5", '"a"', "null"]),
    st.sampled_from(["1", "-7", '"c"', "[2]"]),
)
documents = (
    st.sampled_from([*NUMBERS, *OTHERS, "null", '["a", 5]', "[3, 0.5]"]).map(document)
    | duplicated
    | st.sampled_from([None, "{", '{"a": 1}', "[]", '{"a": {"k": 1}} 1'])
)


@given(
    st.lists(
        st.lists(st.sampled_from(NUMBERS[:12]).map(document), min_size=1, max_size=3)
        | st.lists(documents, max_size=4),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(SQL),
    st.sampled_from(["=", "<", ">=", "<>", "is distinct from"]),
    st.sampled_from(["0", "7", "-12", "1.0", "-2.68", "100"]),
    st.sampled_from(["{}", "not ({})", "({}) is null"]),
    st.sampled_from(SEMANTICS),
)
@examples(200)
@known_texts()
def test_verdicts_by_path_never_contradict_the_rows(
    parts: list[list[str | None]], template: str, op: str, n: str, form: str, semantics: Semantics
) -> None:
    predicate = bound(form.format(template.format(op=op, n=n)), SCHEMA, semantics)
    batches = [batch_of([{"j": cell} for cell in part], SCHEMA) for part in parts]
    options = StatisticsOptions(json={1: (("a", "k"), ())})
    statistics = [
        collected(batch, SCHEMA, StatisticsCollector(SCHEMA, options)) for batch in batches
    ]
    known = manifest([len(part) for part in parts], statistics, SCHEMA)
    assert contradictions(predicate, batches, known) == []


def test_a_path_prunes_a_scan(tmp_path: Path) -> None:
    kind = pa.field("j", pa.string(), metadata={b"ARROW:extension:name": b"arrow.json"})
    schema = pa.schema([("id", pa.int64()), kind])
    properties = {"json_statistics": "j.user.age, j.tags"}
    table = rs.create_table(str(tmp_path), schema, key=["id"], properties=properties)
    for i in (1, 2, 3):
        text = json.dumps({"user": {"age": i * 10}, "tags": [f"t{i}", "x"]})
        table.upsert(pa.table([[i], [text]], schema=schema))
    scan = table.scan(where="cast(j->'user'->>'age' as bigint) = 20")
    assert scan.to_arrow().column("id").to_pylist() == [2]
    assert scan.metrics.parts_pruned == 2
    scan = table.scan(where="j->'tags'->>0 = 't3'")
    assert scan.to_arrow().column("id").to_pylist() == [3]
    assert scan.metrics.parts_pruned == 2
