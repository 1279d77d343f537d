"""The buffers of a merge: limited by the streams open at one key, and by the memory limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput
from rowsieve.executor import decode_row_group
from rowsieve.executor.merging.merge_memory import MIN_ROWS, Footprint, most_at_once, rows_at_once
from rowsieve.executor.merging.windows import Numbered, Stream, windows
from rowsieve.types.logical import Field, Int
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

ORDER = KeyOrder.of(Schema(0, (Field(1, "k", Int(64), nullable=False),)), ("k",))


def test_only_streams_that_are_open_at_one_key_count() -> None:
    apart = [Footprint(1, 10, (i,), (i + 1,)) for i in range(0, 100, 2)]
    assert most_at_once(apart) == 10
    chain = [Footprint(1, 10, (i,), (i + 1,)) for i in range(100)]
    assert most_at_once(chain) == 20  # both ends belong to a stream
    assert most_at_once([*apart, Footprint(1, 7), Footprint(1, 5, (0,), (99,))]) == 22


def test_too_little_memory_means_fewer_rows_at_once_but_never_none() -> None:
    streams = [Footprint(10_000, 1_000_000, (0,), (9,))] * 3 + [Footprint(4_000, 1_000_000)]
    assert rows_at_once(streams, 12_000_000) == [10_000, 10_000, 10_000, 4_000]
    assert rows_at_once(streams, 6_000_000) == [5_000, 5_000, 5_000, 2_000]
    assert rows_at_once(streams, 1) == [MIN_ROWS] * 4


def test_a_stream_is_opened_when_the_merge_reaches_it() -> None:
    opened: list[int] = []

    def batches(number: int) -> Iterator[Numbered]:
        opened.append(number)
        yield 0, pa.record_batch({"k": [10 * number, 10 * number + 11]})  # reaches into the next

    streams = [Stream(batches(i), deletes=False, first=(10 * i,)) for i in range(6)]
    seen = []
    for window in windows(streams, ORDER):
        seen += [key for run in window for key in run.rows.column("k").to_pylist()]
        assert max(opened) <= max(seen) // 10 + 2
    assert sorted(seen) == sorted(key for i in range(6) for key in (10 * i, 10 * i + 11))
    assert opened == list(range(6))


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Three versions of overlapping keys with text, deletes in between."""
    rng = np.random.default_rng(1)
    count = 3_000

    def rows(keys: np.ndarray[Any, Any], version: int) -> pa.Table:
        texts = [f"{version}-{key}-{'x' * int(key % 50)}" for key in keys.tolist()]
        return pa.table({"k": keys, "v": keys * version, "t": texts})

    made = rs.create_table(str(tmp_path), rows(np.arange(count), 1), key=["k"])
    for version in (2, 3):
        made.upsert(rows(rng.choice(count + 500, count // 2, replace=False), version))
        made.delete(keys=pa.table({"k": rng.choice(count, 100, replace=False)}))
    return made


@pytest.mark.parametrize("where", [None, "v % 3 = 0 AND t LIKE '%-1%'"])
@pytest.mark.parametrize("order_by_key", [False, True])
def test_a_read_in_several_passes_gives_the_same_rows(
    table: rs.Table, where: str | None, order_by_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    cut = decode_row_group.in_slices

    def watched(*arguments: Any) -> Iterator[tuple[int, pa.RecordBatch]]:
        for start, batch in cut(*arguments):
            sizes.append(batch.num_rows)
            yield start, batch

    monkeypatch.setattr("rowsieve.executor.part_sources.in_slices", watched)
    monkeypatch.setattr("rowsieve.executor.live_rows.in_slices", watched)
    small = table.scan(where, order_by_key=order_by_key, memory_bytes=10_000)
    found = small.to_arrow()
    assert 0 < max(sizes) < 500  # of row groups of up to 3,000
    expected = table.scan(where, order_by_key=order_by_key).to_arrow()
    assert found.num_rows
    if order_by_key:
        assert found.equals(expected)
    assert found.sort_by("k").equals(expected.sort_by("k"))
    assert small.metrics.rows_returned == found.num_rows


def test_a_bound_of_nothing_is_refused(table: rs.Table) -> None:
    with pytest.raises(InvalidInput, match="memory_bytes must be at least 1, got 0"):
        table.scan(memory_bytes=0)
