"""Structs that are parsed by their shapes are those that are read one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.parquet.foreign_footer.many_structs import _WALKED_BELOW_BYTES, ManyStructs
from rowsieve.parquet.foreign_footer.struct_shapes import BINARY, LIST, STRUCT
from rowsieve.parquet.thrift import I32, I64, MalformedThrift, encoded_value, read_struct
from tests import profiles

WANTED = {(1,): 6, (2,): BINARY, (3,): STRUCT, (3, 1): 6, (3, 2): BINARY, (4,): LIST, (5,): 5}
inner = st.fixed_dictionaries(
    {}, optional={1: st.integers(-(2**63), 2**63 - 1).map(I64), 2: st.binary(max_size=200)}
).map(lambda each: dict(sorted(each.items())))
structs = st.fixed_dictionaries(
    {},
    optional={
        1: st.integers(-(2**63), 2**63 - 1).map(I64),
        2: st.binary(max_size=40) | st.just(b"\x16\x02\x00\x18"),
        3: inner,
        4: st.lists(st.binary(max_size=3), max_size=20) | st.lists(inner, max_size=3),
        5: st.integers(-(2**31), 2**31 - 1).map(I32) | st.integers(0, 9).map(I64),
        9: st.binary(max_size=3),
    },
)


def decoded(data: bytes, rows: Any, path: tuple[int, ...], place: int) -> Any:
    value, stop = int(rows.values[path][place]), int(rows.stops[path][place])
    if stop < 0:
        return None
    return data[value:stop] if WANTED[path] in (BINARY, STRUCT) else value


def expected(data: bytes, start: int, path: tuple[int, ...]) -> Any:
    fields, _ = read_struct(data, start)
    for number in path[:-1]:
        fields = fields.get(number, {})
    found = fields.get(path[-1])
    return len(found) if isinstance(found, list) else found


@profiles.examples(400)
@given(st.lists(structs, min_size=1, max_size=30))
def test_fields_are_those_of_structs_read_one_by_one(values: list[dict[int, Any]]) -> None:
    data = (
        b"".join(bytes(encoded_value(dict(sorted(each.items())))[1]) for each in values) + b"\0\0"
    )
    many = ManyStructs(data, WANTED)
    rows: list[int] = []
    end = many.walk(0, len(values), rows)
    found = many.structs(rows)
    assert end == len(data) - 2
    assert found.starts.tolist()[1:] == found.ends.tolist()[:-1]
    for place, start in enumerate(found.starts.tolist()):
        assert read_struct(data, start)[1] == found.ends[place]
        for path in WANTED:
            if path == (5,) and type(values[place].get(5)) is not I32:
                assert decoded(data, found, path, place) is None  # of another kind
            elif path == (3,):
                assert (found.stops[path][place] >= 0) == (3 in values[place])
            else:
                assert decoded(data, found, path, place) == expected(data, start, path)


@profiles.examples(400)
@given(st.binary(max_size=60), st.integers(0, 9))
def test_other_bytes_are_structs_or_an_error_of_its_own(data: bytes, count: int) -> None:
    many = ManyStructs(data, WANTED)
    rows: list[int] = []
    try:
        end = many.walk(0, count, rows)
    except MalformedThrift:
        return
    assert len(rows) == count
    assert end <= len(data)


def of_few_shapes(seed: int, count: int) -> list[dict[int, Any]]:
    """Structs that are read in lanes: of three shapes, with numbers and texts of some lengths."""
    chance = random.Random(seed)
    lengths = chance.choice([(5,), (5, 5, 5, 200), (0, 1, 2, 150)])

    def number() -> I64:
        return I64(chance.choice([3, 70, 2**20, -(2**62)]) if chance.random() < 0.2 else 40)

    def text() -> bytes:
        return chance.choice([b"\0\x16\x02", b"x", b"\x16"]) * chance.choice(lengths)

    def struct(shape: int) -> dict[int, Any]:
        values: dict[int, Any] = {1: number(), 2: text(), 3: {1: number(), 2: text()}}
        if shape:
            values[4], values[5] = [b"a", text()], I32(chance.randrange(3))
        if shape > 1:
            values[9] = [{1: number()}] * 3
        return values

    return [struct(chance.choice([0, 0, 1, 2])) for _ in range(count)]


@pytest.mark.parametrize("seed", range(6))
def test_structs_that_are_read_at_once_are_those_read_one_by_one(seed: int) -> None:
    values = of_few_shapes(seed, 200)
    data = b"".join(bytes(encoded_value(each)[1]) for each in values) + b"\0\0"
    assert len(data) > 2 * _WALKED_BELOW_BYTES
    many = ManyStructs(data, WANTED)
    rows: list[int] = []
    assert many.walk(0, len(values), rows) == len(data) - 2
    structs = many.structs(rows)
    for place, start in enumerate(structs.starts.tolist()):
        assert read_struct(data, start)[1] == structs.ends[place]
        for path in WANTED:
            if path != (3,):
                assert decoded(data, structs, path, place) == expected(data, start, path)


def test_a_longer_number_whose_second_byte_is_the_next_header_is_not_a_shorter_one() -> None:
    header = 0x45  # of field 5 after field 1; then come its value 0 and, for a shorter one, the end
    longer: dict[int, Any] = {1: I64((header << 7 | 2) >> 1), 5: I32(0)}
    values: list[dict[int, Any]] = [{1: I64(3), 5: I32(1)}, longer] * 400
    data = b"".join(bytes(encoded_value(each)[1]) for each in values) + b"\0\0"
    many = ManyStructs(data, WANTED)
    rows: list[int] = []
    assert many.walk(0, len(values), rows) == len(data) - 2
    assert many.structs(rows).values[1,].tolist() == [each[1] for each in values]
