"""Thrift's compact protocol: some fields of a struct are those that reading all of it gives."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.parquet.thrift import (
    I32,
    I64,
    MalformedThrift,
    Wanted,
    read_fields,
    read_struct,
    write_struct,
)

_VALUES = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(I32),
    st.integers(-(2**63), 2**63 - 1).map(I64),
    st.binary(max_size=200),
    st.lists(st.integers(-300, 300).map(I64), max_size=20),
)
_INNER = st.dictionaries(st.integers(1, 15), _VALUES, max_size=5).map(
    lambda d: dict(sorted(d.items()))
)
_STRUCTS = st.dictionaries(
    st.integers(1, 15), st.one_of(_VALUES, _INNER, st.lists(_INNER, min_size=1, max_size=3))
).map(lambda d: dict(sorted(d.items())))


def _picked(struct: dict[int, Any], wanted: Wanted) -> dict[int, Any]:
    """The fields wanted, of the struct read whole: what `read_fields` promises."""
    found: dict[int, Any] = {}
    for number, inner in wanted.items():
        if number in struct:
            value = struct[number]
            if inner is None:
                found[number] = value
            elif isinstance(value, list):
                found[number] = [_picked(one, inner) for one in value]
            else:
                found[number] = _picked(value, inner)
    return found


def test_doubles_are_read_and_skipped() -> None:
    data = b"\x17" + bytes(8) + b"\x15\x08\0"  # field 1: 0.0, field 2: 4
    assert read_struct(data) == ({1: 0.0, 2: 4}, len(data))
    assert read_fields(data, 0, {2: None}) == {2: 4}
    assert read_fields(data, 0, {1: None}) == {1: 0.0}
    for short in range(1, 9):
        with pytest.raises(MalformedThrift, match="double"):
            read_struct(data[:short])


@given(_STRUCTS, st.sets(st.integers(1, 15)), st.sets(st.integers(1, 15)))
def test_some_fields_are_those_of_the_whole_struct(
    fields: dict[int, Any], names: set[int], inner_names: set[int]
) -> None:
    data = bytes(write_struct(fields))
    whole, _ = read_struct(data)
    nested = {
        number
        for number, value in whole.items()
        if isinstance(value, dict) or (isinstance(value, list) and value and type(value[0]) is dict)
    }
    wanted: Wanted = {
        number: dict.fromkeys(inner_names) if number in nested else None for number in names
    }
    assert read_fields(data, 0, wanted) == _picked(whole, wanted)


def test_some_fields_of_a_real_footer() -> None:
    table = pa.table(
        {
            "i": list(range(500)),
            "f": [None, 1.5] * 250,
            "t": [f"text {i}" for i in range(500)],
            "l": [[i] * (i % 3) for i in range(500)],
            "s": [{"a": i, "b": None} for i in range(500)],
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=100, write_page_index=True)
    data = bytes(sink.getvalue())
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    wanted: Wanted = {3: None, 4: {1: {4: None, 6: None}, 3: None}}
    assert read_fields(data, start, wanted) == _picked(read_struct(data, start)[0], wanted)


@pytest.mark.parametrize("length", [1, 5, 20])
def test_a_struct_that_is_cut_off_is_malformed(length: int) -> None:
    data = bytes(write_struct({1: I32(2**30), 2: b"x" * 20, 3: {1: I64(5)}}))
    with pytest.raises(MalformedThrift):
        read_fields(data[:length], 0, {3: {1: None}})
