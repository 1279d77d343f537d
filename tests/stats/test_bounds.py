"""Truncated bounds: never too narrow, never too long, and present if possible (trap T15)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.stats.bounds import lower_bytes, lower_text, upper_bytes, upper_text
from tests.profiles import examples

LAST = "\U0010ffff"
SNOWMAN = "\u2603"

# Characters whose successor is odd: one byte more, past the surrogates, or none.
text = st.text(st.sampled_from(["a", "\x7f", "\u07ff", "\ud7ff", "\uffff", LAST]), max_size=12)


@pytest.mark.parametrize(
    ("value", "limit", "exists"),
    [
        (b"", 0, True),
        (b"\x01", 0, False),
        (b"\x01", 1, True),
        (b"\x01\xff", 2, True),
        (b"\xff\xff", 2, True),
        (b"\xff\xff\xff", 2, False),
    ],
)
def test_the_table_of_bytes(value: bytes, limit: int, exists: bool) -> None:
    assert (upper_bytes(value, limit) is not None) == exists


@pytest.mark.parametrize(
    ("value", "limit", "exists"),
    [
        ("", 0, True),
        ("1", 0, False),
        ("1", 1, True),
        (SNOWMAN, 1, False),
        (SNOWMAN, 3, True),
        (LAST, 3, False),
        (LAST, 4, True),
        (LAST * 2, 7, False),
        (LAST * 2, 8, True),
    ],
)
def test_the_table_of_strings(value: str, limit: int, exists: bool) -> None:
    assert (upper_text(value, limit) is not None) == exists


@pytest.mark.parametrize(
    ("value", "limit", "upper"),
    [
        ("abc", 2, "ac"),
        ("a\ud7ffx", 4, "a\ue000"),  # no surrogates between
        ("a" + LAST + "x", 5, "b"),  # the last character cannot be raised
        ("a\x7fx", 2, "b"),  # U+0080 takes a byte more than there is room for
        ("\x7fx", 1, None),
        (SNOWMAN * 2, 5, "\u2604"),
    ],
)
def test_the_last_character_that_can_be_raised_is(
    value: str, limit: int, upper: str | None
) -> None:
    assert upper_text(value, limit) == upper


def test_bytes_that_cannot_be_incremented_are_dropped() -> None:
    assert upper_bytes(b"\x01\xff\xff\x00", 3) == b"\x02"


@given(text | st.text(max_size=12), st.integers(0, 20))
@examples(500)
def test_text_lies_between_its_bounds(value: str, limit: int) -> None:
    lower, upper = lower_text(value, limit), upper_text(value, limit)
    assert lower.encode() <= value.encode()
    assert len(lower.encode()) <= limit
    assert value.startswith(lower)
    if upper is not None:
        assert value.encode() <= upper.encode()
        assert len(upper.encode()) <= limit
    if len(value.encode()) <= limit:
        assert (lower, upper) == (value, value)


@given(st.binary(max_size=12) | st.lists(st.sampled_from([0, 255])).map(bytes), st.integers(0, 8))
@examples(300)
def test_bytes_lie_between_their_bounds(value: bytes, limit: int) -> None:
    lower, upper = lower_bytes(value, limit), upper_bytes(value, limit)
    assert lower <= value
    assert len(lower) <= limit
    if upper is None:
        assert set(value[:limit]) <= {255}
    else:
        assert value <= upper
        assert len(upper) <= limit
    if len(value) <= limit:
        assert (lower, upper) == (value, value)
