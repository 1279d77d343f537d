"""Iceberg's transforms in conditions: a comparison of a transformed column is a range of it.

`year(ts) = 50` is `ts >= 2020-01-01 AND ts < 2021-01-01`, which statistics can prove. Transforms of
times are floors, so are those that truncate numbers; truncated text is a prefix.

Soundness: every result is exact and NULL only for NULL. `bucket` is a hash that is not computed
here, so that its comparisons are rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal as Number
from typing import Any, Final

from rowsieve.bridges.iceberg_json.single_values import as_constant, typed_constant
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.comparison_op import ComparisonOp
from rowsieve.types import logical
from rowsieve.types.logical import LogicalType, type_name

_NAME: Final = re.compile(r"(\w+)(?:\[(\d+)\])?")
_WIDTHS: Final = ("truncate", "bucket")
_MONTHS: Final = {"year": 12, "month": 1}
_HOURS: Final = {"day": 24, "hour": 1}
_TRANSFORMS: Final = ("identity", *_WIDTHS, *_MONTHS, *_HOURS, "void")
_MICROS_OF_HOUR: Final = 3_600 * 10**6


@dataclass(frozen=True, slots=True)
class Term:
    """A column, or a transform of one; `name` is None for the column itself."""

    operand: ir.Operand
    path: str
    type: LogicalType
    name: str | None = None
    width: int = 0

    def compared(
        self, op: ComparisonOp, value: Any, stated_type: LogicalType | None
    ) -> ir.Predicate:
        """Compare with a JSON constant of a given type, by default that of the term."""
        if self.name is None:
            constant = self._constant(value, stated_type, self.type)
            return ir.Comparison(op, self.operand, constant)
        if self.name in ("bucket", "void"):
            raise UnsupportedOperation(
                f"{self.shown} is not compared with constants; compare the column itself"
            )
        if isinstance(self.type, logical.String):
            return self._cut_text(op, self._text(value, stated_type))
        return self._floored(op, value, stated_type)

    def starts_with(self, value: Any, stated_type: LogicalType | None) -> ir.Predicate:
        """Test for a prefix of text."""
        if not isinstance(self.type, logical.String) or self.name not in (None, "truncate"):
            raise InvalidPredicate(f"starts-with takes text, not {self.shown}")
        prefix = self._text(value, stated_type)
        if self.name and len(prefix) > self.width:
            return ir.FALSE
        arguments = (self.operand, ir.Literal(prefix, logical.String()))
        return ir.BooleanOperand(ir.Call("starts_with", arguments))

    @property
    def shown(self) -> str:
        """The term as a message shows it."""
        width = f"[{self.width}]" if self.name in _WIDTHS else ""
        called = f"{self.name}{width}({self.path})" if self.name else self.path
        return f"{called} of type {type_name(self.type)}"

    @staticmethod
    def _constant(value: Any, stated_type: LogicalType | None, type_: LogicalType) -> ir.Literal:
        if stated_type is None:
            return as_constant(value, type_)
        return typed_constant(value, stated_type, type_)

    def _text(self, value: Any, stated_type: LogicalType | None) -> str:
        text = self._constant(value, stated_type, logical.String()).value
        assert isinstance(text, str)
        return text

    def _cut_text(self, op: ComparisonOp, text: str) -> ir.Predicate:
        """Compare the first characters of a text, by code points as Iceberg does."""
        head = ir.Literal(text[: self.width], logical.String())
        if len(text) > self.width:  # no prefix equals it, and those up to its own are less
            upto = self._cut_text(ComparisonOp.LE, text[: self.width])
            return _chosen(op, upto, ir.FALSE)
        less: ir.Predicate = ir.Comparison(ComparisonOp.LT, self.operand, head)
        equal: ir.Predicate = ir.Comparison(ComparisonOp.EQ, self.operand, head)
        if len(text) == self.width:
            equal = ir.BooleanOperand(ir.Call("starts_with", (self.operand, head)))
        return _chosen(op, less, equal)

    def _floored(
        self, op: ComparisonOp, value: Any, stated_type: LogicalType | None
    ) -> ir.Predicate:
        """Compare a floor by the first values of the constant's step and of the next one."""
        start, stop, exact = self._steps(value, stated_type)
        less = ir.Comparison(ComparisonOp.LT, self.operand, start if exact else stop)
        equal: ir.Predicate = ir.FALSE
        if exact:
            before = ir.Comparison(ComparisonOp.LT, self.operand, stop)
            equal = ir.And((ir.Comparison(ComparisonOp.GE, self.operand, start), before))
        return _chosen(op, less, equal)

    def _steps(
        self, value: Any, stated_type: LogicalType | None
    ) -> tuple[ir.Literal, ir.Literal, bool]:
        """Return where the constant's step begins and ends; whether it is a value of the floor."""
        if self.name == "truncate":
            if isinstance(self.type, logical.Int):
                number = self._constant(value, stated_type, self.type).value
                if not isinstance(number, int):
                    raise InvalidPredicate(f"{value!r} is not a value of {self.shown}")
                start = number - number % self.width
                return ir.Literal(start), ir.Literal(start + self.width), start == number
            assert isinstance(self.type, logical.Decimal)
            exact = self._constant(value, stated_type, self.type).value
            step = Number(self.width).scaleb(-self.type.scale)
            count = (Number(exact) / step).to_integral_value("ROUND_FLOOR")  # type: ignore[arg-type]
            return ir.Literal(count * step), ir.Literal((count + 1) * step), count * step == exact
        unit = logical.Date() if self.name == "day" else logical.Int(32)
        index = self._constant(value, stated_type, unit).value
        if not isinstance(index, int):
            raise InvalidPredicate(f"{value!r} is not a value of {self.shown}")
        return self._moment(index), self._moment(index + 1), True

    def _moment(self, index: int) -> ir.Literal:
        """Return the first value of a year, month, day or hour, counted from 1970."""
        assert self.name is not None
        if self.name in _MONTHS:
            hours = _first_day(index * _MONTHS[self.name]) * 24
        else:
            hours = index * _HOURS[self.name]
        match self.type:
            case logical.Date():
                ticks, most = hours // 24, 2**31
            case logical.Timestamp():
                ticks, most = hours * _MICROS_OF_HOUR, 2**63
            case _:
                ticks, most = hours * _MICROS_OF_HOUR * 1_000, 2**63
        if not -most <= ticks < most:
            raise UnsupportedOperation(f"{self.name} {index} is beyond {type_name(self.type)}")
        return ir.Literal(ticks, self.type)


def transformed(term: Term, text: object) -> Term:
    """Apply a transform named as in a partition spec, such as `bucket[16]`."""
    match = _NAME.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[1] not in _TRANSFORMS:
        raise UnsupportedOperation(f"the transform {text!r} is unknown")
    return called(term, match[1], None if match[2] is None else int(match[2]))


def called(term: Term, name: str, width: int | None) -> Term:
    """Apply a transform by its name and width."""
    if term.name is not None:
        raise UnsupportedOperation(f"a transform of {term.shown} is not read")
    if (name in _WIDTHS) is (width is None) or width == 0:
        raise InvalidPredicate(f"the transform {name} with the width {width} is not valid")
    if name == "identity":
        return term
    transform = replace(term, name=name, width=width or 0)
    if name in _TAKES and not _TAKES[name](term.type):
        raise InvalidPredicate(f"the transform {name} does not take {term.shown}")
    return transform


def _is_time(type_: LogicalType) -> bool:
    return isinstance(type_, logical.Date | logical.Timestamp | logical.Nanos)


def _is_moment(type_: LogicalType) -> bool:
    return isinstance(type_, logical.Timestamp | logical.Nanos)


def _is_cut(type_: LogicalType) -> bool:
    return isinstance(type_, logical.Int | logical.Decimal | logical.String)


_TAKES: Final[dict[str, Callable[[LogicalType], bool]]] = {
    **dict.fromkeys(("year", "month", "day"), _is_time),
    "hour": _is_moment,
    "truncate": _is_cut,
}


def _chosen(op: ComparisonOp, less: ir.Predicate, equal: ir.Predicate) -> ir.Predicate:
    """Return a comparison, given the conditions for less and for equal."""
    upto = less if equal is ir.FALSE else ir.Or((less, equal))
    match op:
        case ComparisonOp.EQ:
            return equal
        case ComparisonOp.NE:
            return ir.TRUE if equal is ir.FALSE else ir.Not(equal)
        case ComparisonOp.LT:
            return less
        case ComparisonOp.LE:
            return upto
        case ComparisonOp.GT:
            return ir.Not(upto)
        case _:
            return ir.Not(less)


def _first_day(months: int) -> int:
    """Return the days from 1970-01-01 to the first of a month, in the proleptic calendar."""
    year, month = divmod(months, 12)
    year += 1970 - (month < 2)
    shifted = (month + 10) % 12
    era, of_era = divmod(year, 400)
    days = of_era * 365 + of_era // 4 - of_era // 100 + (153 * shifted + 2) // 5
    return era * 146_097 + days - 719_468
