"""Pack each key of a merge window into one 64-bit word, to compare keys as integers.

The keys of a window are close together: integers differ in few bits, and text shares a prefix.
`pack` removes the part that all keys share and packs the columns into one word. Words sort like
keys. They are *exact* if equal words also mean equal keys. Otherwise a word holds only the leading
64 bits, and keys with equal words must be compared again. Keys without a useful word (decimals
beyond 64 bits) are not packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.types.ordering.keys import KeyColumns

Words: TypeAlias = npt.NDArray[np.integer[Any]]
"""(n,) integers; all runs of a window have the same dtype."""

_WORD_BITS: Final = 64
_WORD_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Packed:
    """The words of each run; `exact`: equal words mean equal keys."""

    runs: tuple[Words, ...]
    exact: bool


@dataclass(frozen=True, slots=True)
class _Bits:
    """One column of each run as unsigned integers below 2**width; see `Packed` for `exact`."""

    runs: list[npt.NDArray[np.uint64]]
    width: int
    exact: bool = True


def pack(runs: Sequence[KeyColumns]) -> Packed | None:
    """Pack the keys of runs, each sorted and not empty; None if the keys have no useful words.

    For a single integer column, the values are the words, without a copy.
    """
    if len(runs[0].arrays) == 1 and pa.types.is_integer(runs[0].arrays[0].type):
        return Packed(tuple(_integers(run.arrays[0]) for run in runs), exact=True)
    packed: _Bits | None = None
    for place in range(len(runs[0].arrays)):
        room = _WORD_BITS if packed is None else _WORD_BITS - packed.width
        column = _column([run.arrays[place] for run in runs], room, ordered=place == 0)
        if column is None:
            packed = None if packed is None else _Bits(packed.runs, packed.width, exact=False)
        else:
            packed = column if packed is None else _appended(packed, column)
        if packed is None or not packed.exact:
            break
    return None if packed is None else Packed(tuple(packed.runs), packed.exact)


def _appended(left: _Bits, right: _Bits) -> _Bits:
    if left.width == 0:  # all keys are equal in the columns so far
        return right
    shift = np.uint64(right.width)
    runs = [(a << shift) | b for a, b in zip(left.runs, right.runs, strict=True)]
    return _Bits(runs, left.width + right.width, right.exact)


def _column(arrays: Sequence[pa.Array], room: int, *, ordered: bool) -> _Bits | None:
    """Pack one key column of all runs in `room` bits; `ordered`: it ascends within each run."""
    type_ = arrays[0].type
    if pa.types.is_integer(type_):
        return _integer_bits([_integers(array) for array in arrays], room, ordered=ordered)
    if pa.types.is_decimal128(type_):
        halves = [_decimal_halves(array) for array in arrays]
        if any((high != low >> 63).any() for low, high in halves):
            return None
        return _integer_bits([low for low, _ in halves], room, ordered=ordered)
    if pa.types.is_fixed_size_binary(type_) or type_ in (pa.string(), pa.binary()):
        ends = _extremes(arrays, ordered=ordered)
        return _text_bits([_Text.of(array) for array in arrays], *ends, room // 8)
    return None


def _integer_bits(runs: Sequence[Words], room: int, *, ordered: bool) -> _Bits:
    lowest = min(int(run[0] if ordered else run.min()) for run in runs)
    highest = max(int(run[-1] if ordered else run.max()) for run in runs)
    offset = np.uint64(lowest % (1 << _WORD_BITS))  # wraps, and the difference wraps back
    words = [run.astype(np.uint64) - offset for run in runs]
    width = (highest - lowest).bit_length()
    if width <= room:
        return _Bits(words, width)
    if room == 0:
        return _Bits([np.zeros(len(word), np.uint64) for word in words], 0, exact=False)
    return _Bits([word >> np.uint64(width - room) for word in words], room, exact=False)


@dataclass(frozen=True, slots=True)
class _Text:
    """Text or bytes of one run: the start of each value in `data`, and its length."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, array: pa.Array) -> _Text:
        buffers = array.buffers()
        count = len(array)
        if pa.types.is_fixed_size_binary(array.type):
            width = array.type.byte_width
            starts = (np.arange(count, dtype=np.int64) + array.offset) * width
            lengths = np.full(count, width, dtype=np.int64)
        else:
            ends = np.frombuffer(buffers[1], np.int32)[array.offset : array.offset + count + 1]
            starts = ends[:-1].astype(np.int64)
            lengths = ends[1:] - starts
        return cls(np.frombuffer(buffers[-1] or b"", np.uint8), starts, lengths)


def _text_bits(runs: Sequence[_Text], lowest: bytes, highest: bytes, room: int) -> _Bits:
    """Pack up to `room` bytes after the common prefix; the last byte holds the length if it varies.

    The length distinguishes "a" from "a" with a zero byte, which are equal after padding.
    """
    prefix = _common_prefix(lowest, highest)
    shortest = min(int(run.lengths.min()) for run in runs)
    longest = max(int(run.lengths.max()) for run in runs)
    rest = longest - prefix
    if shortest == longest:
        taken = min(rest, room)
        return _Bits([_even_bytes(run, prefix, taken) for run in runs], 8 * taken, taken == rest)
    if room == 0:
        return _Bits([np.zeros(len(run.starts), np.uint64) for run in runs], 0, exact=False)
    taken = min(rest, room - 1)
    words = [_ragged_bytes(run, prefix, taken) for run in runs]
    return _Bits(words, 8 * (taken + 1), taken == rest)


def _even_bytes(run: _Text, prefix: int, taken: int) -> npt.NDArray[np.uint64]:
    """Return bytes [prefix, prefix + taken) of contiguous values of equal length."""
    count, width = len(run.starts), int(run.lengths[0])
    start = int(run.starts[0])
    values = run.data[start : start + count * width].reshape(count, width)
    return _big_endian(values[:, prefix : prefix + taken], taken)


def _ragged_bytes(run: _Text, prefix: int, taken: int) -> npt.NDArray[np.uint64]:
    """Like `_even_bytes` with zero padding, followed by the length after the prefix.

    Lengths greater than `taken` are all stored as `taken` + 1.
    """
    rest = run.lengths - prefix
    table = np.zeros((len(run.starts), taken + 1), dtype=np.uint8)
    for place in range(taken):
        has = np.flatnonzero(rest > place)
        table[has, place] = run.data[run.starts[has] + (prefix + place)]
    table[:, taken] = np.minimum(rest, taken + 1)
    return _big_endian(table, taken + 1)


def _big_endian(values: npt.NDArray[np.uint8], width: int) -> npt.NDArray[np.uint64]:
    table = np.zeros((len(values), _WORD_BYTES), dtype=np.uint8)
    table[:, _WORD_BYTES - width :] = values
    return table.view(">u8").reshape(-1).astype(np.uint64)


def _extremes(arrays: Sequence[pa.Array], *, ordered: bool) -> tuple[bytes, bytes]:
    """Return the least and the greatest value of all runs, as bytes."""
    if ordered:
        ends = [(array[0], array[-1]) for array in arrays]
    else:
        limits = [pc.min_max(_as_binary(array)) for array in arrays]
        ends = [(both["min"], both["max"]) for both in limits]
    return (
        min(_bytes(low.as_py()) for low, _ in ends),
        max(_bytes(high.as_py()) for _, high in ends),
    )


def _common_prefix(low: bytes, high: bytes) -> int:
    """Return the length of the common prefix, which all values between them share."""
    pairs = enumerate(zip(low, high, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(low), len(high)))


def _as_binary(array: pa.Array) -> pa.Array:
    return array if pa.types.is_string(array.type) else array.cast(pa.binary())


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _integers(array: pa.Array) -> Words:
    values: Words = array.to_numpy(zero_copy_only=False)
    return values


def _decimal_halves(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    pairs = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    rows = pairs[array.offset : array.offset + len(array)]
    return rows[:, 0], rows[:, 1]
