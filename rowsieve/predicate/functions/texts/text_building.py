"""Text from text and constants: repeated, padded, split, joined and translated.

Counts, pads, delimiters and characters are constants. Unusual ones (an empty pad, part 0 of a
split), on which engines disagree, are rejected. A function that keeps the start of a text keeps its
prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, filled, null_mask, without
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Range,
    Signature,
    never_fails,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.interpretation.prefixes import above_prefix, common_prefix
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int, String

_LONGEST = 10_000
_FARTHEST = 2**31 - 2


def _is_text(argument: Argument) -> bool:
    return argument.type is None or isinstance(argument.type, String)


def _whole(argument: Argument) -> int | None:
    """Return the integer constant; None if the argument is not one."""
    return argument.constant if type(argument.constant) is int else None


def _text(argument: Argument) -> str | None:
    return argument.constant if isinstance(argument.constant, str) else None


def _resolve_repeat(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not _is_text(arguments[0]):
        return None
    count = _whole(arguments[1])
    if count is None or count > _LONGEST:
        return None
    return Signature((String(), Int(64)), String(), str(max(count, 0)))


def _resolve_pad(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) not in (2, 3) or not _is_text(arguments[0]):
        return None
    length = _whole(arguments[1])
    pad = _text(arguments[2]) if len(arguments) == 3 else " "
    if length is None or length > _LONGEST or not pad:
        return None
    types = (String(), Int(64), String())[: len(arguments)]
    return Signature(types, String(), f"{max(length, 0)} {pad}")


def _resolve_split(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 3 or not _is_text(arguments[0]):
        return None
    place = _whole(arguments[2])
    if not _text(arguments[1]) or not place or abs(place) >= 2**31:
        return None
    return Signature((String(), String(), Int(64)), String(), str(place))


def _resolve_index(arguments: Sequence[Argument]) -> Signature | None:
    """Resolve like a split, with any count; an empty delimiter is rejected."""
    if len(arguments) != 3 or not _is_text(arguments[0]) or not _text(arguments[1]):
        return None
    count = _whole(arguments[2])
    if count is None or abs(count) >= 2**31:
        return None
    return Signature((String(), String(), Int(64)), String(), str(count))


def _resolve_join(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) < 2 or not all(map(_is_text, arguments)) or _text(arguments[0]) is None:
        return None
    return Signature((String(),) * len(arguments), String())


def _resolve_translate(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 3 or not all(map(_is_text, arguments)):
        return None
    old, new = _text(arguments[1]), _text(arguments[2])
    if old is None or new is None or len(set(old)) < len(old):
        return None
    return Signature((String(),) * 3, String())


def _repeat(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    return Computed(pc.binary_repeat(arguments[0], int(signature.option)))


def _padded(*, left: bool) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
        count, pad = signature.option.split(" ", 1)
        text, width = arguments[0], int(count)
        missing = np.maximum(width - filled(pc.utf8_length(text)).astype(np.int64), 0)
        longest = int(missing.max(initial=0))
        whole = pad * (longest // len(pad) + 1)
        needed, which = np.unique(missing, return_inverse=True)
        pads = pa.array([whole[:size] for size in needed.tolist()], pa.string())
        filling = pads.take(pa.array(which.reshape(-1)))
        cut = pc.utf8_slice_codeunits(text, start=0, stop=width)
        sides = (filling, cut) if left else (cut, filling)
        return Computed(pc.binary_join_element_wise(*sides, "", null_handling="emit_null"))

    return evaluate


def _split_part(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    """Return the part at a position from 1, or from the end; empty if there are fewer parts."""
    text, place = arguments[0], int(signature.option)
    delimiter = arguments[1][0].as_py() if len(text) else "-"
    parts = pc.split_pattern(text, pattern=delimiter)
    counts = filled(pc.list_value_length(parts)).astype(np.int64)
    starts = np.cumsum(counts) - counts
    wanted = place - 1 if place > 0 else counts + place
    there = (wanted >= 0) & (wanted < counts)
    indices = pa.array(np.where(there, starts + wanted, 0), mask=~there)
    pieces = pc.fill_null(parts.flatten().take(indices), "")
    return Computed(without(pieces, null_mask(text)))


def _substring_index(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    """Return the text before the n-th delimiter, or after the n-th from the end."""
    text, count = arguments[0], int(signature.option)
    if not len(text):
        return Computed(text)
    delimiter = arguments[1][0].as_py()
    parts = pc.split_pattern(text, pattern=delimiter)
    sizes = filled(pc.list_value_length(parts)).astype(np.int64)
    first = np.maximum(sizes + count, 0) if count < 0 else np.zeros_like(sizes)
    last = sizes if count < 0 else np.minimum(sizes, count)
    starts = np.cumsum(sizes) - sizes
    ends = np.concatenate([[0], np.cumsum(last - first)])
    rows = np.repeat(np.arange(len(sizes)), last - first)
    places = np.arange(ends[-1]) - ends[rows] + (starts + first)[rows]
    pieces = parts.flatten().take(pa.array(places))
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pieces)
    return Computed(without(pc.binary_join(lists, delimiter), null_mask(text)))


def _joined(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Join texts; NULLs are omitted together with their separator."""
    separators, *texts = arguments
    separator = separators[0].as_py() if len(separators) else ""
    led = [pc.fill_null(pc.binary_join_element_wise(separators, text, ""), "") for text in texts]
    whole = pc.binary_join_element_wise(*led, "")
    return Computed(pc.utf8_slice_codeunits(whole, start=len(separator)))


def _translate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Translate all texts as one array of code points, and split it again."""
    text, old, new = arguments
    if not len(text):
        return Computed(text)
    before, after = old[0].as_py(), new[0].as_py()
    nulls = null_mask(text)
    plain = pc.fill_null(text, "")
    rows = np.repeat(np.arange(len(text)), filled(pc.utf8_length(plain)))
    points = _points(plain)
    source = _codes(before)
    order = np.argsort(source)
    target = np.concatenate([_codes(after), np.full(max(len(before) - len(after), 0), -1)])
    mapped = points
    if before:
        place = np.minimum(np.searchsorted(source[order], points), len(source) - 1)
        mapped = np.where(source[order][place] == points, target[order][place], points)
    has_character = mapped >= 0
    return Computed(without(_texts(mapped[has_character], rows[has_character], len(text)), nulls))


def _codes(text: str) -> npt.NDArray[np.int64]:
    return np.array([ord(character) for character in text], dtype=np.int64)


def _points(text: pa.Array) -> npt.NDArray[np.int64]:
    """Return the code points of all texts, concatenated."""
    places = np.frombuffer(text.buffers()[1], np.int32)[text.offset :][: len(text) + 1]
    content = text.buffers()[2]
    raw = memoryview(content)[places[0] : places[-1]] if content is not None else b""
    return np.frombuffer(bytes(raw).decode().encode("utf-32-le"), np.uint32).astype(np.int64)


def _texts(points: npt.NDArray[np.int64], rows: npt.NDArray[np.int64], count: int) -> pa.Array:
    """Build texts from code points and their rows, in order."""
    widths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    sizes = np.bincount(rows, weights=widths, minlength=count).astype(np.int32)
    places = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    content = points.astype("<u4").tobytes().decode("utf-32-le").encode()
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(places), pa.py_buffer(content)]
    )


def _start_range(width: Callable[[Signature], int]) -> Any:
    """Bound by the common prefix, up to so many characters, which the result keeps."""

    def bounds(arguments: Sequence[AbstractValue], signature: Signature, _: Semantics) -> Range:
        value = arguments[0]
        shared = common_prefix(value.lower, value.upper)
        start = pc.utf8_slice_codeunits(shared, start=0, stop=width(signature))
        return Range(start, above_prefix(start))

    return bounds


def _row(usage: str, resolve: Any, evaluate: Any, **claims: Any) -> Function:
    return Function(
        usage,
        resolve,
        evaluate,
        can_fail=never_fails,
        nulls=claims.pop("nulls", NullRule.STRICT),
        **claims,
    )


ROWS = (
    _row(
        "repeat(text, constant count)",
        _resolve_repeat,
        _repeat,
        bounds=_start_range(lambda signature: _FARTHEST if int(signature.option) else 0),
    ),
    _row(
        "lpad(text, constant length [, constant pad])",
        _resolve_pad,
        _padded(left=True),
    ),
    _row(
        "rpad(text, constant length [, constant pad])",
        _resolve_pad,
        _padded(left=False),
        bounds=_start_range(lambda signature: int(signature.option.split(" ", 1)[0])),
    ),
    _row(
        "split_part(text, constant delimiter, constant place)",
        _resolve_split,
        _split_part,
    ),
    _row(
        "substring_index(text, constant delimiter, constant count)",
        _resolve_index,
        _substring_index,
    ),
    _row(
        "concat_ws(constant separator, text, …)",
        _resolve_join,
        _joined,
        nulls=NullRule.NEVER,
    ),
    _row(
        "translate(text, constant characters, constant others)",
        _resolve_translate,
        _translate,
    ),
)
