"""Statistics of members of structs, lists and maps: right counts, sound bounds, pruning."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.subjects import LENGTH
from rowsieve.types.logical import Field, Float, Int, List, Map, String, Struct
from rowsieve.types.schema import Schema
from tests.profiles import examples
from tests.stats.manifests import batch_of, collected, contradictions, manifest, verdicts

INNER = Struct((Field(4, "z", Float()), Field(5, "w", String())))
SCHEMA = Schema(
    0,
    (
        Field(1, "id", Int(), nullable=False),
        Field(2, "s", Struct((Field(3, "inner", INNER), Field(6, "n", Int(16))))),
        Field(7, "tags", List(Field(8, "item", String()))),
        Field(9, "m", Map(Field(10, "key", String(), nullable=False), Field(11, "value", Float()))),
        Field(12, "deep", List(Field(13, "item", Struct((Field(14, "a", Int()),))))),
    ),
)

inner = st.fixed_dictionaries(
    {
        "z": st.none() | st.sampled_from([-1.0, 0.0, -0.0, 2.5, math.nan, math.inf]),
        "w": st.none() | st.sampled_from(["", "a", "b" * 120, "\U0010ffff" * 30]),
    }
)
rows = st.fixed_dictionaries(
    {
        "id": st.integers(-2, 2),
        "s": st.none()
        | st.fixed_dictionaries({"inner": st.none() | inner, "n": st.none() | st.integers(-3, 3)}),
        "tags": st.none() | st.lists(st.none() | st.sampled_from("abc"), max_size=3),
        "m": st.none()
        | st.dictionaries(
            st.sampled_from("kl"), st.none() | st.sampled_from([1.0, math.nan]), max_size=2
        ).map(lambda pairs: list(pairs.items())),
        "deep": st.none()
        | st.lists(st.none() | st.fixed_dictionaries({"a": st.none() | st.just(7)}), max_size=2),
    }
)
parts = st.lists(st.lists(rows, max_size=5), min_size=1, max_size=3)


def statistics_of(cells: list[dict[str, Any]]) -> dict[Subject, ColumnStatistics]:
    return collected(batch_of(cells, SCHEMA), SCHEMA)


def bounds(found: ColumnStatistics) -> tuple[Any, Any]:
    return tuple(None if end is None else end.as_py() for end in (found.lower, found.upper))  # type: ignore[return-value]


def test_members_of_structs_are_null_where_the_struct_is() -> None:
    cells: list[dict[str, Any]] = [
        {"id": 1, "s": None},
        {"id": 2, "s": {"inner": None, "n": 4}},
        {"id": 3, "s": {"inner": {"z": math.nan, "w": "x"}, "n": None}},
        {"id": 4, "s": {"inner": {"z": 1.5, "w": "y"}, "n": -4}},
    ]
    found = statistics_of(cells)
    assert [found[i].null_count for i in (2, 3, 4, 5, 6)] == [1, 2, 2, 2, 2]
    assert (found[4].nan_count, bounds(found[4])) == (1, (1.5, 1.5))
    assert (bounds(found[5]), bounds(found[6])) == (("x", "y"), (-4, 4))
    assert found[6].value_count is None


def test_lists_and_maps_have_lengths_and_elements() -> None:
    cells: list[dict[str, Any]] = [
        {"id": 1, "tags": ["b", None], "m": [("k", 2.0)], "deep": [{"a": 7}, None]},
        {"id": 2, "tags": None, "m": None, "deep": []},
        {"id": 3, "tags": ["a"], "m": [("x", math.nan), ("l", None)], "deep": None},
    ]
    found = statistics_of(cells)
    lengths = [found[Derived(i, LENGTH)] for i in (7, 9, 12)]
    assert [bounds(each) for each in lengths] == [(1, 2), (1, 2), (0, 2)]
    assert [each.null_count for each in lengths] == [1, 1, 1]
    assert (found[8].value_count, found[8].null_count, bounds(found[8])) == (3, 1, ("a", "b"))
    assert (found[10].value_count, bounds(found[10])) == (3, ("k", "x"))
    assert (found[11].value_count, found[11].null_count, found[11].nan_count) == (3, 1, 1)
    assert (found[14].value_count, found[14].null_count, bounds(found[14])) == (2, 1, (7, 7))


def test_a_member_of_a_struct_prunes() -> None:
    low = [{"id": i, "s": {"inner": {"z": i / 2, "w": "low"}, "n": i}} for i in range(4)]
    high = [{"id": i, "s": {"inner": {"z": 9.0, "w": "up"}, "n": 100 + i}} for i in range(4)]
    known = manifest([4, 4], [statistics_of(low), statistics_of(high)], SCHEMA)
    assert verdicts("s.n = 101", known, SCHEMA) == ["NONE", "SOME"]
    assert verdicts("s.n < 50", known, SCHEMA) == ["ALL", "NONE"]
    assert verdicts("s.inner.z > 2", known, SCHEMA) == ["NONE", "ALL"]
    assert verdicts("s.inner.w = 'up'", known, SCHEMA) == ["NONE", "ALL"]
    assert verdicts("s.n + 1 = 102", known, SCHEMA) == ["NONE", "SOME"]
    assert verdicts("s.n IS NULL", known, SCHEMA) == ["NONE", "NONE"]


def test_a_member_of_a_struct_prunes_a_scan(tmp_path: Path) -> None:
    type_ = pa.struct([("n", pa.int64())])
    data = [pa.table({"id": [i], "s": pa.array([{"n": i}], type_)}) for i in (1, 2)]
    table = rs.create_table(str(tmp_path), data[0], key=["id"])
    table.upsert(data[1])
    scan = table.scan(where="s.n = 2")
    assert scan.to_arrow().column("id").to_pylist() == [2]
    assert scan.metrics.parts_pruned == 1


def test_t1_members_of_other_columns_prune_nothing_before_visibility() -> None:
    known = manifest([1], [statistics_of([{"id": 1, "s": {"inner": None, "n": 1}}])], SCHEMA)
    assert verdicts("s.n = 5", known, SCHEMA) == ["NONE"]
    assert verdicts("s.n = 5", known.only([1]), SCHEMA) == ["SOME"]


def test_t21_a_member_without_statistics_may_be_anything() -> None:
    known = manifest([1, 1], [{}, {6: ColumnStatistics(null_count=1)}], SCHEMA)
    assert verdicts("s.n = 5", known, SCHEMA) == ["SOME", "NONE"]


def test_elements_without_a_count_of_their_own_are_not_believed() -> None:
    bad = ColumnStatistics(null_count=0, lower=pa.scalar("a"), upper=pa.scalar("a"))
    found = manifest([3], [{8: bad}], SCHEMA).subject(8)
    assert found is not None
    assert (found.lower.to_pylist(), found.empty.tolist()) == ([None], [False])


Z = ir.FieldAccess(ir.FieldAccess(ir.Column("s"), "inner"), "z")
W = ir.FieldAccess(ir.FieldAccess(ir.Column("s"), "inner"), "w")
N = ir.FieldAccess(ir.Column("s"), "n")
OPS = st.sampled_from(ir.ComparisonOp)
leaves = (
    st.builds(ir.Comparison, OPS, st.just(Z), st.sampled_from([0.0, 2.0, math.nan]).map(ir.Literal))
    | st.builds(ir.Comparison, OPS, st.just(W), st.sampled_from(["", "b", "c"]).map(ir.Literal))
    | st.builds(ir.Comparison, OPS, st.just(N), st.integers(-4, 4).map(ir.Literal))
    | st.builds(ir.IsNull, st.sampled_from([Z, W, N]))
)
trees: st.SearchStrategy[ir.Predicate] = st.recursive(
    leaves,
    lambda terms: (
        st.builds(ir.Not, terms)
        | st.lists(terms, min_size=2, max_size=3).map(lambda some: ir.And(tuple(some)))
        | st.lists(terms, min_size=2, max_size=3).map(lambda some: ir.Or(tuple(some)))
    ),
    max_leaves=4,
)


@given(parts, trees)
@examples(250)
def test_verdicts_by_members_never_contradict_the_rows(
    cells: list[list[dict[str, Any]]], predicate: ir.Predicate
) -> None:
    batches = [batch_of(part, SCHEMA) for part in cells]
    known = manifest(
        [len(part) for part in cells], [collected(batch, SCHEMA) for batch in batches], SCHEMA
    )
    assert contradictions(bind(predicate, SCHEMA), batches, known) == []


@pytest.mark.parametrize("subject", [8, 10, 11, 14])
@given(parts)
@examples(60)
def test_elements_lie_within_their_bounds(subject: int, cells: list[list[dict[str, Any]]]) -> None:
    for part in cells:
        found = statistics_of(part)[subject]
        values = _elements(part, subject)
        present = [value for value in values if value is not None]
        plain = [v for v in present if not (isinstance(v, float) and math.isnan(v))]
        assert (found.value_count, found.null_count) == (len(values), len(values) - len(present))
        lower, upper = bounds(found)
        assert (lower is None) == (not plain)
        assert all(lower <= value <= upper for value in plain)


def _elements(part: list[dict[str, Any]], subject: int) -> list[Any]:
    lists = [row[{8: "tags", 10: "m", 11: "m", 14: "deep"}[subject]] or [] for row in part]
    flat = [item for cell in lists for item in cell]
    if subject in (10, 11):
        return [pair[subject - 10] for pair in flat]
    return [None if item is None else item["a"] for item in flat] if subject == 14 else flat
