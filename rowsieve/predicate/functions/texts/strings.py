"""Text functions: case, length, parts and concatenation. Positions count code points, from 1.

Upper and lower case follow Unicode, code point by code point or with its special cases, as
`Semantics` says. They are not monotone: bounds come from the common prefix of a range only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, as_mask, filled, null_mask, without
from rowsieve.predicate.functions.row import (
    Argument,
    Direction,
    Function,
    NullRule,
    Signature,
    never_fails,
)
from rowsieve.predicate.functions.texts.text_ranges import case_range, joined_range, length_range
from rowsieve.predicate.functions.texts.young_letters import are_young, convert
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Binary, Bool, Int, List, String


def _texts(arguments: Sequence[Argument]) -> bool:
    return all(argument.type is None or isinstance(argument.type, String) for argument in arguments)


def _resolve_text(result: String | Bool | Int, count: int) -> Callable[..., Signature | None]:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if len(arguments) != count or not _texts(arguments):
            return None
        return Signature((String(),) * count, result)

    return resolve


def _resolve_length(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) == 1 and isinstance(arguments[0].type, Binary):
        return Signature((Binary(),), Int(32))
    if len(arguments) == 1 and isinstance(arguments[0].type, List):
        return Signature((arguments[0].type,), Int(32))
    return _resolve_text(Int(32), 1)(arguments)


def _resolve_substr(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) not in (2, 3) or not _texts(arguments[:1]):
        return None
    numbers = arguments[1:]
    if not all(argument.type is None or isinstance(argument.type, Int) for argument in numbers):
        return None
    start, count = (numbers[0].constant, numbers[-1].constant)
    counted = len(numbers) == 1 or (isinstance(count, int) and count >= 0)
    prefix = counted and isinstance(start, int) and start <= 1
    option = "prefix" if prefix else "counted" if counted else ""
    return Signature((String(), *(Int(64) for _ in numbers)), String(), option)


def _resolve_concat(arguments: Sequence[Argument]) -> Signature | None:
    if not arguments or not _texts(arguments):
        return None
    return Signature((String(),) * len(arguments), String())


_SHARP_S = "ß"
_ALL_PAIRS = 99  # a version of Unicode that is newer than Arrow's table


def _cased(
    kernel: Callable[[Any], Any], special: str, method: Callable[[str], str], *, upper: bool
) -> Callable[..., Computed]:
    """Convert case. `special`: letters that become several letters or depend on position."""

    def simple(text: str) -> str:
        return str(kernel(pa.scalar(text)).as_py())

    def without_capital(text: str) -> str:
        return _SHARP_S.join(map(simple, text.split(_SHARP_S)))

    def evaluate(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
        (text,) = arguments
        plain = kernel(text)
        version, keeps_sharp_s = semantics.case_version, upper and not semantics.capital_sharp_s
        if version is None and not keeps_sharp_s:
            return Computed(plain)
        if pc.all(pc.string_is_ascii(text)).as_py() is not False:
            return Computed(plain)
        odd = are_young(text)
        if semantics.full_case:
            odd |= as_mask(pc.match_substring_regex(text, special))
        elif keeps_sharp_s:
            odd |= as_mask(pc.match_substring(text, _SHARP_S))
        distinct = text.filter(pa.array(odd)).dictionary_encode()
        rest = method if semantics.full_case else without_capital if keeps_sharp_s else simple
        known = _ALL_PAIRS if version is None else version
        whole = [
            convert(each, rest, known, upper=upper) for each in distinct.dictionary.to_pylist()
        ]
        values = pa.array(whole, pa.string()).take(distinct.indices)
        return Computed(pc.replace_with_mask(plain, pa.array(odd), values))

    return evaluate


_upper = _cased(
    pc.utf8_upper,
    r"[\x{DF}\x{149}\x{1F0}\x{390}\x{3B0}\x{587}\x{1E96}-\x{1E9A}\x{1F50}-\x{1FFF}"
    r"\x{FB00}-\x{FB17}]",
    str.upper,
    upper=True,
)
_lower = _cased(pc.utf8_lower, r"[\x{130}\x{3A3}]", str.lower, upper=False)


def lower_case(text: pa.Array, semantics: Semantics) -> pa.Array:
    """Return the text in lower case, by the engine's table."""
    return _lower((text,), Signature((String(),), String()), semantics).values


def _length(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    match signature.arguments[0]:
        case String():
            kernel = pc.utf8_length
        case List():
            kernel = pc.list_value_length
        case _:
            kernel = pc.binary_length
    return Computed(kernel(arguments[0]).cast(pa.int32()))


def _starts_with(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    text, prefix = arguments
    nulls = null_mask(text) | null_mask(prefix)
    uniform = pc.unique(prefix.drop_null())
    if len(uniform) <= 1:
        pattern = uniform[0].as_py() if len(uniform) else ""
        return Computed(without(pc.starts_with(text, pattern=pattern), nulls))
    head = sliced(text, np.zeros(len(text), np.int64), filled(pc.utf8_length(prefix)))
    return Computed(without(pc.equal(head, prefix), nulls))


def _substr(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Compute `substr(text, from, count)`: positions before 1 are empty; count < 0 fails."""
    text, start = arguments[0], arguments[1]
    nulls = null_mask(text) | null_mask(start)
    limit = np.int64(2**31 - 2)
    first = np.clip(filled(start), -limit, limit) - 1
    stop = np.full(len(text), limit)
    failed = np.zeros(len(text), dtype=np.bool_)
    if len(arguments) == 3:
        nulls = nulls | null_mask(arguments[2])
        count = np.clip(filled(arguments[2]), -limit, 2 * limit)
        failed = (count < 0) & ~nulls
        stop = np.minimum(first + np.maximum(count, 0), limit)
    pieces = sliced(text, np.clip(first, 0, limit), np.clip(stop, 0, limit))
    return Computed(without(pieces, nulls | failed), failed if failed.any() else None)


def _prefix_direction(signature: Signature) -> tuple[Direction, ...]:
    """A prefix of constant length keeps the order of texts."""
    moves = Direction.INCREASING if signature.option == "prefix" else Direction.NONE
    return (moves, *(Direction.NONE for _ in signature.arguments[1:]))


def sliced(text: pa.Array, start: Any, stop: Any) -> pa.Array:
    """Return code points [start, stop) of each text; one kernel call per pair of bounds."""
    pairs, which = np.unique(np.stack([start, stop], axis=1), axis=0, return_inverse=True)
    which = which.reshape(-1)
    if len(pairs) <= 1:
        first, last = (int(bound) for bound in pairs[0]) if len(pairs) else (0, 0)
        return _slice(text, first, last)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(pairs)))
    pieces = [
        _slice(text.take(pa.array(order[begin:end])), int(pair[0]), int(pair[1]))
        for pair, begin, end in zip(pairs, [0, *ends[:-1]], ends, strict=True)
    ]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(pieces).take(pa.array(back))


def _slice(text: pa.Array, start: int, stop: int) -> pa.Array:
    return pc.utf8_slice_codeunits(text, start=start, stop=max(start, stop))


def _concat(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Concatenate; NULL counts as empty text, as in PostgreSQL; `||` is `concat_strict`."""
    parts = [pc.fill_null(part, "") for part in arguments]
    return Computed(pc.binary_join_element_wise(*parts, ""))


def _concat_strict(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    return Computed(pc.binary_join_element_wise(*arguments, "", null_handling="emit_null"))


ROWS = (
    Function(
        "lower(text)",
        _resolve_text(String(), 1),
        _lower,
        bounds=case_range(_lower),
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "upper(text)",
        _resolve_text(String(), 1),
        _upper,
        bounds=case_range(_upper),
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "length(text, bytes or list)",
        _resolve_length,
        _length,
        bounds=length_range,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "starts_with(text, prefix)",
        _resolve_text(Bool(), 2),
        _starts_with,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
    Function(
        "substr(text, from [, count])",
        _resolve_substr,
        _substr,
        direction=_prefix_direction,
        can_fail=lambda signature: not signature.option,
        nulls=NullRule.STRICT,
    ),
    Function(
        "concat(text, …)",
        _resolve_concat,
        _concat,
        bounds=joined_range(skips_nulls=True),
        can_fail=never_fails,
        nulls=NullRule.NEVER,
    ),
    Function(
        "concat_strict(text, text), which is text || text",
        _resolve_concat,
        _concat_strict,
        bounds=joined_range(skips_nulls=False),
        can_fail=never_fails,
        nulls=NullRule.STRICT,
    ),
)
