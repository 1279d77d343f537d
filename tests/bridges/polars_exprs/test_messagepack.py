"""The decoder agrees with msgspec's on what that can read, and goes deeper."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.polars_exprs.messagepack import decode
from rowsieve.errors import UnsupportedOperation
from tests.profiles import examples

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=300)
)
VALUES = st.recursive(
    LEAVES,
    lambda below: st.lists(below, max_size=20) | st.dictionaries(st.text(), below, max_size=20),
)


@examples(200)
@given(value=VALUES)
def test_values_come_back(value: Any) -> None:
    data = msgspec.msgpack.encode(value)
    decoded, spans = decode(data)
    assert decoded == value
    if isinstance(value, dict) and value:
        assert spans[id(decoded)] == (0, len(data))


@examples(200)
@given(value=VALUES, cut=st.integers(0, 1000), mark=st.integers(0, 255))
def test_damage_is_an_error_or_another_value(value: Any, cut: int, mark: int) -> None:
    data = bytearray(msgspec.msgpack.encode(value))
    with pytest.raises(UnsupportedOperation, match="a serialised expression"):
        decode(bytes(data[:-1]))
    data[cut % len(data)] = mark
    try:
        decode(bytes(data))
    except UnsupportedOperation:
        return


def test_depth_does_not_matter() -> None:
    decoded, _ = decode(b"\x91" * 100_000 + b"\xc0")
    for _ in range(100_000):
        (decoded,) = decoded
    assert decoded is None
