"""Windows of streams with known first keys: streams are opened late, never too late."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.executor.merging import visibility
from rowsieve.executor.merging.merge import merge
from rowsieve.executor.merging.visibility import visible_rows
from rowsieve.executor.merging.windows import Numbered, Stream
from rowsieve.types.logical import Field, Int
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from tests.profiles import examples

ORDER = KeyOrder.of(
    Schema(0, (Field(1, "a", Int(64), nullable=False), Field(2, "b", Int(64), nullable=False))),
    ("a", "b"),
)
KEYS = [(a, b) for a in range(-2, 5) for b in range(3)]
EXACT, BELOW, PREFIX, UNKNOWN = "exact", "below", "prefix", "unknown"


class Part:
    """A stream of rows or tombstones, and whether it has been opened."""

    def __init__(self, places: list[int], *, deletes: bool, start: str, size: int) -> None:
        self.places = places
        self.deletes = deletes
        self.opened = False
        self._start = start
        self._size = size

    @property
    def stream(self) -> Stream:
        first = KEYS[self.places[0]]
        known = {EXACT: first, BELOW: (first[0], first[1] - 1), PREFIX: first[:1], UNKNOWN: ()}
        return Stream(self._batches(), self.deletes, known[self._start])

    def _batches(self) -> Iterator[Numbered]:
        self.opened = True
        for at in range(0, len(self.places), self._size):
            rows = [KEYS[place] for place in self.places[at : at + self._size]]
            columns = {"a": [a for a, _ in rows], "b": [b for _, b in rows]}
            yield at, pa.record_batch(columns)


PARTS = st.lists(
    st.builds(
        Part,
        st.sets(st.integers(0, len(KEYS) - 1), min_size=1, max_size=12).map(sorted),
        deletes=st.booleans(),
        start=st.sampled_from((EXACT, EXACT, BELOW, PREFIX, UNKNOWN)),
        size=st.integers(1, 4),
    ),
    max_size=5,
)


@examples(300)
@given(PARTS)
def test_streams_that_begin_late_are_merged_like_others(parts: list[Part]) -> None:
    live: dict[int, bool] = {}
    for part in reversed(parts):
        live.update(dict.fromkeys(part.places, not part.deletes))
    merged = [
        (row["a"], row["b"])
        for batch in merge([part.stream for part in parts], ORDER)
        for row in batch.to_pylist()
    ]
    assert merged == [KEYS[place] for place, shown in sorted(live.items()) if shown]


@pytest.mark.parametrize("fold_rows", [0, 3, 10**6])
@examples(100)
@given(PARTS)
def test_hidden_rows_are_collected_over_all_windows(fold_rows: int, parts: list[Part]) -> None:
    expected, taken = [], set[int]()
    for part in parts:
        expected.append([i for i, place in enumerate(part.places) if place not in taken])
        taken |= set(part.places)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(visibility, "_FOLD_ROWS", fold_rows)
        counts = [len(part.places) for part in parts]
        found = visible_rows([part.stream for part in parts], counts, ORDER)
    assert [list(rows) for rows in found] == expected


def test_a_stream_is_opened_when_its_first_key_is_reached() -> None:
    parts = [
        Part(places, deletes=False, start=EXACT, size=2)
        for places in ([0, 1, 2, 3], [4, 5], [18, 19])
    ]
    batches = merge([part.stream for part in parts], ORDER)
    next(batches)
    assert [part.opened for part in parts] == [True, False, False]
    rest = [row["a"] for batch in batches for row in batch.to_pylist()]
    assert rest == [KEYS[place][0] for place in (2, 3, 4, 5, 18, 19)]
