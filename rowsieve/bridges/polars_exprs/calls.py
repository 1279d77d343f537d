"""polars' functions of values as calls of ours, by the rows of `table.FUNCTIONS`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rowsieve.bridges.functions import Use, polars
from rowsieve.bridges.polars_exprs import table
from rowsieve.bridges.polars_exprs.operands import Operands
from rowsieve.bridges.sql.regexes import Flavour, to_re2
from rowsieve.bridges.translation import Row
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import Date, Float, Int, List, String, Struct, Timestamp

_STEP = re.compile(r"(-?)((?:\d+(?:y|q|mo|w|d|h|m|s|ms|us))+)")
_STEPS = re.compile(r"(\d+)(y|q|mo|w|d|h|ms|us|m|s)")
_SPECIAL = frozenset(r"\.+*?()|[]{}^$")  # of regular expressions in Rust
_MONTHS = {"y": 12, "q": 3, "mo": 1}
_DAYS = {"w": 7, "d": 1}
_MICROS = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}
_UNITS = {spelled: unit for unit, spelled in table.UNITS.items()}


class Calls:
    """Reads one call at a time."""

    def __init__(self, operands: Operands) -> None:
        self._operands = operands

    def read(
        self, name: str, row: Row, arguments: tuple[ir.Operand, ...], options: Any
    ) -> ir.Operand:
        """The call, or `UnsupportedOperation` with the reason."""
        family = name.partition(".")[0]
        if (method := polars.BY_NODE.get(name)) is not None:
            return self._method(method, arguments)
        if family == "StringExpr":
            return self._text(name, row, arguments, options)
        if family == "TemporalExpr":
            return self._temporal(name, row, arguments)
        if family == "StructExpr":
            self._operands.expect(row.foreign, arguments[:1], Struct)
            return ir.FieldAccess(arguments[0], options)
        if family == "ListExpr":
            return self._list(row, arguments, options)
        if name == "Round":
            self._operands.expect(row.foreign, arguments, Float)
            return self._rounded(options, arguments)
        if name == "Negate":
            type_ = self._operands.expect(row.foreign, arguments, Int, Float)
            if isinstance(type_, Int) and not type_.signed:
                raise UnsupportedOperation("neg of unsigned numbers has no counterpart here")
            return ir.Call("negate", arguments)
        return ir.Call(row.ours, tuple(self._operands.aligned(row.foreign, arguments)))

    def _method(self, method: polars.Method, arguments: tuple[ir.Operand, ...]) -> ir.Operand:
        """A call by its row, which says for which arguments it is ours."""
        if method.of_module:
            arguments = tuple(self._operands.aligned(method.name, arguments))
        call = ir.Call(method.function, arguments)
        found = [self._operands.type_of(item) for item in arguments]
        known = next((type_ for type_ in found if type_ is not None), String())
        types = [type_ or (Int(64) if method.plain else known) for type_ in found]
        if not method.case.holds(Use(call, types, types[0])):
            raise UnsupportedOperation(f"{method.name} is read for {method.case.text} only")
        return call

    def _rounded(self, options: Any, arguments: tuple[ir.Operand, ...]) -> ir.Operand:
        if options != {"decimals": 0, "mode": "HalfToEven"}:
            raise UnsupportedOperation("round to digits, or of halves away from zero")
        return ir.Call("round", arguments)

    def _text(
        self, name: str, row: Row, arguments: tuple[ir.Operand, ...], options: Any
    ) -> ir.Operand:
        self._operands.expect(row.foreign, arguments[:1], String)
        match name.removeprefix("StringExpr."):
            case "Slice":
                start, count = _number(arguments[1], 0), _number(arguments[2], 0)
                if start is None:
                    raise UnsupportedOperation("slice wants a constant start of 0 or more")
                numbers = (start + 1,) if _is_null(arguments[2]) else (start + 1, count)
                if None in numbers:
                    raise UnsupportedOperation("slice wants a constant length")
                made = tuple(ir.Literal(number, Int(64)) for number in numbers)
                return ir.Call("substr", (arguments[0], *made))
            case "Contains" if not options["literal"]:
                return self._plain_pattern(arguments[0], _text_of(arguments[1]))
            case "Replace":
                return self._replaced(arguments, options)
            case "ConcatHorizontal":
                if options["delimiter"]:
                    raise UnsupportedOperation("concat_str with a separator")
                self._operands.expect(row.foreign, arguments, String)
                return ir.Call("concat" if options["ignore_nulls"] else "concat_strict", arguments)
        self._operands.expect(row.foreign, arguments, String)
        return ir.Call(row.ours, arguments)

    @staticmethod
    def _plain_pattern(text: ir.Operand, pattern: str | None) -> ir.Operand:
        """A regular expression: of plain text, perhaps bound to an end, or one that RE2 shares."""
        if pattern is None:
            raise UnsupportedOperation("contains of a pattern that is no constant")
        body = pattern.removeprefix("^")
        begins = body != pattern
        whole = body.removesuffix("$")
        ends, part = whole != body, ir.Literal(whole, String())
        if any(sign in _SPECIAL for sign in whole):
            try:
                shared = to_re2(pattern, Flavour.RUST)
            except ValueError as error:
                raise UnsupportedOperation(
                    f"contains of a regular expression, which holds {error}; give literal=True"
                ) from error
            return ir.Call("regex_matches", (text, ir.Literal(shared, String())))
        if begins and ends:
            return ir.Condition(ir.Comparison(ir.ComparisonOp.EQ, text, part))
        return ir.Call(
            "starts_with" if begins else "ends_with" if ends else "contains", (text, part)
        )

    def _replaced(self, arguments: Sequence[ir.Operand], options: Any) -> ir.Operand:
        _, old, new = arguments
        if options != {"n": -1, "literal": True} or not _text_of(old) or _text_of(new) is None:
            raise UnsupportedOperation("replace_all of constant text with literal=True only")
        return ir.Call("replace", tuple(arguments))

    def _list(self, row: Row, arguments: tuple[ir.Operand, ...], options: Any) -> ir.Operand:
        self._operands.expect(row.foreign, arguments[:1], List)
        place = _number(arguments[1], 0)
        if place is None or options is not True:
            raise UnsupportedOperation("list.get of a constant place from 0 with null_on_oob=True")
        return ir.Call(row.ours, (arguments[0], ir.Literal(place + 1, Int(64))))

    def _temporal(self, name: str, row: Row, arguments: tuple[ir.Operand, ...]) -> ir.Operand:
        kind = name.removeprefix("TemporalExpr.")
        if kind in ("Hour", "Minute", "Truncate", "Date"):
            self._operands.expect(row.foreign, arguments[:1], Timestamp)
        else:
            self._operands.expect(row.foreign, arguments[:1], Timestamp, Date)
        if kind == "Date":
            return ir.Cast(arguments[0], Date())
        if kind == "Truncate":
            unit = _UNITS.get(_text_of(arguments[1]) or "")
            if unit is None:
                raise UnsupportedOperation(f"dt.truncate to one of {', '.join(_UNITS)} only")
            return ir.Call("date_trunc", (ir.Literal(unit, String()), arguments[0]))
        if kind == "OffsetBy":
            return self._offset(arguments[0], _text_of(arguments[1]) or "")
        return ir.Call(
            "extract", (ir.Literal(row.ours.removeprefix("extract "), String()), arguments[0])
        )

    def _offset(self, moment: ir.Operand, text: str) -> ir.Operand:
        match = _STEP.fullmatch(text)
        if match is None:
            raise UnsupportedOperation(f"dt.offset_by of {text!r}")
        sign = -1 if match[1] else 1
        months = days = micros = 0
        for number, unit in _STEPS.findall(match[2]):
            months += sign * int(number) * _MONTHS.get(unit, 0)
            days += sign * int(number) * _DAYS.get(unit, 0)
            micros += sign * int(number) * _MICROS.get(unit, 0)
        is_date = isinstance(self._operands.type_of(moment), Date)
        if micros and is_date:
            raise UnsupportedOperation("dt.offset_by of a date by parts of a day")
        parts = tuple(ir.Literal(number, Int(64)) for number in (months, days, micros))
        return ir.Call("shift_timestamp" if micros else "shift", (moment, *parts))


def _number(operand: ir.Operand, least: int) -> int | None:
    value = operand.value if isinstance(operand, ir.Literal) else None
    return value if type(value) is int and least <= value < 2**31 else None


def _text_of(operand: ir.Operand) -> str | None:
    value = operand.value if isinstance(operand, ir.Literal) else None
    return value if isinstance(value, str) else None


def _is_null(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Literal) and operand.value is None
