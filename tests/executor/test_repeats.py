"""The kernels of a window against a dictionary of keys."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.executor.merging.repeats import DENSE, rank, repeated_in
from rowsieve.types.ordering.keys import KeyColumns
from tests.profiles import examples

Key = tuple[Any, ...]

TEXTS = sorted(f"key-{i}" for i in range(40))
KEYS: dict[str, tuple[list[pa.DataType], Callable[[int], Key]]] = {
    "dense": ([pa.int64()], lambda i: (i - 20,)),
    "sparse": ([pa.int64()], lambda i: ((i - 20) * 2**57,)),
    "unsigned": ([pa.uint64()], lambda i: (2**64 - 40 + i,)),
    "tiny": ([pa.int8()], lambda i: (i * 6 - 128,)),
    "text": ([pa.string()], lambda i: (TEXTS[i],)),
    "long text": ([pa.string()], lambda i: (f"{i // 3:02}{'x' * 20}{i % 3}",)),
    "uuid": ([pa.binary(16)], lambda i: (bytes([i // 4, *[0] * 14, i % 4]),)),
    "text, number": ([pa.string(), pa.int32()], lambda i: ("ab"[i // 20], i % 20 - 7)),
    "wide": ([pa.int64(), pa.int64()], lambda i: (i // 8 * 2**59, i % 8 * 2**59)),
    "decimal": ([pa.decimal128(38, 0)], lambda i: (decimal.Decimal(i - 20) * 10**30,)),
    "decimal, text": (
        [pa.decimal128(38, 0), pa.string()],
        lambda i: (decimal.Decimal(i // 4) * 10**30, "wxyz"[i % 4]),
    ),
}
"""How the i-th of 40 keys looks; ascending."""


def columns(places: list[int], name: str) -> KeyColumns:
    types, key = KEYS[name]
    keys = [key(place) for place in places]
    return KeyColumns(tuple(pa.array([k[i] for k in keys], type_) for i, type_ in enumerate(types)))


RUNS = st.lists(
    st.sets(st.integers(0, 39), min_size=1, max_size=20).map(sorted), min_size=1, max_size=4
)


@pytest.mark.parametrize("name", KEYS)
@examples(60)
@given(runs=RUNS)
def test_a_row_repeats_a_key_that_an_earlier_run_holds(name: str, runs: list[list[int]]) -> None:
    found = repeated_in([columns(places, name) for places in runs])
    earlier: set[int] = set()
    for places, rows in zip(runs, found, strict=True):
        assert rows.tolist() == [i for i, place in enumerate(places) if place in earlier]
        earlier.update(places)


@pytest.mark.parametrize("name", KEYS)
@examples(60)
@given(runs=RUNS)
def test_rows_are_ranked_by_key_then_age(name: str, runs: list[list[int]]) -> None:
    ranking = rank([columns(places, name) for places in runs])
    rows = [(place, age) for age, places in enumerate(runs) for place in places]
    ranked = [rows[i] for i in ranking.order.tolist()]
    assert ranked == sorted(rows)
    before = [None, *(place for place, _ in ranked[:-1])]
    assert ranking.repeats.tolist() == [
        place == last for (place, _), last in zip(ranked, before, strict=True)
    ]


def test_keys_at_both_ends_of_the_integers_do_not_wrap() -> None:
    low, high = -(2**63), 2**63 - 1
    ends = KeyColumns((pa.array([low, high]),))
    assert [rows.tolist() for rows in repeated_in([ends, ends])] == [[], [0, 1]]


@pytest.mark.parametrize("spread", [DENSE // 2, DENSE * 2])
def test_both_ways_to_look_numbers_up_agree(spread: int) -> None:
    rng = np.random.default_rng(spread)
    runs = [np.unique(rng.integers(0, 3_000 * spread, 1_000)) for _ in range(3)]
    runs += [np.unique(np.concatenate((runs[0][::3], runs[2][::2])))]
    found = repeated_in([KeyColumns((pa.array(run),)) for run in runs])
    for number, rows in enumerate(found):
        earlier = np.concatenate([np.empty(0, np.int64), *runs[:number]])
        assert rows.tolist() == np.flatnonzero(np.isin(runs[number], earlier)).tolist()
