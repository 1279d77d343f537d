"""Read polars' functions as our calls, by the rows of `functions.polars`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rowsieve.bridges.constant_values import text_of
from rowsieve.bridges.functions import Use, polars
from rowsieve.bridges.polars_exprs.operands import Operands
from rowsieve.bridges.sql.constructs.regexes import Flavour, to_re2
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date, Int, String, Struct, Timestamp

_STEP = re.compile(r"(-?)((?:\d+(?:y|q|mo|w|d|h|m|s|ms|us))+)")
_STEPS = re.compile(r"(\d+)(y|q|mo|w|d|h|ms|us|m|s)")
_SPECIAL = frozenset(r"\.+*?()|[]{}^$")  # of regular expressions in Rust
_PARTS: tuple[Mapping[str, int], ...] = (  # months, days, microseconds
    {"y": 12, "q": 3, "mo": 1},
    {"w": 7, "d": 1},
    {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1},
)


def read_call(
    operands: Operands, node: str, arguments: Sequence[ir.Operand], options: Any
) -> ir.Operand:
    """Read the call; `UnsupportedOperation` with the reason if impossible."""
    rows = polars.BY_NODE.get(node, ())
    for row in rows:
        if row.has_options(options) and (call := _call(operands, row, arguments)) is not None:
            return call
    if (own := _OWN.get(node)) is not None:
        return own(operands, arguments, options)
    texts = " or ".join(dict.fromkeys(row.text for row in rows))
    raise UnsupportedOperation(f"{rows[0].name} is read for {texts} only")


def _call(
    operands: Operands, row: polars.Method, arguments: Sequence[ir.Operand]
) -> ir.Operand | None:
    """Return the call of a row; None if the row's condition does not hold."""
    given = list(arguments)
    if row.aligned:
        given = operands.aligned(row.name, given)
    words = {theirs: ours for ours, theirs in row.first.items()}
    if words and (first := words.get("") or words.get(text_of(given.pop()) or "")) is None:
        return None
    if row.from_zero:
        given = _from_one(given)
    if words:
        given.insert(0, ir.Literal(first, String()))
    call = ir.Call(row.function, tuple(given))
    found = [operands.type_of(item) for item in given]
    known = next((type_ for type_ in found if type_ is not None), String())
    known = String() if row.name.startswith("str.") else known
    plain = Int(64) if row.plain else known
    types = [type_ or (plain if place else known) for place, type_ in enumerate(found)]
    shared = row.rule is None or row.rule.holds(Semantics.POLARS)
    return call if shared and row.case.holds(Use(call, types, types[0])) else None


def _from_one(given: Sequence[ir.Operand]) -> list[ir.Operand]:
    """Return arguments with constant indices counted from 1, and without a count that is NULL."""
    subject, *rest = given
    if len(rest) == 2 and isinstance(rest[1], ir.Literal) and rest[1].value is None:
        rest.pop()
    for place, item in enumerate(rest):
        if isinstance(item, ir.Literal) and type(item.value) is int:
            rest[place] = ir.Literal(item.value + (place == 0), Int(64))
    return [subject, *rest]


def _plain_pattern(operands: Operands, arguments: Sequence[ir.Operand], options: Any) -> ir.Operand:
    """Read `str.contains` of a regular expression: plain text, with anchors, or shared with RE2."""
    text, pattern = arguments[0], text_of(arguments[1])
    operands.expect("str.contains", (text,), String)
    if options["literal"] or pattern is None:
        raise UnsupportedOperation("contains of a pattern that is not a constant")
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
    name = "starts_with" if begins else "ends_with" if ends else "contains"
    return ir.Call(name, (text, part))


def _offset(operands: Operands, arguments: Sequence[ir.Operand], _: Any) -> ir.Operand:
    """Read `dt.offset_by` with a constant text."""
    moment, text = arguments[0], text_of(arguments[1]) or ""
    type_ = operands.expect("dt.offset_by", (moment,), Timestamp, Date)
    match = _STEP.fullmatch(text)
    if match is None:
        raise UnsupportedOperation(f"dt.offset_by of {text!r}")
    steps = [(int(number), unit) for number, unit in _STEPS.findall(match[2])]
    sums = [sum(number * sizes.get(unit, 0) for number, unit in steps) for sizes in _PARTS]
    if sums[-1] and isinstance(type_, Date):
        raise UnsupportedOperation("dt.offset_by of a date by parts of a day")
    parts = (ir.Literal(-number if match[1] else number, Int(64)) for number in sums)
    return ir.Call("shift_timestamp" if sums[-1] else "shift", (moment, *parts))


def _date(operands: Operands, arguments: Sequence[ir.Operand], _: Any) -> ir.Operand:
    """Read `dt.date`."""
    operands.expect("dt.date", arguments, Timestamp)
    return ir.Cast(arguments[0], Date())


def _field(operands: Operands, arguments: Sequence[ir.Operand], options: Any) -> ir.Operand:
    """Read `struct.field`."""
    operands.expect("struct.field", arguments, Struct)
    return ir.FieldAccess(arguments[0], options)


_OWN: Mapping[str, Callable[[Operands, Sequence[ir.Operand], Any], ir.Operand]] = {
    "StringExpr.Contains": _plain_pattern,
    "TemporalExpr.OffsetBy": _offset,
    "TemporalExpr.Date": _date,
    "StructExpr.FieldByName": _field,
}
