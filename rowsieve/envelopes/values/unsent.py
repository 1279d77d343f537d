"""Which values are the marker that Debezium writes for one that it did not send.

PostgreSQL does not log an unchanged value that is stored out of line. Debezium writes a marker in
the type of the column: text, its bytes, a list with one of these, a list of numbers that are its
bytes, a list with the UUID of its name, a map from it to itself, or a place that no data has.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import struct
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.envelopes.row_structs import NumberText
from rowsieve.types import logical
from rowsieve.types.encodings import is_bytes, is_text

Indices = npt.NDArray[np.int64]

MARKER: Final = "__debezium_unavailable_value"
_BYTES: Final = MARKER.encode()
_TEXTS: Final = (MARKER, "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", _BYTES.hex())
"""The marker as text, and its bytes as base64 and as hexadecimal digits."""

_QUOTED: Final = frozenset(f'"{text}"'.encode() for text in _TEXTS)
_UUID: Final = uuid.UUID(bytes=hashlib.md5(_BYTES, usedforsecurity=False).digest(), version=3)
_EPOCH: Final = datetime.date(1970, 1, 1)
_LISTS: Final[Sequence[list[Any]]] = (
    *([text] for text in _TEXTS),
    [_BYTES],
    [str(_UUID)],
    [_UUID],
    [_UUID.bytes],
    list(_BYTES),
    [_EPOCH + datetime.timedelta(days=number) for number in _BYTES],
)
_MAPS: Final[Sequence[Any]] = ({MARKER: MARKER}, [(MARKER, MARKER)])
_FAR: Final = -99_999_999
_PLACES: Final = (
    struct.pack("<BIIdd", 1, 0x20000001, 4326, _FAR, _FAR),
    struct.pack("<BIIdd", 1, 0x20000001, 4326, 179.999999, 89.999999),
)
_PLACE_TEXTS: Final = tuple(base64.b64encode(each).decode() for each in _PLACES)
"""The points that mark a geometry and a geography, as PostGIS writes them."""

_LENGTHS: Final = (1, len(_BYTES))


def unsent_places(
    kind: str, values: Sequence[Any] | pa.Array, type_: logical.LogicalType
) -> Indices:
    """The places of values of a JSON kind, for a column of this type, that were not sent."""
    match kind:
        case "str":
            texts = values if isinstance(values, pa.Array) else _texts(values)
            marked = pc.is_in(texts, value_set=pa.array(_TEXTS))
            return np.flatnonzero(np.asarray(marked))
        case "bytes":
            return _places(each == _BYTES for each in values)
        case "raw":
            return _places(bytes(each) in _QUOTED for each in values)
        case "list":
            return _places(each in _LISTS for each in values)
        case "dict" if isinstance(type_, logical.Map):
            return _places(each in _MAPS for each in values)
        case "dict" if isinstance(type_, logical.Binary):
            return _places(map(_is_far_place, values))
        case _:
            return np.empty(0, np.int64)


def _is_far_place(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return value.get("wkb") in (*_PLACES, *_PLACE_TEXTS) or all(map(_is_far, map(value.get, "xy")))


def _is_far(number: Any) -> bool:
    return number == _FAR or (isinstance(number, NumberText) and float(number) == _FAR)


def unsent_in_arrow(values: pa.Array) -> Indices:
    """The places of values of Arrow that were not sent."""
    type_ = values.type
    if is_text(type_) or is_bytes(type_):
        markers = pa.array([text.encode() for text in _TEXTS], pa.binary())
        marked = pc.is_in(values.cast(pa.binary()), value_set=markers)
        return np.flatnonzero(np.asarray(marked))
    if not (pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_map(type_)):
        return np.empty(0, np.int64)
    lengths = np.diff(np.asarray(values.offsets))
    likely = np.flatnonzero(np.isin(lengths, _LENGTHS))
    known = _MAPS if pa.types.is_map(type_) else _LISTS
    chosen = values.take(pa.array(likely)).to_pylist()
    return likely[_places(each in known for each in chosen)]


def _places(marked: Any) -> Indices:
    return np.flatnonzero(np.fromiter(marked, bool))


def _texts(values: Sequence[Any]) -> pa.Array:
    """Text without what no UTF-8 has, which is refused when it is converted."""
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array(
            [None if each is None else each.encode("utf-8", "replace") for each in values],
            pa.binary(),
        ).cast(pa.string())
