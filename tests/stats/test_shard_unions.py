"""A union's statistics hold for every part of its shard, and are rarely weaker than possible."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.ir import BoundColumn
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.shard_unions import ShardUnions, union_name, unions_of
from rowsieve.stats.subjects import describe
from rowsieve.types.logical import Bool, Date, Decimal, Field, Float, Int, String, Uuid
from rowsieve.types.schema import Schema
from tests.profiles import examples
from tests.stats.manifests import bound, manifest
from tests.stats.test_proof import SCHEMA, Statistics, parts, predicates, take


def shards(known: PartStatistics, starts: list[int], schema: Schema, found: Any) -> ShardUnions:
    """The unions of runs of parts, as if they had been written and read."""
    subjects: dict[Subject, None] = dict.fromkeys(each.subject for each in describe(schema))
    subjects |= dict.fromkeys(subject for part in found for subject in part)
    columns = {"parts": pa.array(starts), **unions_of(known, subjects, np.array(starts))}
    return ShardUnions(pa.table(columns), schema)


def without_field(found: Statistics, field_id: int) -> Statistics:
    return {
        subject: facts
        for subject, facts in found.items()
        if field_id != (subject.field_id if isinstance(subject, Derived) else subject)
    }


@given(parts, predicates, st.data())
@examples(200)
def test_no_row_survives_where_a_union_refutes_the_predicate(
    cells: list[list[dict[str, Any]]], predicate: str, data: st.DataObject
) -> None:
    taken = [take(part) for part in cells]
    gone, of = data.draw(st.sampled_from([0, 1, 2, 5, 6, 9])), data.draw(st.integers(0, 2))
    found: list[Statistics] = [
        without_field(known, gone) if i == of else known for i, (_, known) in enumerate(taken)
    ]
    starts = [0, *sorted(data.draw(st.sets(st.integers(1, len(cells) - 1))) if cells[1:] else ())]
    known = manifest([batch.num_rows for batch, _ in taken], found, SCHEMA)
    asked = bound(predicate, SCHEMA)
    alone = interpret(asked, known)
    together = interpret(asked, shards(known, starts, SCHEMA, found))
    for shard, (start, stop) in enumerate(itertools.pairwise([*starts, len(cells)])):
        if together[shard] == Verdict.NONE:
            assert (alone[start:stop] == Verdict.NONE).all()  # so that shards change no reason
            for batch, _ in taken[start:stop]:
                outcome = evaluate(asked, batch)
                assert not (outcome.true | outcome.failed).any()


TYPES = [Int(), Float(), String(), Decimal(10, 2), Date(), Bool(), Uuid()]
BOUNDS: dict[Any, tuple[Any, Any, Any]] = {
    Int(): (1, 2, 3),
    Float(): (1.0, 2.0, 3.0),
    String(): ("a", "b", "c"),
    Decimal(10, 2): (1, 2, 3),
    Date(): (1, 2, 3),
    Bool(): (False, False, True),
    Uuid(): (b"a" * 16, b"b" * 16, b"c" * 16),
}


def statistics_of(type_: Any, *sides: tuple[int, int]) -> PartStatistics:
    """A part of two rows for each pair of numbers of bounds."""
    schema = Schema(0, (Field(1, "x", type_),))
    storage = next(describe(schema)).bound_type
    assert storage is not None

    def scalar(i: int) -> pa.Scalar:
        value = pa.array([BOUNDS[type_][i]])
        if pa.types.is_decimal(storage):
            return value.cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)).cast(storage)[0]
        return (value.cast(pa.int32()) if isinstance(type_, Date) else value).cast(storage)[0]

    nan = 0 if isinstance(type_, Float) else None
    known: list[Statistics] = [
        {1: ColumnStatistics(0, nan, scalar(a), scalar(b))} for a, b in sides
    ]
    return manifest([2] * len(known), known, schema)


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_every_type_with_an_order_has_a_union(type_: Any) -> None:
    known = statistics_of(type_, (1, 1), (0, 1), (1, 2))
    schema = Schema(0, (Field(1, "x", type_),))
    found = shards(known, [0, 2], schema, []).column(BoundColumn(1, "x", type_))
    alone = known.column(BoundColumn(1, "x", type_))
    assert found is not None
    assert alone is not None
    assert found.lower.equals(alone.lower.take(pa.array([1, 2])))
    assert found.upper.equals(alone.upper.take(pa.array([0, 2])))
    assert found.may_be_null.tolist() == [False, False]


def test_t13_zeros_are_both_in_a_union_of_either() -> None:
    schema = Schema(0, (Field(1, "x", Float()),))
    zeros: list[Statistics] = [
        {1: ColumnStatistics(0, 0, pa.scalar(zero), pa.scalar(zero))} for zero in (0.0, -0.0)
    ]
    for pair in (zeros, zeros[::-1], [zeros[0]] * 2, [zeros[1]] * 2):
        found = shards(manifest([1, 1], pair, schema), [0], schema, [])
        column = found.column(BoundColumn(1, "x", Float()))
        assert column is not None
        assert str(column.lower[0]) == "-0.0"
        assert str(column.upper[0]) == "0.0"


@pytest.mark.parametrize(
    ("facts", "rows"),
    [
        pytest.param(ColumnStatistics(0, None, pa.scalar(9), pa.scalar(1)), 5, id="inverted"),
        pytest.param(ColumnStatistics(7, None, pa.scalar(1), pa.scalar(1)), 5, id="more NULLs"),
        pytest.param(ColumnStatistics(0), 5, id="no bounds"),
        pytest.param(ColumnStatistics(), 5, id="nothing"),
    ],
)
def test_a_contradictory_part_makes_the_union_unknown(facts: ColumnStatistics, rows: int) -> None:
    schema = Schema(0, (Field(1, "x", Int()),))
    sound: Statistics = {1: ColumnStatistics(0, None, pa.scalar(1), pa.scalar(2))}
    doubted: Statistics = {1: facts}
    found = shards(manifest([rows, 5], [doubted, sound], schema), [0, 1], schema, [])
    together = shards(manifest([rows, 5], [doubted, sound], schema), [0], schema, [])
    asked = bound("x = 100", schema)
    assert interpret(asked, found).tolist() == [Verdict.SOME, Verdict.NONE]
    assert interpret(asked, together).tolist() == [Verdict.SOME]


def test_nan_in_any_part_may_be_in_the_union() -> None:
    schema = Schema(0, (Field(1, "x", Float()),))
    known: list[Statistics] = [
        {1: ColumnStatistics(0, count, pa.scalar(1.0), pa.scalar(2.0))} for count in (0, 1, 0)
    ]
    found = shards(manifest([5, 5, 5], known, schema), [0, 2], schema, [])
    for text in ("x = 'NaN'", "x > 100"):
        assert interpret(bound(text, schema), found).tolist() == [Verdict.SOME, Verdict.NONE]


def test_a_malformed_document_makes_the_union_unknown() -> None:
    found = [take([{"id": 1, "j": text}])[1] for text in ('{"k": 5}', "{")]
    unions = shards(manifest([1, 1], found, SCHEMA), [0], SCHEMA, found)
    column = unions.subject(Derived(9, "json/k:int"))
    assert column is not None
    assert column.lower.null_count == column.upper.null_count == 1
    assert interpret(bound("cast(j->>'k' as bigint) = 7", SCHEMA), unions).tolist() == [
        Verdict.SOME
    ]


def test_a_part_without_values_of_a_kind_hides_none_of_the_others() -> None:
    found = [take([{"id": 1, "j": text}])[1] for text in ('{"k": 5}', '{"k": "a"}', '{"k": 7}')]
    known = manifest([1, 1, 1], found, SCHEMA)
    unions = shards(known, [0], SCHEMA, found)
    column = unions.subject(Derived(9, "json/k:int"))
    assert column is not None
    assert (column.lower.to_pylist(), column.upper.to_pylist()) == ([5], [7])


def test_only_requested_fields_of_the_same_type_are_known() -> None:
    schema = Schema(0, (Field(1, "x", Int()), Field(2, "y", Int())))
    facts = ColumnStatistics(0, None, pa.scalar(1), pa.scalar(2))
    known = manifest([5], [{1: facts, 2: facts}], schema)
    table = pa.table(unions_of(known, [1, 2], np.array([0])))
    assert ShardUnions(table, schema, {1}).subject(2) is None
    assert ShardUnions(table, schema).subject(2) is not None
    other = Schema(1, (Field(1, "x", String()), Field(2, "y", Int())))
    mistyped = ShardUnions(table, other).subject(1)
    assert mistyped is None or mistyped.lower.null_count == 1
    assert ShardUnions(table.drop_columns(union_name(1, "nan")), schema).subject(1) is None
