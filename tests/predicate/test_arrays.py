"""Masks of Arrow arrays: the same as looking at each value, whatever the offset."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate.arrays import as_mask, null_mask
from tests.profiles import examples

cells = st.lists(st.none() | st.booleans(), max_size=40)


@given(cells, st.integers(0, 20), st.integers(0, 20))
@examples(300)
def test_masks_agree_with_the_values(values: list[bool | None], start: int, stop: int) -> None:
    array = pa.array(values, pa.bool_())[start : len(values) - stop]
    expected = array.to_pylist()
    mask = as_mask(array)
    assert mask.tolist() == [value is True for value in expected]
    assert null_mask(array).tolist() == [value is None for value in expected]
    mask[:] = True  # a mask is the caller's own
    assert array.to_pylist() == expected


def test_chunks_and_nulls_without_a_type() -> None:
    chunked = pa.chunked_array([[True, None], [False]])
    assert as_mask(chunked).tolist() == [True, False, False]
    assert as_mask(pa.nulls(2, pa.bool_())).tolist() == [False, False]
