"""Constructs that PostgreSQL interprets differently, as its server showed on awkward data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.differences.engine_difference import Difference, Direction, Kind
from rowsieve.bridges.differences.quotients import is_short_quotient
from rowsieve.predicate import ir
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import Decimal, Float, Struct

_CHOICES = frozenset({"coalesce", "nullif", "greatest", "least"})
_REAL = Float(32)


def _divides_decimals(node: ir.Call) -> bool:
    return isinstance(type_of(node), Decimal) and not is_short_quotient(node)


def _tests_struct(node: ir.IsNull) -> bool:
    return isinstance(type_of(node.operand), Struct)


def _has_no_format(node: ir.Call) -> bool:
    return value_of(node.arguments[1]) == ""


def _counts_by_rows(node: ir.Call) -> bool:
    return not isinstance(node.arguments[1], ir.Literal)


def fits_real(value: object) -> bool:
    """Whether a float32 holds the number itself."""
    if value is None:
        return True
    with np.errstate(over="ignore"):
        return float(np.float32(float(str(value)))) == value or value != value  # noqa: PLR0124 - NaN


def _narrows_choice(node: ir.Call | ir.Case) -> bool:
    """A choice between float32 and other numbers: float32 in PostgreSQL, float64 here."""
    return _mixes_real([_uncast(item) for item in _chosen(node)])


def _chosen(node: ir.Call | ir.Case) -> tuple[ir.Operand, ...]:
    """Return the arguments of a call, or the results of a CASE."""
    if isinstance(node, ir.Case):
        return *(then for _, then in node.branches), node.otherwise
    return node.arguments


def _uncast(item: ir.Operand) -> ir.Operand:
    return item.operand if isinstance(item, ir.Cast) and item.type == Float(64) else item


def _mixes_real(items: list[ir.Operand]) -> bool:
    types = [type_of(item) for item in items]
    if _REAL not in types:
        return False  # there may be no number among them
    others = [item for item, type_ in zip(items, types, strict=True) if type_ != _REAL]
    return not all(isinstance(item, ir.Literal) and fits_real(item.value) for item in others)


def _narrows_list(node: ir.InList) -> bool:
    """A list compared with a float32, which PostgreSQL converts to float32."""
    if len(node.values) < 2:
        return False
    if type_of(_uncast(node.operand)) != _REAL or pa.types.is_float32(node.values.array.type):
        return False
    return not all(fits_real(value) for value in node.values.array.to_pylist())


_BOTH = Direction.READS | Direction.WRITES


def _read(
    reason: str,
    example: str,
    on: Iterable[Kind],
    finds: Callable[[Any], bool],
    direction: Direction = Direction.READS,
    remedy: str = "",
) -> Difference:
    return Difference("postgres", direction, frozenset(on), finds, reason, remedy, example)


ROWS = (
    _read(
        "rounds quotients of decimals whose places are unknown here to other digits",
        "coalesce(d, i32) / i32 = -0.1428571",
        ["divide"],
        _divides_decimals,
        Direction.ANSWERS,
        "multiply instead, or cast one side to double precision",
    ),
    _read(
        "changes the case of letters by the locale of its database",
        "upper(s) = 'STRAßE'",
        ["upper", "lower", ir.Like],
        lambda node: not isinstance(node, ir.Like) or node.ignore_case,
    ),
    _read(
        "classifies letters and their cases by the locale of its database",
        r"s ~ '^\w+$'",
        ["regex_matches"],
        lambda node: len(node.arguments) == 3,
    ),
    _read(
        "gives NULL for an empty format",
        "to_char(ts, '') = ''",
        ["format_time"],
        _has_no_format,
        Direction.ANSWERS,
    ),
    _read("treats a struct of NULLs as NULL", "pair IS NULL", [ir.IsNull], _tests_struct, _BOTH),
    _read(
        "cannot negate the smallest count",
        "right(s, i32) = ''",
        ["right"],
        _counts_by_rows,
        Direction.ANSWERS,
        "write a constant, or substr",
    ),
    _read(
        "converts a number that is combined with a float32 to float32",
        "greatest(f32, i32) = 2147483647",
        [*_CHOICES, ir.Case],
        _narrows_choice,
        Direction.ANSWERS,
        "cast all of them to double precision",
    ),
    _read(
        "converts the items of a list compared with a float32",
        "f32 IN (0.1, 1.5)",
        [ir.InList],
        _narrows_list,
        Direction.ANSWERS,
        "cast all of them to double precision",
    ),
)
