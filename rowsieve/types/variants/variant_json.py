"""Decodes columns of Parquet Variants to JSON text: plain, and shredded into typed columns.

A Variant is a struct of `metadata` and `value`, both bytes. A shredded one has `typed_value` in
addition to `value`, or instead of it. Keys of objects are sorted by their bytes. Numbers keep all
of their digits; other scalars become text as in `rowsieve.types.variants.variant_texts`.

Soundness: bytes that are not a Variant, and shredded columns that contradict each other, are a
ValueError, never another value. Source: VariantEncoding.md and VariantShredding.md of Parquet.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.types.variants.json_trees import MAX_TEXT, TooLong, written
from rowsieve.types.variants.variant_nodes import (
    NO_KEY,
    ROOT,
    Bytes,
    Ints,
    NodePlaces,
    Nodes,
    byte_ranges,
    decode_keys,
    decode_values,
)
from rowsieve.types.variants.variant_texts import TEXT, holds

EXTENSIONS: Final = (b"arrow.parquet.variant", b"parquet.variant")
"""Names of the Arrow extension type."""
_METADATA, _VALUE, _TYPED = "metadata", "value", "typed_value"
_BATCH_BYTES: Final = 2**20  # more only takes more memory

Mask = npt.NDArray[np.bool_]


def is_variant(type_: pa.DataType) -> bool:
    """Return whether it is the struct of a Variant, shredded or not, in any layout of its bytes."""
    if not pa.types.is_struct(type_):
        return False
    members = {field.name: field.type for field in type_}
    if len(members) < len(type_) or not _is_bytes(members.pop(_METADATA, pa.null())):
        return False
    return bool(members) and _is_shredded(members)


def is_marked_by_spark(type_: pa.DataType) -> bool:
    """Return whether it is a Variant as Spark exports it to Arrow, marked on its `metadata`."""
    if not is_variant(type_):
        return False
    marks = type_.field(type_.get_field_index(_METADATA)).metadata or {}
    return bool(marks.get(b"variant") == b"true")


def may_have_variant(type_: pa.DataType) -> bool:
    """Return whether a struct with a member `metadata` is in this type, or is it."""
    if pa.types.is_struct(type_) and _is_bytes(_type_of(type_, _METADATA)):
        return True
    if isinstance(type_, pa.BaseExtensionType):
        return may_have_variant(type_.storage_type)
    return any(may_have_variant(type_.field(i).type) for i in range(type_.num_fields))


def _type_of(type_: pa.DataType, name: str) -> pa.DataType:
    place = type_.get_field_index(name)
    return type_.field(place).type if place >= 0 else pa.null()


def _is_shredded(members: dict[str, pa.DataType]) -> bool:
    """Return whether these are `value`, `typed_value` or both."""
    if not members or members.keys() - {_VALUE, _TYPED}:
        return False
    if _VALUE in members and not _is_bytes(members[_VALUE]):
        return False
    return _TYPED not in members or _is_typed(members[_TYPED])


def _is_typed(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    if pa.types.is_struct(type_):
        return bool(len(type_)) and all(_is_group(field.type) for field in type_)
    if _is_list(type_):
        return _is_group(type_.value_type)
    return holds(type_)


def _is_group(type_: pa.DataType) -> bool:
    if not pa.types.is_struct(type_):
        return False
    members = {field.name: field.type for field in type_}
    return len(members) == len(type_) and _is_shredded(members)


def json_of_variants(values: pa.StructArray) -> pa.Array:
    """Return the JSON texts of a column of Variants; a NULL struct is NULL, JSON null is text.

    ValueError for bytes that are not Variants, and if the texts are longer than an array can be.
    """
    if not len(values):
        return pa.array([], pa.string())
    if (taken := _without_views(values.type)) != values.type:  # Arrow takes no rows of views
        values = values.cast(taken)
    step = max(1, int(len(values) * min(1.0, _BATCH_BYTES / max(values.nbytes, 1))))
    try:
        pieces = [
            piece
            for first in range(0, len(values), step)
            for piece in _decoded(values.slice(first, step))
        ]
    except ValueError as error:
        raise ValueError(f"a Variant cannot be decoded: {error}") from error
    if sum(piece.nbytes for piece in pieces) > MAX_TEXT:
        raise ValueError("its texts are longer than 2 GiB; read fewer rows at once")
    return pa.concat_arrays(pieces).cast(pa.string())


def _decoded(values: pa.StructArray) -> list[pa.Array]:
    """The texts of a slice; it is halved if they do not fit into an array."""
    there = _valid(values, len(values))
    if not there.any():
        return [pa.nulls(len(values), TEXT)]
    try:
        texts = _texts(values if there.all() else values.filter(pa.array(there)))
    except TooLong:
        if len(values) == 1:
            raise
        half = len(values) // 2
        return [*_decoded(values.slice(0, half)), *_decoded(values.slice(half))]
    if there.all():
        return [texts]
    places = np.cumsum(there) - 1
    return [texts.take(pa.array(places, mask=~there))]


def _texts(values: pa.StructArray) -> pa.Array:
    """The JSON texts of Variants, none of them NULL."""
    metadata = _member(values, _METADATA).cast(pa.large_binary())
    if metadata.null_count:
        raise ValueError("it has no metadata")
    encoded = metadata.dictionary_encode()
    nodes = Nodes()
    firsts, counts = decode_keys(encoded.dictionary, nodes)
    kind = encoded.indices.to_numpy()
    rows = len(values)
    roots = nodes.add(np.full(rows, ROOT), np.full(rows, NO_KEY), np.zeros(rows, np.int64), depth=0)
    shredded = _Shredded(nodes, firsts[kind], counts[kind])
    shredded.add(values, roots, np.arange(rows), 0)
    decode_values(shredded.data(), shredded.waiting, nodes)
    return written(nodes, rows)


class _Shredded:
    """Adds the typed columns of shredded Variants as nodes, and gathers their binary values."""

    def __init__(self, nodes: Nodes, keys: Ints, key_counts: Ints) -> None:
        self.nodes = nodes
        self.waiting: list[tuple[int, NodePlaces]] = []
        self._keys = keys
        self._key_counts = key_counts
        self._data: list[Bytes] = []
        self._size = 0

    def data(self) -> Bytes:
        """The bytes of all binary values."""
        return np.concatenate(self._data) if self._data else np.zeros(64, np.uint8)

    def add(self, group: pa.StructArray, node: Ints, row: Ints, depth: int) -> None:
        """Decode `value` and `typed_value` into existing nodes of these rows, at a depth."""
        value, typed = _optional(group, _VALUE), _optional(group, _TYPED)
        has_value, has_typed = _valid(value, len(group)), _valid(typed, len(group))
        merged = has_value & has_typed
        if typed is not None and has_typed.any():
            is_object = pa.types.is_struct(typed.type)
            if merged.any() and not is_object:
                raise ValueError("it has both a binary and a typed value")
            chosen = np.flatnonzero(has_typed)
            self._add_typed(typed.take(pa.array(chosen)), node[chosen], row[chosen], depth)
        if value is not None and has_value.any():
            chosen = np.flatnonzero(has_value)
            self._add_binary(
                value.take(pa.array(chosen)), node[chosen], row[chosen], merged[chosen], depth
            )
        nothing = np.flatnonzero(~has_value & ~has_typed)
        if len(nothing):  # by the specification, a missing value is null
            self.nodes.set_texts(node[nothing], pa.array(["null"] * len(nothing), TEXT))

    def _add_binary(
        self, values: pa.Array, node: Ints, row: Ints, merged: Mask, depth: int
    ) -> None:
        data, start, stop = byte_ranges(values.cast(pa.large_binary()))
        start, stop = start + self._size, stop + self._size
        self._data.append(data)
        self._size += len(data)
        places = NodePlaces(node, start, stop, self._keys[row], self._key_counts[row], merged)
        self.waiting.append((depth, places))

    def _add_typed(self, typed: pa.Array, node: Ints, row: Ints, depth: int) -> None:
        if isinstance(typed.type, pa.BaseExtensionType):
            typed = typed.storage
        if pa.types.is_struct(typed.type):
            self.nodes.objects.append(node)
            first = self.nodes.add_keys(pa.array([field.name for field in typed.type], TEXT))
            for number, field in enumerate(typed.type):
                group = _member(typed, field.name)
                there = _valid(_optional(group, _VALUE), len(group))
                there |= _valid(_optional(group, _TYPED), len(group))
                chosen = np.flatnonzero(there)
                key = np.full(len(chosen), first + number)
                self._add_members(group, node, row, chosen, key, depth)
        elif _is_list(typed.type):
            self.nodes.arrays.append(node)
            counts = pc.list_value_length(typed).to_numpy().astype(np.int64)
            owner = np.repeat(np.arange(len(typed)), counts)
            nth = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
            inner = self.nodes.add(node[owner], np.full(len(owner), NO_KEY), nth, depth + 1)
            self.add(typed.flatten(), inner, row[owner], depth + 1)
        else:
            self.nodes.set_scalars(node, typed)

    def _add_members(
        self, group: pa.StructArray, node: Ints, row: Ints, chosen: Ints, key: Ints, depth: int
    ) -> None:
        if len(chosen):
            place = np.zeros(len(chosen), np.int64)
            inner = self.nodes.add(node[chosen], key, place, depth + 1)
            self.add(group.take(pa.array(chosen)), inner, row[chosen], depth + 1)


def _optional(group: pa.StructArray, name: str) -> pa.Array | None:
    return _member(group, name) if group.type.get_field_index(name) >= 0 else None


def _member(group: pa.StructArray, name: str) -> pa.Array:
    """The member, NULL where the struct is."""
    member = pc.struct_field(group, [group.type.get_field_index(name)])
    return member.dictionary_decode() if pa.types.is_dictionary(member.type) else member


def _without_views(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_binary_view(type_):
        return pa.large_binary()
    if pa.types.is_string_view(type_):
        return pa.large_string()
    if pa.types.is_struct(type_):
        return pa.struct([each.with_type(_without_views(each.type)) for each in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_without_views(type_.value_type)))
    if pa.types.is_large_list(type_):
        return pa.large_list(type_.value_field.with_type(_without_views(type_.value_type)))
    return type_


def _valid(values: pa.Array | None, count: int) -> Mask:
    if values is None:
        return np.zeros(count, np.bool_)
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(type_) or types.is_large_binary(type_) or types.is_binary_view(type_)
    )
