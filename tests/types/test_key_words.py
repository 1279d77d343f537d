"""Packed keys: words order like keys, and exact ones are equal only where keys are."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.types.ordering.key_words import pack
from rowsieve.types.ordering.keys import KeyColumns
from tests.profiles import examples

PIECES = st.sampled_from(["a", "b", "\0", "é", "\U0010ffff", "prefix-"])
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "near": (pa.int64(), st.integers(-5, 5)),
    "any int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "unsigned": (pa.uint64(), st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1])),
    "byte": (pa.int8(), st.integers(-128, 127)),
    "text": (pa.string(), st.lists(PIECES, max_size=4).map("".join)),
    "even text": (pa.string(), st.integers(0, 999).map(lambda i: f"order-{i:03}")),
    "bytes": (pa.binary(), st.binary(max_size=10)),
    "uuid": (pa.binary(16), st.binary(min_size=16, max_size=16)),
    "decimal": (
        pa.decimal128(38, 2),
        st.integers(-(10**20), 10**20).map(lambda i: decimal.Decimal(i).scaleb(-2)),
    ),
}
"""Sort forms of key columns."""


def in_key_order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value.encode() if isinstance(value, str) else value for value in row)


def columns(rows: list[tuple[Any, ...]], types: list[pa.DataType], before: int) -> KeyColumns:
    """The rows as a slice of longer arrays, as windows have them."""
    padded = [rows[0]] * before + rows
    arrays = (pa.array([row[i] for row in padded], type_) for i, type_ in enumerate(types))
    return KeyColumns(tuple(array.slice(before) for array in arrays))


@examples(300)
@given(data=st.data())
def test_words_order_and_equal_like_keys(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    types = [VALUES[name][0] for name in names]
    row = st.tuples(*(VALUES[name][1] for name in names))
    runs = [
        sorted(rows, key=in_key_order)
        for rows in data.draw(
            st.lists(st.sets(row, min_size=1, max_size=6), min_size=1, max_size=3)
        )
    ]
    packed = pack([columns(rows, types, data.draw(st.integers(0, 2))) for rows in runs])
    if packed is None:
        assert "decimal" in names
        return
    assert len({words.dtype for words in packed.runs}) == 1
    words = {
        (in_key_order(row), int(word))
        for rows, run in zip(runs, packed.runs, strict=True)
        for row, word in zip(rows, run, strict=True)
    }
    for key, word in words:
        for other_key, other_word in words:
            if key < other_key:
                assert word < other_word or (not packed.exact and word == other_word)
            elif key == other_key:
                assert word == other_word


@pytest.mark.parametrize(
    ("keys", "type_"),
    [
        ([("2024-01-01T00:00",), ("2024-01-01T00:01",)], [pa.string()]),
        ([("customer-000001",), ("customer-2",), ("customer-21",)], [pa.string()]),
        ([("eu", 2**40), ("us", -3)], [pa.string(), pa.int64()]),
        ([(bytes(15) + b"\1",), (bytes(15) + b"\2",)], [pa.binary(16)]),
        ([("", 1), ("", 2)], [pa.string(), pa.int64()]),
    ],
)
def test_keys_that_lie_close_together_pack_exactly(
    keys: list[tuple[Any, ...]], type_: list[pa.DataType]
) -> None:
    packed = pack([columns(keys, type_, 0)])
    assert packed is not None
    assert packed.exact


def test_text_that_differs_beyond_a_word_is_not_exact() -> None:
    packed = pack([columns([("a" + "x" * 8 + "1",), ("b" + "x" * 8,)], [pa.string()], 0)])
    assert packed is not None
    assert not packed.exact


@pytest.mark.parametrize(
    ("keys", "types"),
    [
        ([("a",), ("a\0",), ("a\0\0",), ("a\1",), ("ab",)], [pa.string()]),
        ([(b"",), (b"\0",), (b"\0\0",)], [pa.binary()]),
        ([("a", "x"), ("a\0", "x"), ("b", "")], [pa.string(), pa.string()]),
        ([(0, "a"), (0, "a\0"), (1, "a")], [pa.int32(), pa.string()]),
        (
            [("a", -(2**62)), ("a", 1), ("a", 2**60), ("a", 2**62), ("b", 0)],
            [pa.string(), pa.int64()],
        ),
        ([(0, 0), (0, 1), (0, 2**60), (7, 2), (2**40, 1)], [pa.int64(), pa.int64()]),
    ],
)
def test_keys_that_are_hard_to_tell_apart(
    keys: list[tuple[Any, ...]], types: list[pa.DataType]
) -> None:
    """Zero bytes at the end, and columns of which only the first bits fit."""
    packed = pack([columns(keys, types, 1)])
    assert packed is not None
    words = packed.runs[0].tolist()
    assert words == sorted(words)
    assert len(set(words)) == len(words) or not packed.exact
