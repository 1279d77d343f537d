"""Visibility against a dictionary of the newest part of each key."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.executor.merging.visibility import VisibilityCache, visible_rows
from rowsieve.executor.merging.windows import Numbered, Stream
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.logical import Date, Field, Float, Int, LogicalType, String, Uuid
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from tests.profiles import examples

DOMAINS: dict[str, tuple[tuple[LogicalType, ...], pa.Schema, list[tuple[object, ...]]]] = {
    "int64": ((Int(64),), pa.schema([("a", pa.int64())]), [(i,) for i in range(-3, 9)]),
    "uint64": (
        (Int(64, signed=False),),
        pa.schema([("a", pa.uint64())]),
        [(i,) for i in (0, 1, 2, 2**63, 2**64 - 1)],
    ),
    "date": ((Date(),), pa.schema([("a", pa.date32())]), [(i,) for i in range(8)]),
    "string": ((String(),), pa.schema([("a", pa.string())]), [(s,) for s in ("", "a", "ab", "é")]),
    "float64": (
        (Float(64),),
        pa.schema([("a", pa.float64())]),
        [(x,) for x in (-np.inf, -1.0, 0.0, 2.5, np.inf, np.nan)],
    ),
    "uuid": (
        (Uuid(),),
        pa.schema([("a", pa.binary(16))]),
        [(bytes([i]) * 16,) for i in (0, 127, 128, 255)],
    ),
    "string, int32": (
        (String(), Int(32)),
        pa.schema([("a", pa.string()), ("b", pa.int32())]),
        [(s, i) for s in ("", "a", "b") for i in (-1, 0, 7)],
    ),
}


def batches(table: pa.Table, size: int) -> Iterator[Numbered]:
    for start in range(0, table.num_rows, size):
        yield start, table.slice(start, size).combine_chunks().to_batches()[0]


@pytest.mark.parametrize("domain", DOMAINS)
@examples(60)
@given(data=st.data())
def test_a_row_is_visible_if_no_newer_stream_has_its_key(domain: str, data: st.DataObject) -> None:
    types, schema, keys = DOMAINS[domain]
    fields = tuple(
        Field(i + 1, name, type_, nullable=False)
        for i, (name, type_) in enumerate(zip(schema.names, types, strict=True))
    )
    order = KeyOrder.of(Schema(0, fields), schema.names)
    chosen = st.sets(st.integers(0, len(keys) - 1), max_size=len(keys))
    runs = data.draw(st.lists(st.tuples(chosen, st.booleans()), max_size=5))
    size = data.draw(st.integers(1, 4))
    streams, expected, taken = [], [], set[int]()
    for places, deletes in runs:
        rows = [keys[place] for place in sorted(places)]  # the domains are in key order
        columns = (
            [
                pa.array(column, type_)
                for column, type_ in zip(zip(*rows, strict=True), schema.types, strict=True)
            ]
            if rows
            else [pa.array([], t) for t in schema.types]
        )
        streams.append(Stream(batches(pa.table(columns, schema=schema), size), deletes))
        expected.append([i for i, place in enumerate(sorted(places)) if place not in taken])
        taken |= places
    found = visible_rows(streams, [len(places) for places, _ in runs], order)
    assert [list(rows) for rows in found] == expected


def test_the_rest_of_the_last_stream_is_not_read() -> None:
    order = KeyOrder.of(Schema(0, (Field(1, "a", Int(64), nullable=False),)), ("a",))

    def endless() -> Iterator[Numbered]:
        for start in range(0, 10**9, 4):
            assert start < 20, "read past the last contested key"
            yield start, pa.record_batch({"a": list(range(start, start + 4))})

    newer = Stream(iter([(0, pa.record_batch({"a": [1, 9]}))]), deletes=True)
    found = visible_rows([newer, Stream(endless(), deletes=False)], [2, 100], order)
    assert list(found[1].complement()) == [1, 9]


def test_an_answer_is_computed_once_and_a_failure_is_forgotten() -> None:
    cache = VisibilityCache()
    calls: list[int] = []
    started, go = threading.Event(), threading.Event()

    def slow() -> tuple[RowSet, ...]:
        calls.append(1)
        started.set()
        go.wait()
        return (RowSet.full(3),)

    answers: list[tuple[RowSet, ...]] = []
    threads = [threading.Thread(target=lambda: answers.append(cache.get("p", slow))) for _ in "ab"]
    threads[0].start()
    started.wait()
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert answers == [(RowSet.full(3),)] * 2

    def broken() -> tuple[RowSet, ...]:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        cache.get("q", broken)
    assert cache.get("q", lambda: (RowSet.empty(1),)) == (RowSet.empty(1),)


def test_the_cache_evicts_the_least_recently_used() -> None:
    one = RowSet.from_ids(np.array([1, 3], dtype=np.int64), 5)
    cache = VisibilityCache(limit_bytes=one.size_bytes)
    cache.get("a", lambda: (one,))
    cache.get("b", lambda: (one,))
    recomputed: list[str] = []

    def again(name: str) -> tuple[RowSet, ...]:
        recomputed.append(name)
        return (one,)

    cache.get("b", lambda: again("b"))
    cache.get("a", lambda: again("a"))
    assert recomputed == ["a"]
