"""Bounds of text functions, derived from the bounds of their arguments.

Texts between two bounds share their common prefix (`prefixes`). The bounds of an argument that may
be NULL still apply: they concern results whose arguments are all non-NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, repeated, without
from rowsieve.predicate.functions.row import BoundsRule, Evaluator, Range, Signature
from rowsieve.predicate.functions.texts.young_letters import are_young
from rowsieve.predicate.interpretation.abstract import AbstractValue, known
from rowsieve.predicate.interpretation.prefixes import above_prefix, common_prefix, is_ascii
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import String


def case_range(evaluate: Evaluator) -> BoundsRule:
    """Bound upper or lower case: an ASCII prefix is converted to the prefix of the result."""

    def bounds(
        arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
    ) -> Range:
        (value,) = arguments
        prefix = common_prefix(value.lower, value.upper)
        same = _same(value) & ~are_young(value.lower)
        start, whole = (
            evaluate([text], signature, semantics).values
            for text in (without(prefix, ~is_ascii(prefix)), without(value.lower, ~same))
        )
        return Range(pc.coalesce(whole, start), pc.coalesce(whole, above_prefix(start)))

    return bounds


def length_range(
    arguments: Sequence[AbstractValue], signature: Signature, _: Semantics
) -> Range | None:
    """At least the length of the common prefix of all texts."""
    (value,) = arguments
    if not isinstance(signature.arguments[0], String):
        return _from_zero(len(value.present), signature)
    same = _same(value)
    exact = pc.utf8_length(without(value.lower, ~same)).cast(pa.int32())
    least = pc.utf8_length(common_prefix(value.lower, value.upper)).cast(pa.int32())
    return Range(pc.coalesce(exact, least, pa.scalar(0, pa.int32())), exact)


def from_zero(arguments: Sequence[AbstractValue], signature: Signature, _: Semantics) -> Range:
    """Bound counts and positions from below, by 0."""
    return _from_zero(len(arguments[0].present), signature)


def _from_zero(part_count: int, signature: Signature) -> Range:
    type_ = arrow_type(signature.result)
    return Range(repeated(pa.scalar(0, type_), part_count), pa.nulls(part_count, type_))


def joined_range(*, skips_nulls: bool) -> BoundsRule:
    """Bound a concatenation: constant texts at the start, then the range of the first other.

    Text after a varying text is unknown, so only a common prefix of the varying one is kept.
    """

    def bounds(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
        part_count = len(arguments[0].present)
        head = repeated(pa.scalar(""), part_count)
        lower, upper, moved = head, head, np.zeros(part_count, dtype=np.bool_)
        for place, value in enumerate(arguments):
            low, high = _ends(value) if skips_nulls else (value.lower, value.upper)
            exact = known(ComparisonOp.EQ, low, high)
            moves = pa.array(~moved & ~exact)
            if place == len(arguments) - 1:
                stop = pc.coalesce(_joined(head, high), above_prefix(head))
            else:
                shared = pc.fill_null(common_prefix(low, high), "")
                stop = above_prefix(_joined(head, shared))
            lower = pc.if_else(moves, _joined(head, pc.fill_null(low, "")), lower)
            upper = pc.if_else(moves, stop, upper)
            head = pc.if_else(pa.array(~moved & exact), _joined(head, low), head)
            moved = moved | ~exact
        still = pa.array(~moved)
        return Range(pc.if_else(still, head, lower), pc.if_else(still, head, upper))

    return bounds


def _joined(head: pa.Array, tail: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(head, tail, "")


def _ends(value: AbstractValue) -> tuple[pa.Array, pa.Array]:
    """Return the bounds of a text that counts as empty where it is NULL."""
    low = pc.if_else(pa.array(value.null | ~value.present), "", value.lower)
    return low, pc.if_else(pa.array(value.present), value.upper, "")


def _same(value: AbstractValue) -> Mask:
    return known(ComparisonOp.EQ, value.lower, value.upper)
