"""Writes scalar values as JSON text: an array of any type that a Variant may hold, at once.

Numbers are JSON numbers with all of their digits, but no zeros at the end of a decimal's fraction:
its scale is not part of the value. A float has a point or an exponent. NaN and
the infinities, which JSON lacks, are strings, as are dates, times, UUIDs and bytes (base64).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TEXT: Final = pa.large_string()
_ESCAPES: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_SPECIAL: Final = r'["\\\x00-\x1f]'
_NEEDS_ESCAPE: Final = np.zeros(256, np.bool_)
_NEEDS_ESCAPE[[*range(32), ord('"'), ord("\\")]] = True
_CONTROLS: Final = [chr(code) for code in range(32)]
_FIRST: Final = int(np.datetime64("-32767-01-01", "D").astype(np.int64))
_LAST: Final = int(np.datetime64("32767-12-31", "D").astype(np.int64))
_DAY_TICKS: Final = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_BASE64: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)


def holds(type_: pa.DataType) -> bool:
    """Return whether `json_texts` writes values of this type."""
    types = pa.types
    return bool(
        types.is_boolean(type_)
        or types.is_signed_integer(type_)
        or types.is_floating(type_)
        or types.is_decimal(type_)
        or types.is_date32(type_)
        or types.is_time(type_)
        or types.is_timestamp(type_)
        or _is_text(type_)
        or _is_bytes(type_)
    )


def json_texts(values: pa.Array) -> pa.Array:
    """Return the JSON text of each value, none of them NULL; ValueError for one that has none."""
    type_, types = values.type, pa.types
    if _is_text(type_):
        return quoted(values.cast(TEXT))
    if types.is_boolean(type_) or types.is_integer(type_):
        return values.cast(TEXT)
    if types.is_floating(type_):
        return _floats(values)
    if types.is_decimal(type_):
        return _decimals(values)
    if types.is_fixed_size_binary(type_) and type_.byte_width == 16:
        return _uuids(values)
    if _is_bytes(type_):
        return _in_quotes(_base64(values.cast(pa.large_binary())))
    return _in_quotes(_times(values))


def quoted(texts: pa.Array) -> pa.Array:
    """Return texts as JSON strings."""
    if _has_special(texts):
        special = pc.match_substring_regex(texts, _SPECIAL)
        texts = pc.replace_with_mask(texts, special, _escaped(texts.filter(special)))
    return _in_quotes(texts)


def _has_special(texts: pa.Array) -> bool:
    """Return whether a byte of any text needs an escape."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    return bool(_NEEDS_ESCAPE[data].any())


def _escaped(texts: pa.Array) -> pa.Array:
    texts = pc.replace_substring(texts, "\\", "\\\\")
    texts = pc.replace_substring(texts, '"', '\\"')
    if not pc.any(pc.match_substring_regex(texts, r"[\x00-\x1f]"), min_count=0).as_py():
        return texts
    for control in _CONTROLS:
        if pc.any(pc.match_substring(texts, control), min_count=0).as_py():
            escape = _ESCAPES.get(control, f"\\u{ord(control):04x}")
            texts = pc.replace_substring(texts, control, escape)
    return texts


def _in_quotes(texts: pa.Array) -> pa.Array:
    quote = pa.scalar('"', TEXT)
    return pc.binary_join_element_wise(quote, texts, quote, pa.scalar("", TEXT))


def _floats(values: pa.Array) -> pa.Array:
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    texts = values.cast(TEXT)
    whole = pc.match_substring_regex(texts, "^-?[0-9]+$")
    if pc.any(whole, min_count=0).as_py():
        pointed = pc.binary_join_element_wise(texts, pa.scalar(".0", TEXT), pa.scalar("", TEXT))
        texts = pc.if_else(whole, pointed, texts)
    if pc.all(pc.is_finite(values), min_count=0).as_py():
        return texts
    texts = pc.if_else(pc.is_nan(values), pa.scalar('"NaN"', TEXT), texts)
    for number, name in ((np.inf, '"Infinity"'), (-np.inf, '"-Infinity"')):
        same = pc.equal(values, pa.scalar(number, values.type))
        texts = pc.if_else(same, pa.scalar(name, TEXT), texts)
    return texts


def _decimals(values: pa.Array) -> pa.Array:
    values.validate(full=True)  # the number of digits
    texts = values.cast(TEXT)
    if values.type.scale <= 0:
        return texts
    pattern = r"(\.[0-9]*[1-9])0+(E.*)?$|\.0+(E.*)?$|^0E.*$"
    texts = pc.replace_substring_regex(texts, pattern, r"\1\2\3")
    return pc.if_else(pc.equal(texts, ""), pa.scalar("0", TEXT), texts)


def _times(values: pa.Array) -> pa.Array:
    """The text of dates, times and timestamps without zeros at the end of a fraction."""
    type_ = values.type
    if pa.types.is_time(type_):
        ticks = values.cast(pa.time64("ns")).view(pa.int64()).to_numpy()
        _check(ticks, 0, _DAY_TICKS["ns"] - 1, "a time of day")
        return pc.replace_substring_regex(values.cast(TEXT), r"\.0+$|(\.[0-9]*[1-9])0+$", r"\1")
    if pa.types.is_date32(type_):
        _check(values.view(pa.int32()).to_numpy(), _FIRST, _LAST, "a date")
        return values.cast(TEXT)
    ticks = values.view(pa.int64()).to_numpy() // _DAY_TICKS[type_.unit]
    _check(ticks, _FIRST, _LAST, "a timestamp")
    local = values.cast(pa.timestamp(type_.unit)) if type_.tz else values
    texts = pc.replace_substring_regex(local.cast(TEXT), r"\.0+$|(\.[0-9]*[1-9])0+$", r"\1")
    if type_.tz is None:
        return texts
    return pc.binary_join_element_wise(texts, pa.scalar("+00:00", TEXT), pa.scalar("", TEXT))


def _check(ticks: Any, first: int, last: int, what: str) -> None:
    wrong = (ticks < first) | (ticks > last)
    if wrong.any():
        raise ValueError(
            f"{what} of it ({int(ticks[np.argmax(wrong)])} in its unit) has no text: it is not "
            "between midnight and midnight, or not within the years -32767 to 32767"
        )


def _uuids(values: pa.Array) -> pa.Array:
    data = np.frombuffer(values.buffers()[1], np.uint8)[values.offset * 16 :][: len(values) * 16]
    bits = np.stack([data >> 4, data & 15], axis=-1).reshape(-1, 32)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)[bits]
    text = np.full((len(values), 38), ord("-"), np.uint8)
    text[:, 0] = text[:, 37] = ord('"')
    source = 0
    for start, stop in ((1, 9), (10, 14), (15, 19), (20, 24), (25, 37)):
        text[:, start:stop] = digits[:, source : source + stop - start]
        source += stop - start
    offsets = np.arange(len(values) + 1, dtype=np.int64) * 38
    return pa.LargeStringArray.from_buffers(
        len(values), pa.py_buffer(offsets), pa.py_buffer(text.tobytes())
    )


def _base64(values: pa.Array) -> pa.Array:
    lengths = pc.binary_length(values).to_numpy().astype(np.int64)
    padding = -lengths % 3
    zeros = pa.array([b"", b"\0", b"\0\0"], pa.large_binary()).take(pa.array(padding))
    padded = pc.binary_join_element_wise(values, zeros, pa.scalar(b"", pa.large_binary()))
    padded = pa.concat_arrays([padded])  # offsets from 0
    offsets = np.frombuffer(padded.buffers()[1], np.int64)[padded.offset :][: len(padded) + 1]
    data = np.frombuffer(padded.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    triples = data.reshape(-1, 3).astype(np.uint32)
    whole = triples[:, 0] << 16 | triples[:, 1] << 8 | triples[:, 2]
    text = _BASE64[np.stack([whole >> 18, whole >> 12 & 63, whole >> 6 & 63, whole & 63], axis=-1)]
    text = text.reshape(-1)
    ends = (offsets[1:] - offsets[0]) // 3 * 4
    text[ends[padding > 0] - 1] = ord("=")
    text[ends[padding > 1] - 2] = ord("=")
    bounds = np.concatenate([[0], ends]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(
        len(values), pa.py_buffer(bounds), pa.py_buffer(text.tobytes())
    )


def _is_text(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    )


def _is_bytes(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(type_)
        or types.is_large_binary(type_)
        or types.is_binary_view(type_)
        or (types.is_fixed_size_binary(type_) and type_.byte_width == 16)
    )
