"""Integers that are equal exactly where the values of a column are equal, within one window.

Equality is that of the stored bits, NULL with NULL: 0.0 and -0.0 differ, and so do numbers of other
digits or JSON of other text, because a predicate may distinguish them. NaN is stored in one form.
That is never coarser than what predicates see (invariant 33). Nested values count: structs by their
fields, lists and maps by their items in order. Computed column by column, never row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.types.ordering.keys import flat

Codes: TypeAlias = npt.NDArray[np.int64]

_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def equality_codes(values: pa.Array) -> list[Codes]:
    """Return arrays of shape (n,): two rows are equal if all of the arrays have equal numbers."""
    values = stored_values(values)
    type_ = values.type
    if pa.types.is_null(type_):
        return []
    if pa.types.is_struct(type_):
        children = [
            code
            for place in range(type_.num_fields)
            for code in equality_codes(pc.struct_field(values, place))
        ]
        return [*_null_codes(values), *children]
    if pa.types.is_map(type_) or _is_list(type_):
        return [_list_codes(values)]
    bits = _fixed_bits(values)
    if bits is not None:
        return bits
    return [_dictionary_codes(values)]


def column_codes(chunks: Sequence[pa.Array]) -> list[Codes]:
    """Return `equality_codes` of a chunked column; some chunks may have a dictionary.

    Numbers without NULL are only concatenated. Of dictionaries with fewer values than there are
    rows, only the values are compared.
    """
    if any(pa.types.is_dictionary(chunk.type) for chunk in chunks):
        value_count = sum(
            len(chunk.dictionary if isinstance(chunk, pa.DictionaryArray) else chunk)
            for chunk in chunks
        )
        if value_count < sum(map(len, chunks)):
            return [_codes_by_values(chunks)]
        chunks = [stored_values(chunk) for chunk in chunks]
    if all(not chunk.null_count and _is_plain(chunk.type) for chunk in chunks):
        parts = [code for chunk in chunks for code in equality_codes(chunk)]
        return [np.concatenate(parts)]
    return equality_codes(flat(pa.chunked_array(chunks)))


def joined_codes(columns: Sequence[Codes], count: int) -> Codes:
    """Return one array for several: (n,) numbers below n, equal where all columns are equal."""
    joined = np.zeros(count, dtype=np.int64)
    for column in columns:
        compact = _dictionary_codes(pa.array(column))
        width = int(compact.max(initial=0)) + 1
        joined = _dictionary_codes(pa.array(joined * width + compact))
    return joined


def plain_codes(values: pa.Array) -> Codes | None:
    """The codes of numbers of up to 64 bits without NULL; None for other values."""
    if values.null_count or not _is_plain(values.type):
        return None
    (codes,) = equality_codes(values)
    return codes


def fixed_codes(values: pa.Array) -> list[Codes]:
    """The bits of booleans and numbers of up to 64 bits, and which of them are NULL.

    Always two arrays, so that a row has the same codes in every batch.
    """
    bits = _fixed_bits(values)
    assert bits is not None
    is_valid = values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    return [is_valid, bits[-1]]


def _is_plain(type_: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(type_) and type_.bit_width in _INTEGERS)


def plain_values(values: pa.Array) -> pa.Array:
    """The values without dictionary."""
    is_encoded = isinstance(values, pa.DictionaryArray)
    return values.dictionary.take(values.indices) if is_encoded else values


def stored_values(values: Any) -> pa.Array:
    """The values without extension type and dictionary."""
    if isinstance(values, pa.ExtensionArray):
        return values.storage
    if isinstance(values, pa.DictionaryArray):
        return values.dictionary_decode()
    return values


def _is_list(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
    )


def _fixed_bits(values: pa.Array) -> list[Codes] | None:
    """The bits of values of up to 64 bits, and which are NULL; None for other types."""
    type_ = values.type
    if pa.types.is_boolean(type_):
        plain = values.cast(pa.uint8())
    elif pa.types.is_primitive(type_) and type_.bit_width in _INTEGERS:
        plain = values.view(_INTEGERS[type_.bit_width])
    else:
        return None
    if plain.null_count:
        plain = plain.fill_null(0)
    numbers = plain.to_numpy(zero_copy_only=False)
    return [*_null_codes(values), numbers.astype(np.int64, copy=False)]


def _null_codes(values: pa.Array) -> list[Codes]:
    if not values.null_count:
        return []
    return [values.is_valid().cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(np.int64)]


def _dictionary_codes(values: pa.Array) -> Codes:
    indices = values.dictionary_encode(null_encoding="encode").indices
    return np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _codes_by_values(chunks: Sequence[pa.Array]) -> Codes:
    """Number the values of all dictionaries together, then take the number of each row's value."""
    sources = [each.dictionary if isinstance(each, pa.DictionaryArray) else each for each in chunks]
    numbers = _dictionary_codes(pa.concat_arrays([*sources, pa.nulls(1, sources[0].type)]))
    parts, start = [], 0
    for chunk, source in zip(chunks, sources, strict=True):
        codes = numbers[start : start + len(source)]
        start += len(source)
        if isinstance(chunk, pa.DictionaryArray):
            indices = chunk.indices
            if indices.null_count:
                codes = np.append(codes, numbers[-1])  # that of NULL, after those of the values
                indices = indices.cast(pa.int64()).fill_null(len(source))
            codes = codes[indices.to_numpy()]
        parts.append(codes)
    return np.concatenate(parts)


def _list_codes(values: pa.Array) -> Codes:
    """Encode each list as the bytes of its items' codes: equal lists have equal bytes."""
    if pa.types.is_fixed_size_list(values.type):
        values = values.cast(pa.list_(values.type.value_field))
    is_map = pa.types.is_map(values.type)
    offsets = np.asarray(values.offsets.to_numpy(zero_copy_only=False), dtype=np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    children = (values.keys, values.items) if is_map else (values.values,)
    columns = [
        code for child in children for code in equality_codes(child.slice(first, last - first))
    ]
    items = joined_codes(columns, last - first)
    starts, lengths = offsets[:-1] - first, np.diff(offsets)
    if values.null_count:
        lengths = np.where(values.is_null().to_numpy(zero_copy_only=False), 0, lengths)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    places = np.repeat(starts - ends[:-1], lengths) + np.arange(int(ends[-1]), dtype=np.int64)
    buffers = [pa.py_buffer(ends * 8), pa.py_buffer(items[places].tobytes())]
    texts = pa.Array.from_buffers(pa.large_binary(), len(values), [None, *buffers])
    return joined_codes([*_null_codes(values), _dictionary_codes(texts)], len(values))
