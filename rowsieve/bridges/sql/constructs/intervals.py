"""Intervals in SQL text: `ts + INTERVAL '1 month 2 days'` as a call with its three parts.

An interval is an operand of `+` and `-`, or is compared with a column of intervals. A date plus an
interval is a timestamp in some engines and a date in others, so each has its own function.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from rowsieve.bridges.constant_values import whole_of
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate.ir import Call, Literal, Operand
from rowsieve.types.interval_bytes import encoded
from rowsieve.types.interval_texts import IntervalParts, parse_interval
from rowsieve.types.logical import Int, Interval

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_SPAN = re.compile(
    r"\s*([+-]?)([0-9]{1,9}) ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2}(?:\.[0-9]{1,6})?)\s*"
)
_FOUND_BY_GRAMMAR = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]+)\s*")
_QUARTER = re.compile(r"(?i)quarter")
_LARGEST = 2**62
_ONLY_MOVES = "an interval is added to a date or a timestamp, or subtracted; cast the other side"


def moved(reader: Reads, node: Any) -> Operand | None:
    """Read `x + interval` or `x - interval` as a call; None if neither side is an interval."""
    left, right = interval_of(reader, node.this), interval_of(reader, node.expression)
    if left is None and right is None:
        return None
    reader.only(node, "this", "expression")
    minus = isinstance(node, exp.Sub)
    if right is None and left is not None and not minus:
        return moved_by(reader, node, reader.side(node.expression), left)
    if left is not None or right is None:
        raise reader.source.refusal(node, _ONLY_MOVES)
    return moved_by(reader, node, reader.side(node.this), right.times(-1 if minus else 1))


def constant_interval(reader: Reads, node: Any) -> Literal:
    """Read an interval that stands alone; refused where the dialect compares it in another way."""
    parts = interval_of(reader, node)
    if parts is None or not reader.dialect.semantics.thirty_day_months:
        raise reader.source.refusal(node, _ONLY_MOVES)
    try:
        return Literal(encoded(parts.months, parts.days, parts.micros), Interval())
    except OverflowError as error:
        raise reader.source.refusal(node, "the interval is too long") from error


def interval_text(call: Call) -> str | None:
    """Format the interval of a call that adds one; None if it is not constant."""
    named = []
    for part, unit in zip(call.arguments[1:], ("months", "days", "microseconds"), strict=True):
        if (value := whole_of(part)) is None:
            return None
        if value:
            named.append(f"{value} {unit}")
    return " ".join(named) or "0 days"


def interval_of(reader: Reads, node: Any) -> IntervalParts | None:
    """Return the constant interval of a node; None for other nodes."""
    if isinstance(node, exp.Paren):
        return interval_of(reader, node.this)
    if isinstance(node, exp.Neg):
        inner = interval_of(reader, node.this)
        return None if inner is None else inner.times(-1)
    if isinstance(node, exp.Mul):
        return _multiple(reader, node)
    if isinstance(node, exp.Anonymous):
        is_function = node.name.lower() in reader.dialect.times.interval_functions
        return _made_by_spark(reader, node) if is_function else None
    if not isinstance(node, exp.Interval):
        return None
    reader.only(node, "this", "unit", fraction_in_string=True)
    _refuse_what_the_grammar_drops(reader, node)
    value, unit = node.this, node.args.get("unit")
    span = unit.sql() if isinstance(unit, exp.IntervalSpan) else ""
    whole = _SPAN.fullmatch(str(value.name)) if reader.dialect.times.interval_spans else None
    if whole is not None and span == "DAY TO SECOND":
        days, hours, minutes = (int(whole[place]) for place in (2, 3, 4))
        seconds = ((days * 24 + hours) * 60 + minutes) * 60 + Fraction(whole[5])
        return IntervalParts(micros=(-1 if whole[1] == "-" else 1) * int(seconds * _SECOND))
    if isinstance(unit, exp.IntervalSpan) or not isinstance(value, exp.Literal):
        raise reader.source.refusal(node, "write an interval as in INTERVAL '1 month 2 days'")
    text = value.name if unit is None else f"{value.name} {unit.name}"
    if not reader.dialect.times.interval_quarters and _QUARTER.search(text):
        raise reader.source.refusal(node, "the engine has no quarters in intervals: write months")
    try:
        parts = parse_interval(text)
    except ValueError as error:
        raise reader.source.refusal(node, str(error)) from error
    return parts


def _made_by_spark(reader: Reads, node: Any) -> IntervalParts | None:
    """Return the interval of Spark's function over constants; None for other arguments."""
    name = node.name.lower()
    values = [reader.operand(each) for each in node.expressions]
    numbers = [each.value for each in values if isinstance(each, Literal)]
    if len(numbers) < len(values) or len(values) > (2 if name == "make_ym_interval" else 4):
        return None
    parts = [n for n in numbers if isinstance(n, int | Decimal)]
    if len(parts) < len(values) or any(isinstance(part, Decimal) for part in parts[:3]):
        return None
    if name == "make_ym_interval":
        years, months = (*map(int, parts), 0, 0)[:2]
        return IntervalParts(months=years * 12 + months)
    days, hours, minutes = (*map(int, parts[:3]), 0, 0, 0)[:3]
    seconds = Decimal(parts[3]) if len(parts) > 3 else Decimal(0)
    micros = ((days * 24 + hours) * 60 + minutes) * 60 * _SECOND
    return IntervalParts(micros=micros + int(seconds.scaleb(6)))


def _refuse_what_the_grammar_drops(reader: Reads, node: Any) -> None:
    """Check the text, because sqlglot finds one number with a unit and ignores the rest."""
    tokens = reader.source.tokens
    for word, text in pairwise(tokens):
        if word.text.upper() == "INTERVAL" and text.token_type == TokenType.STRING:
            pieces = _FOUND_BY_GRAMMAR.findall(text.text)
            if len(pieces) == 1 and not _FOUND_BY_GRAMMAR.fullmatch(text.text):
                raise reader.source.refusal(
                    node, "write each part of an interval with its unit, as in '1 day 2 hours'"
                )


def _multiple(reader: Reads, node: Any) -> IntervalParts | None:
    sides = (node.this, node.expression)
    for factor, other in (sides, sides[::-1]):
        interval = interval_of(reader, other)
        if interval is None:
            continue
        if not isinstance(factor, exp.Literal) or factor.is_string or not factor.name.isdecimal():
            raise reader.source.refusal(node, "multiply an interval by a whole number")
        product = interval.times(int(factor.name))
        if reader.dialect.times.mixed_intervals:
            return product
        # The product has hours, too, so that a date moved by it is a timestamp.
        return IntervalParts(product.months, 0, product.days * _DAY + product.micros)
    return None


def moved_by(reader: Reads, node: Any, operand: Operand, interval: IntervalParts) -> Operand:
    """Return the operand moved by an interval, as the dialect moves times."""
    parts = (interval.months, interval.days, interval.micros)
    if max(map(abs, parts)) >= _LARGEST:
        raise reader.source.refusal(node, "the interval is too long")
    if (moves := reader.dialect.times.moves) is None:
        raise reader.source.refusal(node, f"intervals are not read in {reader.dialect.name} SQL")
    name = moves.of(interval.micros)
    return Call(name, (operand, *(Literal(part, Int(64)) for part in parts)))
