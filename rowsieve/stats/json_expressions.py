"""Derives the value of a JSON path from statistics: as JSON, as text, as a number or a boolean.

Soundness: `->>` returns the original text of a number, so a cast of it to an integer fails on
`1.0`, and a cast to a decimal fails on `1e2`. If a part may have such a number, the value is
unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate.arrays import Mask, filled, null_mask, with_nulls, without
from rowsieve.predicate.functions.numbers.decimals import narrowed
from rowsieve.predicate.interpretation.abstract import (
    AbstractColumn,
    AbstractValue,
    anything,
    from_column,
    hull_of_two,
    limited,
    nowhere,
    without_contradictions,
)
from rowsieve.predicate.ir import BoundColumn, Call, Literal, Operand
from rowsieve.stats.json_kinds import ANY_INDEX, EVERYTHING, INDICES, JsonKind, Path, path_subject
from rowsieve.stats.model import Derived, Subject
from rowsieve.stats.sound_casts import cast_soundly, widen_elsewhere
from rowsieve.types.logical import (
    Bool,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
)

_ABSENT = JsonKind.MISSING | JsonKind.NULL
_NUMBERS = JsonKind.INT | JsonKind.FLOAT
_BOOLS = JsonKind.TRUE | JsonKind.FALSE
_VALUES = _NUMBERS | _BOOLS | JsonKind.STRING | JsonKind.LIST | JsonKind.OBJECT
_LARGEST_IN_MILLIONTHS = 9e12


class Subjects(Protocol):
    """Statistics by subject, of n parts; `PartStatistics` is one."""

    part_count: int

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """The statistics of a subject in every part; None if no part has any."""

    def kinds(self, subject: Derived) -> npt.NDArray[np.int64] | None:
        """(n,) bits of `JsonKind`: what a JSON path may hold; None if no part knows."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A constant path into a JSON column; `as_text`: extracted with `->>`, not `->`."""

    field_id: int
    path: Path
    as_text: bool


def path_of(operand: Operand) -> JsonPath | None:
    """The constant JSON path that an operand extracts from a column; None for other operands."""
    if isinstance(operand, BoundColumn):
        return (
            JsonPath(operand.field_id, (), as_text=False)
            if isinstance(operand.type, Json)
            else None
        )
    if not isinstance(operand, Call) or not operand.arguments:
        return None
    function = operand.function.removesuffix("_text")
    if function not in ("json_get", "json_path"):
        return None
    outer = path_of(operand.arguments[0])
    steps = _steps(operand.arguments[1:], adaptive=function == "json_path")
    if outer is None or outer.as_text or not steps:
        return None
    as_text = operand.function.endswith("_text")
    return JsonPath(outer.field_id, (*outer.path, *steps), as_text)


def _steps(keys: tuple[Operand, ...], *, adaptive: bool) -> Path | None:
    steps: list[str | int] = []
    for key in keys:
        value = key.value if isinstance(key, Literal) else None
        if isinstance(value, bool) or not isinstance(value, str | int):
            return None
        if isinstance(value, str) and adaptive and value.lstrip("-").isdigit():
            return None  # could be an object's key or a list's index
        if isinstance(value, int) and not 0 <= value < INDICES:
            value = ANY_INDEX
        steps.append(value)
    return tuple(steps)


def value_at(path: JsonPath, statistics: Subjects) -> AbstractValue | None:
    """The result of `->` or `->>` in every part."""
    kinds = _kinds(path, statistics)
    if kinds is None:
        return None
    none = nowhere(statistics.part_count)
    if not path.as_text:
        present = _may_hold(kinds, _VALUES | JsonKind.NULL)
        return anything(Json(), present, _may_hold(kinds, JsonKind.MISSING), none)
    value = anything(String(), _may_hold(kinds, _VALUES), _may_hold(kinds, _ABSENT), none)
    strings = _of_kind(path, "string", String(), statistics)
    if strings is None:
        return value
    others = _may_hold(kinds, _VALUES & ~JsonKind.STRING)
    return replace(
        value, lower=without(strings.lower, others), upper=without(strings.upper, others)
    )


def cast_of_path(path: JsonPath, target: LogicalType, statistics: Subjects) -> AbstractValue | None:
    """The result of a cast of `->>` in every part."""
    kinds = _kinds(path, statistics) if path.as_text else None
    if kinds is None:
        return None
    none = nowhere(statistics.part_count)
    present, null = _may_hold(kinds, _VALUES), _may_hold(kinds, _ABSENT)
    match target:
        case Bool():
            lower = with_nulls(~_may_hold(kinds, JsonKind.FALSE), none, pa.bool_())
            upper = with_nulls(_may_hold(kinds, JsonKind.TRUE), none, pa.bool_())
            value = AbstractValue(target, lower, upper, present, null, none, none)
            return widen_elsewhere(value, ~_may_hold(kinds, _VALUES & ~_BOOLS))
        case Int():
            value = _whole(path, kinds, target, statistics)
            value = replace(value, present=present, null=null | value.null)
            return widen_elsewhere(value, ~_may_hold(kinds, _VALUES & ~JsonKind.INT))
        case Float() | Decimal():
            whole = _whole(path, kinds, target, statistics)
            value = hull_of_two(whole, _fractions(path, kinds, target, statistics))
            value = replace(value, present=present, null=null | value.null)
            return widen_elsewhere(value, ~_may_hold(kinds, _VALUES & ~_NUMBERS))
        case _:
            return None


def _whole(
    path: JsonPath, kinds: npt.NDArray[np.int64], target: LogicalType, statistics: Subjects
) -> AbstractValue:
    """The integers that fit into 64 bits, cast; no value where there are none."""
    occurs, none = _may_hold(kinds, JsonKind.INT), nowhere(statistics.part_count)
    value = _of_kind(path, "int", Int(), statistics) or anything(Int(), occurs, none, none)
    return cast_soundly(limited(replace(value, null=none), occurs), target)


def _fractions(
    path: JsonPath, kinds: npt.NDArray[np.int64], target: Float | Decimal, statistics: Subjects
) -> AbstractValue:
    """All other numbers, cast; no value where there are none."""
    occurs, none = _may_hold(kinds, JsonKind.FLOAT), nowhere(statistics.part_count)
    value = _of_kind(path, "float", Float(), statistics) or anything(Float(), occurs, none, none)
    value = limited(replace(value, null=none, nan=none), occurs)
    if isinstance(target, Float):
        return replace(cast_soundly(value, target), nan=none)
    lower = _as_decimal(value.lower, target, -np.inf)
    upper = _as_decimal(value.upper, target, np.inf)
    known = ~(null_mask(lower) | null_mask(upper)) & ~_may_hold(kinds, JsonKind.EXPONENT)
    result = AbstractValue(target, lower, upper, occurs, none, none, none)
    return widen_elsewhere(without_contradictions(result), known)


def _as_decimal(bound: pa.Array, target: Decimal, outward: float) -> pa.Array:
    """Round a bound outward to millionths and cast it to `target`; NULL if out of range.

    A cast to `target` rounds the numbers to its scale. Rounding is monotone, so it does not move a
    number past a bound of that scale; a coarser scale rounds the bound in the same way.
    """
    numbers = filled(bound)
    reachable = np.abs(numbers) < _LARGEST_IN_MILLIONTHS
    scaled = np.where(reachable, numbers, 0.0) * 1e6
    rounded = np.floor(scaled) - 1 if outward < 0 else np.ceil(scaled) + 1
    for _ in range(2):  # the multiplication above was rounded too
        rounded = np.nextafter(rounded, outward)
    whole = pa.array(rounded.astype(np.int64)).cast(pa.decimal128(38, 0))
    millionths = whole.view(pa.decimal128(38, 6))
    return narrowed(without(millionths, ~reachable | null_mask(bound)), target)


def _kinds(path: JsonPath, statistics: Subjects) -> npt.NDArray[np.int64] | None:
    kinds = statistics.kinds(path_subject(path.field_id, path.path)) if path.path else None
    if kinds is None:
        return None
    return np.where(kinds & JsonKind.OTHER, np.int64(EVERYTHING), kinds)


def _of_kind(
    path: JsonPath, kind: str, type_: LogicalType, statistics: Subjects
) -> AbstractValue | None:
    known = statistics.subject(path_subject(path.field_id, path.path, kind))
    if known is None:
        return None
    return from_column(BoundColumn(path.field_id, kind, type_), known, statistics.part_count)


def _may_hold(kinds: npt.NDArray[np.int64], which: JsonKind) -> Mask:
    mask: Mask = (kinds & int(which)) != 0
    return mask
