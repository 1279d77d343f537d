"""Statistics never contradict the rows: complete, trimmed, combined, or with a fact missing."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.stats.collect import StatisticsCollector
from rowsieve.stats.model import ColumnStatistics, Subject
from rowsieve.stats.selection import StatisticsOptions
from rowsieve.stats.trim import Budget, size_bytes, trim
from rowsieve.types.logical import Field, Float, Int, Json, List, String, Struct
from rowsieve.types.schema import Schema
from tests.profiles import examples
from tests.stats.manifests import batch_of, bound, collected, contradictions, manifest

SCHEMA = Schema(
    0,
    (
        Field(1, "id", Int(), nullable=False),
        Field(2, "s", String()),
        Field(3, "x", Float()),
        Field(4, "p", Struct((Field(5, "n", Int()), Field(6, "w", String())))),
        Field(7, "l", List(Field(8, "item", Int()))),
        Field(9, "j", Json()),
    ),
)
OPTIONS = StatisticsOptions(
    text=frozenset({2}), json={9: (("k",), ("a", "k"))}, budget=Budget(1_000_000)
)

PREDICATES = [
    "id = 2",
    "s < 'b'",
    "s like 'xxxxxxxxxxxxxxxxxxxx%'",
    "s > 'xxxxxxxxxxxxxxxxxxxxz'",
    "cast(s as bigint) > 4",
    "cast(s as double) < 3",
    "upper(s) >= 'B'",
    "x > 1.5",
    "x < 0",
    "x is null or x = 'NaN'",
    "p.n = 3",
    "p.w >= 'wwwwwwwwwwwwwwwwww'",
    "p.n is null",
    "list_length(l) = 2",
    "list_element(l, 1) > 2",
    "cast(j->>'k' as bigint) = 5",
    "cast(j->>'k' as double) < 1",
    "(j->>'k') > 'kkkkkkkkkkkkkkkkkkkl'",
    "(j->'a'->>'k') is null",
    "j->'k'->>0 = 'a'",
    "s is distinct from 'a' and p.n + 1 > 2",
    "coalesce(x, 0) > 1 or list_length(l) is null",
]
TEXTS = [
    "",
    "a",
    "b",
    "3",
    "7",
    "x" * 30,
    "x" * 29 + "\U0010ffff",
    "2020-01-01T00:00:00Z" + "1" * 20,
]
JSON_VALUES = [None, True, 5, -1, 0.5, "a", "k" * 40, "7", ["a", 1], {"k": 5}]
documents = (
    st.none()
    | st.sampled_from(["{", "[]", '{"k": 1, "k": "b"}'])
    | st.builds(
        lambda value, inner: json.dumps({"k": value, "a": {"k": inner}}),
        st.sampled_from(JSON_VALUES),
        st.sampled_from(JSON_VALUES),
    )
)
rows = st.fixed_dictionaries(
    {
        "id": st.integers(-2, 3),
        "s": st.none() | st.sampled_from(TEXTS),
        "x": st.none() | st.sampled_from([0.0, -0.0, 2.0, math.nan, -math.inf]),
        "p": st.none()
        | st.fixed_dictionaries(
            {"n": st.none() | st.integers(0, 5), "w": st.none() | st.sampled_from(["", "w" * 30])}
        ),
        "l": st.none() | st.lists(st.none() | st.integers(0, 4), max_size=3),
        "j": documents,
    }
)
parts = st.lists(st.lists(rows, max_size=4), min_size=1, max_size=3)
predicates = st.builds(
    str.format, st.sampled_from(["{}", "not ({})", "({}) is null"]), st.sampled_from(PREDICATES)
)
Statistics = dict[Subject, ColumnStatistics]


def take(cells: list[dict[str, Any]]) -> tuple[pa.RecordBatch, Statistics]:
    batch = batch_of(cells, SCHEMA)
    return batch, collected(batch, SCHEMA, StatisticsCollector(SCHEMA, OPTIONS))


def check(predicate: str, batches: list[pa.RecordBatch], statistics: list[Statistics]) -> None:
    known = manifest([batch.num_rows for batch in batches], statistics, SCHEMA)
    assert contradictions(bound(predicate, SCHEMA), batches, known) == []


@given(parts, predicates)
@examples(150)
def test_as_collected(cells: list[list[dict[str, Any]]], predicate: str) -> None:
    taken = [take(part) for part in cells]
    check(predicate, [batch for batch, _ in taken], [found for _, found in taken])


@given(parts, predicates, st.integers(0, 600), st.sets(st.sampled_from([1, 2, 4, 6, 9])))
@examples(150)
def test_trimmed_to_any_budget(
    cells: list[list[dict[str, Any]]], predicate: str, budget: int, critical: set[int]
) -> None:
    taken = [take(part) for part in cells]
    cut = [trim(found, budget, critical).statistics for _, found in taken]
    check(predicate, [batch for batch, _ in taken], cut)


@given(st.lists(rows, max_size=4), predicates, st.data())
@examples(120)
def test_with_any_one_gone(
    cells: list[dict[str, Any]], predicate: str, data: st.DataObject
) -> None:
    batch, found = take(cells)
    gone = data.draw(st.sampled_from(sorted(found, key=str)))
    check(predicate, [batch], [{subject: found[subject] for subject in found if subject != gone}])


def test_size_counts_stored_facts() -> None:
    facts = ColumnStatistics(null_count=1, lower=pa.scalar("abc"), upper=pa.scalar("é"))
    assert size_bytes(facts) == 8 + 3 + 2
    assert size_bytes(ColumnStatistics(lower=pa.scalar(1), upper=pa.scalar(b"\0"))) == 9
