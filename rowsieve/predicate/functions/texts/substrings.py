"""Substring functions: left, right, trim, replace, position, reverse, and tests for a part.

Positions and lengths count code points. In `trim`, `replace`, `position`, `contains` and
`ends_with`, all arguments but the first must be constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, filled, null_mask, without
from rowsieve.predicate.functions.row import (
    Argument,
    BoundsRule,
    Direction,
    Function,
    NullRule,
    Resolver,
    Signature,
    never_fails,
)
from rowsieve.predicate.functions.texts.strings import sliced
from rowsieve.predicate.functions.texts.text_ranges import from_zero
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Bool, Int, LogicalType, String

_Kernel: TypeAlias = Callable[..., Any]
_FARTHEST = np.int64(2**31 - 2)


def _is_text(argument: Argument) -> bool:
    return argument.type is None or isinstance(argument.type, String)


def _resolve_constants(least: int, most: int, result: LogicalType) -> Resolver:
    """Resolve text followed by constant texts."""

    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if not least <= len(arguments) <= most or not all(map(_is_text, arguments)):
            return None
        if not all(argument.is_constant for argument in arguments[1:]):
            return None
        return Signature((String(),) * len(arguments), result)

    return resolve


def _resolve_side(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not _is_text(arguments[0]):
        return None
    count = arguments[1]
    if count.type is not None and not isinstance(count.type, Int):
        return None
    counted = isinstance(count.constant, int) and count.constant >= 0
    return Signature((String(), Int(64)), String(), "prefix" if counted else "")


def _constant(values: pa.Array) -> str | None:
    """Return the constant text of an argument."""
    return values[0].as_py() if len(values) else None


def _with_constants(kernel: _Kernel) -> Callable[..., Computed]:
    """Evaluate a text with constants; a NULL constant makes every result NULL."""

    def evaluate(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
        constants = [_constant(argument) for argument in arguments[1:]]
        if None in constants:
            type_ = pa.string() if isinstance(signature.result, String) else None
            type_ = type_ or (pa.bool_() if isinstance(signature.result, Bool) else pa.int32())
            return Computed(pa.nulls(len(arguments[0]), type_))
        return Computed(kernel(arguments[0], *constants))

    return evaluate


def _replace(text: pa.Array, old: str, new: str) -> pa.Array:
    return pc.replace_substring(text, pattern=old, replacement=new) if old else text


def _trim(kernel: _Kernel) -> _Kernel:
    def trim(text: pa.Array, characters: str = " ") -> pa.Array:
        return kernel(text, characters=characters) if characters else text

    return trim


def _position(text: pa.Array, part: str) -> pa.Array:
    """Return the position of the first occurrence, from 1; 0 if there is none."""
    has_part = pc.greater_equal(pc.find_substring(text, pattern=part), 0) if part else None
    if has_part is None:
        return without(pa.array(np.ones(len(text), np.int32)), null_mask(text))
    before = pc.list_element(pc.split_pattern(text, pattern=part, max_splits=1), 0)
    place = pc.add(pc.utf8_length(before).cast(pa.int32()), pa.scalar(1, pa.int32()))
    return pc.if_else(has_part, place, pa.scalar(0, pa.int32()))


def _left(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Return the first `count` characters; all but the last ones if it is negative."""
    text, nulls, count, length = _counted(arguments)
    stop = np.where(count < 0, np.maximum(length + count, 0), count)
    return Computed(without(sliced(text, np.zeros_like(stop), stop), nulls))


def _right(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Return the last `count` characters; all but the first ones if it is negative."""
    text, nulls, count, length = _counted(arguments)
    start = np.where(count < 0, -count, np.maximum(length - count, 0))
    return Computed(without(sliced(text, start, np.full_like(start, _FARTHEST)), nulls))


def _counted(arguments: Sequence[pa.Array]) -> tuple[pa.Array, Any, Any, Any]:
    text, count = arguments
    nulls = null_mask(text) | null_mask(count)
    bounded = np.clip(filled(count), -_FARTHEST, _FARTHEST)
    return text, nulls, bounded, filled(pc.utf8_length(text)).astype(np.int64)


def _reverse(text: pa.Array) -> pa.Array:
    return pc.utf8_reverse(text)


def _first_direction(signature: Signature) -> tuple[Direction, ...]:
    """A prefix of constant length keeps the order of texts."""
    prefix = signature.option == "prefix"
    return (Direction.INCREASING if prefix else Direction.NONE, Direction.NONE)


def _row(
    usage: str,
    resolve: Resolver,
    kernel: _Kernel,
    bounds: BoundsRule | None = None,
) -> Function:
    return Function(
        usage,
        resolve,
        _with_constants(kernel),
        can_fail=never_fails,
        nulls=NullRule.STRICT,
        bounds=bounds,
    )


_TEXT = _resolve_constants(1, 2, String())

ROWS = (
    Function(
        "left(text, count)",
        _resolve_side,
        _left,
        direction=_first_direction,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "right(text, count)",
        _resolve_side,
        _right,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    _row("trim(text [, characters])", _TEXT, _trim(pc.utf8_trim)),
    _row("ltrim(text [, characters])", _TEXT, _trim(pc.utf8_ltrim)),
    _row("rtrim(text [, characters])", _TEXT, _trim(pc.utf8_rtrim)),
    _row(
        "replace(text, part, other)",
        _resolve_constants(3, 3, String()),
        _replace,
    ),
    _row(
        "position(text, part)",
        _resolve_constants(2, 2, Int(32)),
        _position,
        from_zero,
    ),
    _row(
        "reverse(text)",
        _resolve_constants(1, 1, String()),
        _reverse,
    ),
    _row(
        "ends_with(text, end)",
        _resolve_constants(2, 2, Bool()),
        lambda text, end: pc.ends_with(text, pattern=end),
    ),
    _row(
        "contains(text, part)",
        _resolve_constants(2, 2, Bool()),
        lambda text, part: pc.match_substring(text, pattern=part),
    ),
)
