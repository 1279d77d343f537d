"""Views of text and bytes have the values of the arrays that they were made from."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from rowsieve.executor.text_views import as_output, with_views

TEXTS = ["", "a", "twelve bytes", "thirteen byte", "é" * 9, "long " * 40]


def dictionaries(chance: random.Random, type_: pa.DataType) -> pa.Array:
    """A random array with a dictionary, perhaps with NULL and perhaps sliced."""
    texts = chance.sample(TEXTS, chance.randint(1, len(TEXTS)))
    values = pa.array([t.encode() if pa.types.is_binary(type_) else t for t in texts], type_)
    if chance.random() < 0.3:
        values = values.slice(len(values) // 2)
    nulls = chance.choice((0.0, 0.3))
    numbers = [
        None if chance.random() < nulls else chance.randrange(len(values))
        for _ in range(chance.choice((0, 1, 9, 70)))
    ]
    found = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), values)
    start = chance.randint(0, len(found))
    return found.slice(start, chance.randint(0, len(found)))


@pytest.mark.parametrize("type_", [pa.string(), pa.binary()])
def test_views_into_a_dictionary_have_its_values(type_: pa.DataType) -> None:
    target = with_views(pa.schema({"x": type_})).types[0]
    assert target in (pa.string_view(), pa.binary_view())
    for seed in range(200):
        given = dictionaries(random.Random(seed), type_)
        found = as_output(given, target)
        found.validate(full=True)
        assert found.type == target
        assert found.to_pylist() == given.to_pylist()
        assert found.null_count == given.null_count


def test_a_dictionary_with_null_or_without_values_is_cast() -> None:
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    assert as_output(with_null, pa.string_view()).to_pylist() == ["a", None, None]
    empty = pa.DictionaryArray.from_arrays(
        pa.array([None, None], pa.int8()), pa.array([], "string")
    )
    assert as_output(empty, pa.string_view()).to_pylist() == [None, None]


def test_other_types_are_cast_as_before() -> None:
    assert as_output(pa.array(["b"]), pa.string_view()).to_pylist() == ["b"]
    assert as_output(pa.array([1]), pa.int32()).type == pa.int32()
    assert as_output(pa.array(["b"]).dictionary_encode(), pa.string()).type == pa.string()
    kept = pa.array([1])
    assert as_output(kept, pa.int64()) is kept
