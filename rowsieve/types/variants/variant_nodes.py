"""Decodes the binary values of Variants, all of them at once, into the nodes of trees.

The layout follows Parquet's specification of Variant, version 1: `metadata` has the keys of
objects, `value` has the values. Values are decoded level by level: all that lie at one depth, of
all rows, in one pass over numpy arrays.

Soundness: every length and offset is checked before it is followed; bytes that are not a Variant
are a ValueError. The number of nodes is at most the number of bytes, so values that share bytes
cannot grow without bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.types.variants.variant_texts import TEXT, json_texts

DEEPEST: Final = 1_000
"""Levels of a value, as in Spark."""
NO_KEY: Final = -1
ROOT: Final = -1
_PAD: Final = 32  # zeros after the bytes, so that no gather reads past their end
_PRIMITIVE, _SHORT_STRING, _OBJECT, _ARRAY = range(4)

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(slots=True)
class NodePlaces:
    """Positions of nodes, (n,) each. `node`: the number of each; `key`: `Nodes.keys`, or `NO_KEY`.

    `start` and `stop` bound the bytes of a value; `keys` and `key_count` are those of its metadata.
    `merged`: whether it holds the remaining fields of an object whose other fields are known.
    """

    node: Ints
    start: Ints
    stop: Ints
    keys: Ints
    key_count: Ints
    merged: npt.NDArray[np.bool_]

    def at(self, chosen: Any) -> NodePlaces:
        """The chosen ones."""
        return NodePlaces(
            self.node[chosen],
            self.start[chosen],
            self.stop[chosen],
            self.keys[chosen],
            self.key_count[chosen],
            self.merged[chosen],
        )


@dataclass(slots=True)
class Nodes:
    """Nodes of JSON trees, by number: the parent, the key and the position in it, the depth.

    `objects` and `arrays`: the numbers of these nodes. `scalars` and `texts`: the numbers of all
    other nodes, and their JSON texts. `keys`: texts of keys, which may repeat.
    """

    count: int = 0
    parent: list[Ints] = field(default_factory=list)
    key: list[Ints] = field(default_factory=list)
    place: list[Ints] = field(default_factory=list)
    depth: list[Ints] = field(default_factory=list)
    objects: list[Ints] = field(default_factory=list)
    arrays: list[Ints] = field(default_factory=list)
    scalars: list[Ints] = field(default_factory=list)
    texts: list[pa.Array] = field(default_factory=list)
    keys: list[pa.Array] = field(default_factory=list)
    key_count: int = 0

    def add(self, parent: Ints, key: Ints, place: Ints, depth: int) -> Ints:
        """Add nodes; return their numbers."""
        numbers = np.arange(self.count, self.count + len(parent), dtype=np.int64)
        self.count += len(parent)
        self.parent.append(parent)
        self.key.append(key)
        self.place.append(place)
        self.depth.append(np.full(len(parent), depth, np.int64))
        return numbers

    def add_keys(self, texts: pa.Array) -> int:
        """Add keys and return the number of the first."""
        first = self.key_count
        self.keys.append(texts)
        self.key_count += len(texts)
        return first

    def set_scalars(self, nodes: Ints, values: pa.Array) -> None:
        """Make scalars of these nodes."""
        if len(nodes):
            self.set_texts(nodes, json_texts(values))

    def set_texts(self, nodes: Ints, texts: pa.Array) -> None:
        """Make scalars of these nodes, whose JSON texts are known."""
        self.scalars.append(nodes)
        self.texts.append(texts)


def decode_keys(metadata: pa.Array, nodes: Nodes) -> tuple[Ints, Ints]:
    """Add the keys of each metadata; return the number of its first key and their count."""
    data, starts, stops = byte_ranges(metadata)
    head = data[np.minimum(starts, len(data) - 1)].astype(np.int64)
    _check((stops > starts) & ((head & 15) == 1), "its metadata is not of version 1")
    width = (head >> 6) + 1
    count = little_endian(data, starts + 1, width)
    bytes_at = starts + 1 + width * (count + 2)
    _check(bytes_at <= stops, "its metadata is cut off")
    firsts = np.cumsum(count) - count
    owner = np.repeat(np.arange(len(starts)), count)
    nth = np.arange(len(owner)) - firsts[owner]
    at = starts[owner] + 1 + width[owner] * (nth + 1)
    begin = little_endian(data, at, width[owner]) + bytes_at[owner]
    end = little_endian(data, at + width[owner], width[owner]) + bytes_at[owner]
    _check((begin <= end) & (end <= stops[owner]), "a key of its metadata lies outside of it")
    base = nodes.add_keys(_slices(data, begin, end).cast(TEXT))
    return firsts + base, count


def byte_ranges(values: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """The bytes of a large binary array, padded, and where each value starts and stops."""
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset :][: len(values) + 1]
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    data = np.zeros(last - first + _PAD, np.uint8)
    buffer = values.buffers()[2]
    if buffer is not None:
        data[: last - first] = np.frombuffer(buffer, np.uint8)[first:last]
    return data, offsets[:-1] - first, offsets[1:] - first


def decode_values(data: Bytes, waiting: list[tuple[int, NodePlaces]], nodes: Nodes) -> None:
    """Decode all values: places whose nodes exist already, each with the depth of its nodes."""
    by_depth: dict[int, list[NodePlaces]] = {}
    for depth, places in waiting:
        by_depth.setdefault(depth, []).append(places)
    most, depth = nodes.count + len(data), 0
    while by_depth:
        for places in by_depth.pop(depth, []):
            for inner in _decode_level(data, places, depth, nodes):
                by_depth.setdefault(depth + 1, []).append(inner)
            if nodes.count > most:
                raise ValueError("its values overlap")
        depth += 1
        if depth > DEEPEST and by_depth:
            raise ValueError(f"it has more than {DEEPEST} levels")


def _decode_level(
    data: Bytes, places: NodePlaces, depth: int, nodes: Nodes
) -> Iterator[NodePlaces]:
    """Decode values of one depth, and yield where their members lie."""
    _check(places.start < places.stop, "a value lies outside of it")
    head = data[places.start]
    kind, header = head & 3, (head >> 2).astype(np.int64)
    _check(~places.merged | (kind == _OBJECT), "what is left of an object is not an object")
    if (chosen := np.flatnonzero(kind == _SHORT_STRING)).size:
        start = places.start[chosen] + 1
        _add_strings(data, places.at(chosen), start, start + header[chosen], nodes)
    if (chosen := np.flatnonzero(kind == _PRIMITIVE)).size:
        _add_primitives(data, places.at(chosen), header[chosen], nodes)
    for wanted in (_OBJECT, _ARRAY):
        if (chosen := np.flatnonzero(kind == wanted)).size:
            inner = _members(data, places.at(chosen), header[chosen], depth, nodes, wanted)
            if len(inner.node):
                yield inner


def _members(
    data: Bytes, places: NodePlaces, header: Ints, depth: int, nodes: Nodes, kind: int
) -> NodePlaces:
    """Add the members of objects or arrays as nodes, and return where they lie."""
    is_object = kind == _OBJECT
    member_nodes = places.node[~places.merged]
    (nodes.objects if is_object else nodes.arrays).append(member_nodes)
    large = (header >> (4 if is_object else 2)) & 1
    width = (header & 3) + 1
    id_width = ((header >> 2) & 3) + 1 if is_object else np.zeros_like(width)
    counted = np.where(large, 4, 1)
    _check(places.start + 1 + counted <= places.stop, "it is cut off")
    count = little_endian(data, places.start + 1, counted)
    ids = places.start + 1 + counted
    offsets = ids + count * id_width
    values = offsets + (count + 1) * width
    _check(values <= places.stop, "it is cut off")
    end = values + little_endian(data, offsets + count * width, width)
    _check(end <= places.stop, "a value lies outside of it")
    owner = np.repeat(np.arange(len(count)), count)
    nth = np.arange(len(owner)) - (np.cumsum(count) - count)[owner]
    start = values[owner] + little_endian(data, offsets[owner] + nth * width[owner], width[owner])
    key = np.full(len(owner), NO_KEY, np.int64)
    if is_object:
        id_ = little_endian(data, ids[owner] + nth * id_width[owner], id_width[owner])
        _check(id_ < places.key_count[owner], "a key is not in its metadata")
        key = places.keys[owner] + id_
    node = nodes.add(places.node[owner], key, nth, depth + 1)
    merged = np.zeros(len(owner), np.bool_)
    return NodePlaces(node, start, end[owner], places.keys[owner], places.key_count[owner], merged)


_NULL, _TRUE, _FALSE = 0, 1, 2
_DECIMALS: Final = {8: 4, 9: 8, 10: 16}  # bytes of the unscaled number
_BINARY, _STRING = 15, 16
_UUID: Final = 20
_INTEGERS: Final = {3: "<i1", 4: "<i2", 5: "<i4", 6: "<i8"}
_FIXED: Final[dict[int, tuple[str, pa.DataType]]] = {
    7: ("<f8", pa.float64()),
    11: ("<i4", pa.date32()),
    12: ("<i8", pa.timestamp("us", "UTC")),
    13: ("<i8", pa.timestamp("us")),
    14: ("<f4", pa.float32()),
    17: ("<i8", pa.time64("us")),
    18: ("<i8", pa.timestamp("ns", "UTC")),
    19: ("<i8", pa.timestamp("ns")),
}
_WORDS: Final = ("null", "true", "false")


def _add_primitives(data: Bytes, places: NodePlaces, type_: Ints, nodes: Nodes) -> None:
    _check(type_ <= _UUID, "it has a type that this version does not know")
    for code in np.flatnonzero(np.bincount(type_)).tolist():
        mine = places.at(type_ == code)
        if code <= _FALSE:
            nodes.set_texts(mine.node, pa.repeat(pa.scalar(_WORDS[code], TEXT), len(mine.node)))
        elif code in _INTEGERS:
            numbers = _fixed(data, mine, np.dtype(_INTEGERS[code]))
            nodes.set_scalars(mine.node, pa.array(numbers.astype(np.int64)))
        elif code in _FIXED:
            form, arrow = _FIXED[code]
            nodes.set_scalars(mine.node, pa.array(_fixed(data, mine, np.dtype(form))).view(arrow))
        elif code in _DECIMALS:
            _add_decimals(data, mine, _DECIMALS[code], nodes)
        elif code == _UUID:
            raw = pa.py_buffer(_fixed(data, mine, np.dtype("V16")).tobytes())
            uuids = pa.Array.from_buffers(pa.binary(16), len(mine.node), [None, raw])
            nodes.set_scalars(mine.node, uuids)
        else:
            _check(mine.start + 5 <= mine.stop, "it is cut off")
            start = mine.start + 5
            stop = start + little_endian(data, mine.start + 1, np.full(len(start), 4))
            if code == _STRING:
                _add_strings(data, mine, start, stop, nodes)
            else:
                _check(stop <= mine.stop, "it is cut off")
                nodes.set_scalars(mine.node, _slices(data, start, stop))


def _add_strings(data: Bytes, places: NodePlaces, start: Ints, stop: Ints, nodes: Nodes) -> None:
    _check(stop <= places.stop, "it is cut off")
    nodes.set_scalars(places.node, _slices(data, start, stop).cast(TEXT))  # checks UTF-8


def _add_decimals(data: Bytes, places: NodePlaces, width: int, nodes: Nodes) -> None:
    _check(places.start + 2 + width <= places.stop, "it is cut off")
    scale = data[places.start + 1]
    unscaled = _gathered(data, places.start + 2, width)
    sign = np.where(unscaled[:, -1:] > 127, 255, 0).astype(np.uint8)
    whole = np.concatenate([unscaled, np.repeat(sign, 16 - width, axis=1)], axis=1)
    for each in np.flatnonzero(np.bincount(scale)).tolist():
        if each > 38:
            raise ValueError(f"a decimal of it has the scale {each}, and at most 38 is valid")
        chosen = scale == each
        numbers = pa.Array.from_buffers(
            pa.decimal128(38, each),
            int(chosen.sum()),
            [None, pa.py_buffer(whole[chosen].tobytes())],
        )
        nodes.set_scalars(places.node[chosen], numbers)


def _fixed(data: Bytes, places: NodePlaces, form: np.dtype[Any]) -> npt.NDArray[Any]:
    """The numbers after the first byte of each value."""
    _check(places.start + 1 + form.itemsize <= places.stop, "it is cut off")
    return _gathered(data, places.start + 1, form.itemsize).view(form).reshape(-1)


def _gathered(data: Bytes, at: Ints, width: int) -> Bytes:
    """(n, width) the bytes from each place on."""
    return np.ascontiguousarray(data[at[:, None] + np.arange(width)])


def little_endian(data: Bytes, at: Ints, width: Ints) -> Ints:
    """Read unsigned numbers of 1 to 4 bytes; those that lie outside of the data read its end."""
    numbers = np.zeros(len(at), np.int64)
    last = len(data) - 1
    for byte in range(int(width.max(initial=0))):
        read = data[np.minimum(at + byte, last)].astype(np.int64)
        numbers |= np.where(width > byte, read, 0) << (8 * byte)
    return numbers


def _slices(data: Bytes, start: Ints, stop: Ints) -> pa.Array:
    """Bytes from start to stop, as large binary values."""
    order = np.argsort(start, kind="stable")
    bounds = np.stack([start[order], stop[order]], axis=-1).reshape(-1)
    _check(bounds[1:] >= bounds[:-1], "its values overlap")
    if not len(bounds):
        return pa.array([], pa.large_binary())
    between = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order)) * 2
    return between.take(pa.array(places))


def _check(fine: npt.NDArray[np.bool_], problem: str) -> None:
    if not fine.all():
        raise ValueError(problem)
