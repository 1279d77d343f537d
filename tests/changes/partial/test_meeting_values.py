"""The laws of the rules that combine values, and what DuckDB gives for the same values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.changes.partial import meeting_values
from rowsieve.changes.partial.exact_sums import SumOverflow, total
from rowsieve.changes.partial.json_merges import merged
from rowsieve.changes.partial.list_unions import union
from rowsieve.changes.partial.meeting_values import Candidates
from rowsieve.types.logical import (
    Decimal as DecimalType,
)
from rowsieve.types.logical import (
    Field,
    Float,
    Int,
    Json,
    List,
    LogicalType,
    String,
)
from tests.duckdb_sessions import duckdb_session
from tests.profiles import examples

NAN, INF = float("nan"), float("inf")
FLOATS = (None, NAN, INF, -INF, -0.0, 0.0, 1.5, -2.0)
LISTS: Sequence[Any] = (None, [], [None], [NAN, 1.0], [-0.0, 0.0, 1.0], [1.0, 1.0, 2.0])
# Objects in which no path changes its kind, and without the null that removes a name.
OBJECTS = (None, "{}", '{"a":1}', '{"a":2,"b":{"c":"x"}}', '{"b":{"c":"y","d":[1]}}', '{"e":[{}]}')
ANY_JSON = (
    *OBJECTS,
    "null",
    "[1]",
    '"t"',
    '{"a":null}',
    '{"b":null}',
    '{"b":{"c":null}}',
    '{"a":{}}',
)

# DuckDB keeps the nulls of an object that replaces another value, and RFC 7396 drops them.
OBJECTS_AND_NULLS = (*OBJECTS, '{"a":null}', '{"b":null}')


def combined(rule: str, values: Sequence[Any]) -> Any:
    """The result of a rule for one key with these values, the first of them its own."""
    type_, arrow = TYPES[rule]
    pool = pa.array(list(values), arrow)
    members = np.arange(len(values))
    candidates = Candidates(pool, type_, members, np.zeros_like(members), 1)
    if rule == "json_merge":
        return merged(candidates, np.array([0])).to_pylist()[0]
    if rule == "union_of_lists":
        return union(candidates, np.array([-1])).to_pylist()[0]
    return RULES[rule](candidates).to_pylist()[0]


RULES = {
    "last": meeting_values.last,
    "first": meeting_values.first,
    "last_not_null": meeting_values.last_not_null,
    "sum": total,
    "min": meeting_values.least,
    "max": meeting_values.greatest,
}
TYPES: dict[str, tuple[LogicalType, pa.DataType]] = {
    "last": (Float(), pa.float64()),
    "first": (Float(), pa.float64()),
    "last_not_null": (Float(), pa.float64()),
    "sum": (Int(64), pa.int64()),
    "min": (Float(), pa.float64()),
    "max": (Float(), pa.float64()),
    "union_of_lists": (List(Field(2, "element", Float())), pa.list_(pa.float64())),
    "json_merge": (Json(), pa.string()),
}
POOLS: dict[str, Sequence[Any]] = {
    **dict.fromkeys(TYPES, FLOATS),
    "sum": (None, 0, -1, 2**40, -(2**62) // 4, 7),
    "union_of_lists": LISTS,
    "json_merge": OBJECTS,
}


@pytest.mark.parametrize("rule", sorted(TYPES))
@examples(200)
@given(data=st.data())
def test_rules_are_associative(rule: str, data: st.DataObject) -> None:
    a, b, c = (data.draw(st.sampled_from(POOLS[rule])) for _ in range(3))
    left = combined(rule, [combined(rule, [a, b]), c])
    right = combined(rule, [a, combined(rule, [b, c])])
    assert repr(left) == repr(right)
    assert repr(combined(rule, [a, b, c])) == repr(left)


@pytest.mark.parametrize("rule", ["sum", "min", "max"])
@examples(100)
@given(data=st.data())
def test_rules_that_commute(rule: str, data: st.DataObject) -> None:
    a, b = (data.draw(st.sampled_from(POOLS[rule])) for _ in range(2))
    assert repr(combined(rule, [a, b])) == repr(combined(rule, [b, a]))


@pytest.mark.parametrize("rule", sorted(set(TYPES) - {"sum"}))
@examples(100)
@given(data=st.data())
def test_all_rules_but_sums_are_idempotent(rule: str, data: st.DataObject) -> None:
    pool = ANY_JSON if rule == "json_merge" else POOLS[rule]
    a, b = (data.draw(st.sampled_from(pool)) for _ in range(2))
    once = combined(rule, [a, b])
    assert repr(combined(rule, [once, b])) == repr(once)


@examples(200)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(FLOATS)), max_size=12),
    st.sampled_from(["min", "max", "last_not_null", "first", "last"]),
)
def test_floats_are_chosen_as_duckdb_chooses(pairs: list[tuple[int, Any]], rule: str) -> None:
    pairs.sort(key=lambda pair: pair[0])
    owners = np.array([owner for owner, _ in pairs], dtype=np.int64)
    pool = pa.array([value for _, value in pairs], pa.float64())
    ours = RULES[rule](Candidates(pool, Float(), np.arange(len(pairs)), owners, 4)).to_pylist()
    rows = pa.table({"o": owners, "v": pool, "n": np.arange(len(pairs))})
    calls = {
        "min": "min(v)",
        "max": "max(v)",
        "last_not_null": "last(v ORDER BY n) FILTER (v IS NOT NULL)",
        "first": "first(v ORDER BY n)",
        "last": "last(v ORDER BY n)",
    }
    with duckdb_session() as session:
        session.register("rows", rows)
        theirs = dict(session.execute(f"SELECT o, {calls[rule]} FROM rows GROUP BY o").fetchall())
    for owner, value in enumerate(ours):
        other = theirs.get(owner)
        assert repr(value) == repr(other) or value == other == 0.0


@examples(200)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(-(10**37), 10**37)), max_size=20)
)
def test_sums_of_decimals_are_exact(pairs: list[tuple[int, int | None]]) -> None:
    pairs.sort(key=lambda pair: pair[0])
    owners = np.array([owner for owner, _ in pairs], dtype=np.int64)
    pool = pa.array([v if v is None else Decimal(v) for _, v in pairs], pa.decimal128(38, 0))
    candidates = Candidates(pool, DecimalType(38, 0), np.arange(len(pairs)), owners, 3)
    expected = []
    for owner in range(3):
        values = [v for o, v in pairs if o == owner and v is not None]
        expected.append(sum(values) if values else None)
    if any(abs(value) >= 10**38 for value in expected if value is not None):
        with pytest.raises(SumOverflow) as caught:
            total(candidates)
        assert abs(expected[caught.value.owner] or 0) >= 10**38
    else:
        assert [v if v is None else int(v) for v in total(candidates).to_pylist()] == expected


@pytest.mark.parametrize(
    ("type_", "arrow", "least", "most"),
    [
        pytest.param(Int(8), pa.int8(), -128, 127, id="int8"),
        pytest.param(Int(64), pa.int64(), -(2**63), 2**63 - 1, id="int64"),
        pytest.param(Int(64, signed=False), pa.uint64(), 0, 2**64 - 1, id="uint64"),
    ],
)
def test_sums_reach_both_ends_of_a_type_and_no_further(
    type_: LogicalType, arrow: pa.DataType, least: int, most: int
) -> None:
    def summed(*values: int) -> Any:
        members = np.arange(len(values))
        pool = pa.array(values, arrow)
        return total(Candidates(pool, type_, members, np.zeros_like(members), 1)).to_pylist()[0]

    assert summed(most - 1, 1) == most
    assert summed(most, 0, 0) == most
    with pytest.raises(SumOverflow):
        summed(most, 1)
    if least:
        assert summed(least + 1, -1) == least
        assert summed(most, 1, -1) == most
        with pytest.raises(SumOverflow):
            summed(least, -1)


@examples(200)
@given(st.lists(st.sampled_from(OBJECTS_AND_NULLS), min_size=2, max_size=4))
def test_documents_are_merged_as_duckdb_merges_them(documents: list[str | None]) -> None:
    patches = [text for text in documents[1:] if text is not None]
    ours = combined("json_merge", documents)
    theirs = documents[0]
    with duckdb_session() as session:
        for patch in patches:
            before = "{}" if theirs is None else theirs
            (theirs,) = session.execute(
                "SELECT json_merge_patch(?::JSON, ?::JSON)::VARCHAR", [before, patch]
            ).fetchall()[0]
    if patches or documents[0] is not None:
        assert json.loads(ours) == json.loads(str(theirs))
    else:
        assert ours is None


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [  # appendix A of RFC 7396
        ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
        ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
        ('{"a":"b"}', '{"a":null}', "{}"),
        ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
        ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
        ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
        ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
        ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
        ('["a","b"]', '["c","d"]', '["c","d"]'),
        ('{"a":"b"}', '["c"]', '["c"]'),
        ('{"a":"foo"}', "null", "null"),
        ('{"a":"foo"}', '"bar"', '"bar"'),
        ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
        ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
        ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
    ],
)
def test_documents_are_merged_as_the_rfc_says(document: str, patch: str, result: str) -> None:
    assert combined("json_merge", [document, patch]) == result


def test_numbers_in_documents_keep_their_digits() -> None:
    documents = ['{"n":1.10,"big":123456789012345678901234567890}', '{"m":{"x":1e400}}']
    assert combined("json_merge", documents) == (
        '{"n":1.10,"big":123456789012345678901234567890,"m":{"x":1e400}}'
    )
    assert combined("json_merge", ['{"a":  1 }', None]) == '{"a":  1 }'


def test_items_of_text_are_united_in_their_order() -> None:
    pool = pa.array([["b", "a"], None, ["c", "a", None], ["x"]], pa.list_(pa.string()))
    candidates = Candidates(
        pool, List(Field(2, "element", String())), np.arange(4), np.array([0, 0, 0, 2]), 3
    )
    nothing = np.full(3, -1)
    assert union(candidates, nothing).to_pylist() == [["b", "a", "c", None], None, ["x"]]


def test_a_list_that_no_change_unites_stays_as_it_is() -> None:
    pool = pa.array([[2, 2], [3, 3], None, [1, 1], [1]], pa.list_(pa.int64()))
    owners = np.array([0, 1, 1, 2, 2])
    candidates = Candidates(pool, List(Field(2, "element", Int(64))), np.arange(5), owners, 3)
    assert union(candidates, np.array([0, 1, 3])).to_pylist() == [[2, 2], [3, 3], [1]]
    assert union(candidates, np.array([-1, 1, -1])).to_pylist() == [[2], [3, 3], [1]]
