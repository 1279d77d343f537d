"""Varints, which several formats share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.varints import decode_varint, encode_varint
from tests.profiles import examples


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\x00"),
        (1, b"\x01"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),  # the example of the protocol buffers' specification
        (2**64 - 1, b"\xff" * 9 + b"\x01"),
    ],
)
def test_a_number_has_the_bytes_that_the_formats_say(value: int, encoded: bytes) -> None:
    assert encode_varint(value) == encoded
    assert decode_varint(b"\xff" + encoded + b"\xff", 1) == (value, 1 + len(encoded))


@examples(200)
@given(value=st.integers(0, 2**64 - 1), before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_written_varints_are_read_back(value: int, before: bytes, after: bytes) -> None:
    encoded = encode_varint(value)
    stop = len(before) + len(encoded)
    assert decode_varint(memoryview(before + encoded + after), len(before)) == (value, stop)


@examples(100)
@given(value=st.integers(0, 2**64 - 1), data=st.data())
def test_bytes_that_end_within_a_number_are_an_index_error(value: int, data: st.DataObject) -> None:
    encoded = encode_varint(value)
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(IndexError):
        decode_varint(encoded[:cut], 0)


def test_more_groups_than_64_bits_have_are_an_overflow() -> None:
    with pytest.raises(OverflowError, match="64 bits"):
        decode_varint(b"\x80" * 10 + b"\x00", 0)
