"""Encodes Variants one value at a time: the obvious reading of Parquet's VariantEncoding.md."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa


def variant(value: Any, *, width: int = 1, large: bool = False) -> dict[str, bytes]:
    """Encode a value of Python as a Variant; offsets have at least `width` bytes."""
    keys: list[str] = []
    data = _value(value, keys, width, large=large)
    return {"metadata": metadata(keys, width), "value": data}


def metadata(keys: list[str], width: int = 1) -> bytes:
    """The dictionary of keys, not sorted."""
    raw = [key.encode() for key in keys]
    total = sum(map(len, raw))
    width = max(width, _width(max(total, len(raw))))
    offsets = [sum(map(len, raw[:i])) for i in range(len(raw) + 1)]
    head = bytes([1 | (width - 1) << 6]) + len(raw).to_bytes(width, "little")
    return head + b"".join(each.to_bytes(width, "little") for each in offsets) + b"".join(raw)


def column(values: list[Any], **how: Any) -> pa.StructArray:
    """A column of Variants; None is NULL."""
    type_ = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    return pa.array([None if each is None else variant(each, **how) for each in values], type_)


class JsonNull:
    """JSON's null, where None is SQL's NULL."""


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _value(value: Any, keys: list[str], width: int, *, large: bool) -> bytes:
    if value is None or isinstance(value, JsonNull):
        return b"\x00"
    if isinstance(value, bool):
        return b"\x04" if value else b"\x08"
    if isinstance(value, int) and abs(value) < 2**63:
        for code, form in ((3, "<b"), (4, "<h"), (5, "<i"), (6, "<q")):
            try:
                return bytes([code << 2]) + struct.pack(form, value)
            except struct.error:
                continue
    if isinstance(value, int | Decimal):
        sign, digits, exponent = Decimal(value).as_tuple()
        unscaled = (-1 if sign else 1) * int("".join(map(str, digits)))
        for code, size, most in ((8, 4, 9), (9, 8, 18), (10, 16, 38)):
            if len(digits) <= most:
                raw = unscaled.to_bytes(size, "little", signed=True)
                return bytes([code << 2, -int(exponent)]) + raw
        raise AssertionError(value)
    if isinstance(value, float):
        return bytes([7 << 2]) + struct.pack("<d", value)
    if isinstance(value, str):
        raw = value.encode()
        if len(raw) < 64 and not large:
            return bytes([len(raw) << 2 | 1]) + raw
        return bytes([16 << 2]) + struct.pack("<I", len(raw)) + raw
    if isinstance(value, bytes):
        return bytes([15 << 2]) + struct.pack("<I", len(value)) + value
    return _container(value, keys, width, large=large)


def _container(value: Any, keys: list[str], width: int, *, large: bool) -> bytes:
    is_object = isinstance(value, dict)
    items = sorted(value.items()) if is_object else list(enumerate(value))
    parts = [_value(each, keys, width, large=large) for _, each in items]
    offsets = [sum(map(len, parts[:i])) for i in range(len(parts) + 1)]
    width = max(width, _width(offsets[-1]))
    many = large or len(parts) > 255
    count = struct.pack("<I", len(parts)) if many else bytes([len(parts)])
    after = b"".join(each.to_bytes(width, "little") for each in offsets) + b"".join(parts)
    if not is_object:
        return bytes([(many << 2 | (width - 1)) << 2 | 3]) + count + after
    for key, _ in items:
        if key not in keys:
            keys.append(str(key))
    ids = [keys.index(str(key)) for key, _ in items]
    id_width = max(width, _width(max(ids, default=0)))
    header = many << 4 | (id_width - 1) << 2 | (width - 1)
    return (
        bytes([header << 2 | 2])
        + count
        + b"".join(each.to_bytes(id_width, "little") for each in ids)
        + after
    )
