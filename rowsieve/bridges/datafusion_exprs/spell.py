"""Format a `datafusion.Expr` as DataFusion SQL text, node by node, without interpreting it.

Constants without a short text are replaced by names.

Soundness: DataFusion parses the text to the same expression, except for types of constants, which
the names preserve. Constructs without SQL syntax, or without support in `function_table`, are
rejected by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.chains import flattened
from rowsieve.bridges.datafusion_exprs import function_table
from rowsieve.bridges.pyarrow_exprs.literals import literal_of, negative_nans, stored
from rowsieve.bridges.sql.constructs.arrow_times import timestamp_named
from rowsieve.bridges.sql.constructs.render_literals import cast_text, quoted
from rowsieve.bridges.sql.dialects import DATAFUSION, DATAFUSION_INSTANT
from rowsieve.bridges.sql.placeholders import StandIns, TextDepth
from rowsieve.bridges.sql.typenames import arrow_shown
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Literal, ValueSet
from rowsieve.types.encodings import is_text
from rowsieve.types.logical import String

if TYPE_CHECKING:
    from datafusion import Expr

_LONGEST = 200  # characters; longer constants are replaced by names
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_ZONED = re.compile(r'Timestamp\((?:ns|µs), "([A-Za-z]+/[A-Za-z0-9_+/-]+)"\)')
_SPAN: Final = "Interval(MonthDayNano)"
_DAY_S: Final = 86_400
_MAX_DAYS: Final = 100_000  # nanoseconds reach little further
_PLAIN_TIME: Final = re.compile(
    r"((?:1[789]|20|21)\d\d-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d{1,6})?)Z?", re.ASCII
)
_IN_UTC = f", '{DATAFUSION_INSTANT}')"
_TESTS = {
    "IsNull": "IS NULL",
    "IsNotNull": "IS NOT NULL",
    "IsUnknown": "IS NULL",
    "IsNotUnknown": "IS NOT NULL",
    "IsTrue": "IS TRUE",
    "IsNotTrue": "IS NOT TRUE",
    "IsFalse": "IS FALSE",
    "IsNotFalse": "IS NOT FALSE",
}


class Binding(IntEnum):
    """How tightly a piece of text binds."""

    LOOSE = 1
    CONDITION = 2  # may be an operand of AND and OR
    ATOM = 3  # may be any operand


def conditions(expression: Expr) -> list[Expr]:
    """Return the terms of the top-level AND, in the order written, without aliases."""
    return _chain(expression, "AND")


def joined(terms: Sequence[Expr]) -> Expr:
    """Return the AND of expressions."""
    whole = terms[0]
    for term in terms[1:]:
        whole = whole & term
    return whole


def spelled(expression: Expr, stand_ins: StandIns) -> str:
    """Format the condition as SQL; `UnsupportedOperation` names a construct without syntax."""
    return _Speller(stand_ins).piece(expression)[0]


def _chain(expression: Expr, operator: str) -> list[Expr]:
    def terms_of(item: Expr) -> Sequence[Expr] | None:
        kind = item.variant_name()
        if kind == "Alias":
            return [item.to_variant().expr()]
        chained = kind == "BinaryExpr" and item.rex_call_operator() == operator
        return item.rex_call_operands() if chained else None

    return flattened(expression, terms_of)


class _Speller:
    def __init__(self, stand_ins: StandIns) -> None:
        self._stand_ins = stand_ins
        self._depth = TextDepth(stand_ins)

    def atom(self, expression: Expr) -> str:
        text, binding = self.piece(expression)
        return text if binding is Binding.ATOM else f"({text})"

    def term(self, expression: Expr) -> tuple[str, Binding]:
        """Format a term of AND, OR or NOT; a name replaces it if the text nests too deeply."""
        if _joins(expression) and (name := self._depth.named(lambda: self.piece(expression)[0])):
            return name, Binding.ATOM
        return self.piece(expression)

    def piece(self, expression: Expr) -> tuple[str, Binding]:
        with self._depth:
            kind = expression.variant_name()
            if kind == "Literal":
                return self._literal(expression.python_value()), Binding.ATOM
            if kind == "ScalarFunction":
                return self._function(expression)
            row = function_table.VARIANT_ROWS.get(kind)
            if row is None or row.reads is not Exactness.EXACT:
                raise UnsupportedOperation(f"{kind}: {row.note if row else 'unknown to Rowsieve'}")
            return self._variant(kind, expression)

    def _variant(self, kind: str, expression: Expr) -> tuple[str, Binding]:
        inner: Any = expression.to_variant()
        if (test := _TESTS.get(kind)) is not None:
            return f"{self.atom(inner.expr())} {test}", Binding.CONDITION
        match kind:
            case "Column":
                return f'"{inner.name().replace(chr(34), chr(34) * 2)}"', Binding.ATOM
            case "Alias":
                return self.piece(inner.expr())
            case "BinaryExpr":
                return self._binary(expression)
            case "Not":
                text, binding = self.term(inner.expr())
                return f"NOT {text if binding is Binding.ATOM else f'({text})'}", Binding.LOOSE
            case "Negative":
                return f"-{self.atom(inner.expr())}", Binding.LOOSE
            case "InList":
                members = self._members(inner.list())
                return f"{self.atom(inner.expr())} {_not(inner)}IN {members}", Binding.CONDITION
            case "Between":
                low, high = self.atom(inner.low()), self.atom(inner.high())
                text = f"{self.atom(inner.expr())} {_not(inner)}BETWEEN {low} AND {high}"
                return text, Binding.LOOSE
            case "Like":
                return self._like(expression, inner), Binding.CONDITION
            case "Case":
                return self._case(inner), Binding.ATOM
            case "Cast" | "TryCast":
                return self._cast(expression, inner, try_=kind == "TryCast"), Binding.ATOM
        raise AssertionError(kind)

    # Operators

    def _binary(self, expression: Expr) -> tuple[str, Binding]:
        operator = expression.rex_call_operator()
        row = function_table.OPERATOR_ROWS.get(operator)
        if row is None or row.reads is not Exactness.EXACT:
            why = row.note if row else "unknown to Rowsieve"
            raise UnsupportedOperation(f"the operator {operator}: {why}")
        if operator in ("AND", "OR"):
            pieces = [self.term(term) for term in _chain(expression, operator)]
            terms = [text if binding > Binding.LOOSE else f"({text})" for text, binding in pieces]
            return f" {operator} ".join(terms), Binding.LOOSE
        if operator == "||":
            return " || ".join(map(self.atom, _chain(expression, operator))), Binding.LOOSE
        operands = expression.rex_call_operands()
        if operator in ("+", "-") and (days := _whole_days(operands[1])) is not None:
            return f"{self.atom(operands[0])} {operator} INTERVAL '{days} days'", Binding.LOOSE
        left, right = map(self.atom, operands)
        spelt = "^" if operator == "BIT_XOR" else operator
        is_plain = operator in function_table.COMPARISONS and "DISTINCT" not in operator
        return f"{left} {spelt} {right}", Binding.CONDITION if is_plain else Binding.LOOSE

    def _like(self, expression: Expr, inner: Any) -> str:
        word = "ILIKE" if "ilike" in expression.rex_call_operator() else "LIKE"
        text = f"{self.atom(inner.expr())} {_not(inner)}{word} {self.atom(inner.pattern())}"
        escape = inner.escape_char()
        return f"{text} ESCAPE {quoted(escape, DATAFUSION)}" if escape else text

    def _members(self, members: Sequence[Expr]) -> str:
        if (values := _plain_members(members)) is not None:
            return self._stand_ins.members(values)
        return f"({', '.join(map(self.atom, members))})"

    def _case(self, inner: Any) -> str:
        subject, last = inner.expr(), inner.else_expr()
        pieces = ["CASE" if subject is None else f"CASE {self.atom(subject)}"]
        pieces += [
            f"WHEN {self.atom(when)} THEN {self.atom(then)}"
            for when, then in inner.when_then_expr()
        ]
        if last is not None:
            pieces.append(f"ELSE {self.atom(last)}")
        return " ".join([*pieces, "END"])

    def _cast(self, expression: Expr, inner: Any, *, try_: bool) -> str:
        text = expression.canonical_name()
        shown = text[text.rindex(" AS ") + 4 : -1]
        operand = self.piece(inner.expr())[0]
        if (named := _ZONED.fullmatch(shown)) is not None and not try_:
            return f"({self.atom(inner.expr())} AT TIME ZONE '{named[1]}')"
        if (to := timestamp_named(shown)) is not None and to.is_coarse and not try_:
            return f"arrow_cast({operand}, '{shown}')"
        if shown == _SPAN and _is_difference(inner.expr()):  # a duration: it has no days
            return f"({operand})"
        if (type_ := arrow_shown(shown)) is None:
            raise UnsupportedOperation(f"a cast to {shown} has no type in Rowsieve")
        return cast_text(operand, type_, DATAFUSION, try_=try_)

    def _in_zone(self, expression: Expr) -> str:
        text = self.piece(expression)[0]
        if expression.variant_name() == "Cast" and text.endswith(_IN_UTC):
            inner: Any = expression.to_variant()
            return f"{self.atom(inner.expr())} AT TIME ZONE 'UTC'"
        return text

    # Constants

    def _literal(self, value: pa.Scalar) -> str:
        if pa.types.is_interval(value.type) and value.is_valid:
            return _interval(*value.as_py())
        if pa.types.is_null(value.type):
            return "NULL"
        array = pa.array([value])
        _check_sign(array)
        literal = literal_of(array)
        match literal.value:
            case bool():
                return "TRUE" if literal.value else "FALSE"
            case str(text):
                return self._stand_ins.constant(Literal(text))
            case _:
                return self._stand_ins.constant(literal)

    # Functions

    def _function(self, expression: Expr) -> tuple[str, Binding]:
        name, operands = expression.rex_call_operator(), expression.rex_call_operands()
        if name == "array_has" and (members := _listed(operands[0])) is not None:
            listed = self._stand_ins.members(members, typed=True)
            return f"{self.atom(operands[1])} IN {listed}", Binding.CONDITION
        if name == "to_local_time":  # its argument must name a zone, even UTC
            return f"to_local_time({self._in_zone(operands[0])})", Binding.ATOM
        arguments = [
            _identifying_constant(operand) or self.piece(operand)[0] for operand in operands
        ]
        if name == "get_field":
            keys = "".join(f"[{key}]" for key in arguments[1:])
            return f"{self.atom(operands[0])}{keys}", Binding.ATOM
        if name == "array_element":
            return f"{self.atom(operands[0])}[{arguments[1]}]", Binding.ATOM
        if name == "date_part" and _NAME.fullmatch(part := arguments[0].strip("'").lower()):
            return f"EXTRACT({part} FROM {arguments[1]})", Binding.ATOM
        if name == "date_trunc":
            arguments[0] = arguments[0].lower()
        if name == "current_date":
            return "CURRENT_DATE", Binding.ATOM
        if name == "to_timestamp" and (time := _plain_time(operands)) is not None:
            return f"TIMESTAMP '{time}'", Binding.ATOM
        if not _NAME.fullmatch(name):
            raise UnsupportedOperation(f"the function {name} has no counterpart in Rowsieve")
        return f"{name}({', '.join(arguments)})", Binding.ATOM


def _joins(expression: Expr) -> bool:
    """Whether an expression is AND, OR or NOT of others."""
    kind = expression.variant_name()
    if kind == "BinaryExpr":
        return expression.rex_call_operator() in ("AND", "OR")
    return bool(kind == "Not")


def _whole_days(expression: Expr) -> int | None:
    """Return n of the interval that DataFusion makes of `date + n`: n * 86400 seconds."""
    for shown in (_SPAN, "Duration(s)"):
        if expression.variant_name() != "Cast":
            return None
        if not expression.canonical_name().endswith(f" AS {shown})"):
            return None
        inner: Any = expression.to_variant()
        expression = inner.expr()
    if expression.variant_name() != "BinaryExpr" or expression.rex_call_operator() != "*":
        return None
    numbers = [_whole(side) for side in expression.rex_call_operands()]
    days, seconds = numbers
    return days if seconds == _DAY_S and days is not None and abs(days) < _MAX_DAYS else None


def _is_difference(expression: Expr) -> bool:
    return expression.variant_name() == "BinaryExpr" and expression.rex_call_operator() == "-"


def _whole(expression: Expr) -> int | None:
    if expression.variant_name() != "Literal":
        return None
    value = expression.python_value().as_py()
    return value if type(value) is int else None


def _identifying_constant(expression: Expr) -> str | None:
    """Return a constant argument that identifies a call: a unit, a name, an index."""
    if expression.variant_name() != "Literal":
        return None
    scalar = expression.python_value()
    value = scalar.as_py() if is_text(scalar.type) or pa.types.is_int64(scalar.type) else None
    if isinstance(value, int) and 0 <= value < 2**53:
        return str(value)
    if isinstance(value, str) and len(value) <= _LONGEST and value.isprintable():
        return quoted(value, DATAFUSION)
    return None


def _plain_time(operands: Sequence[Expr]) -> str | None:
    """Return the time of `to_timestamp` of a constant text with all digits, without its zone, UTC.

    Years are those that nanoseconds reach.
    """
    if len(operands) != 1 or operands[0].variant_name() != "Literal":
        return None
    text = operands[0].python_value().as_py()
    match = _PLAIN_TIME.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else f"{match[1]} {match[2]}"


def _not(inner: Any) -> str:
    return "NOT " if inner.negated() else ""


def _interval(months: int, days: int, nanos: int) -> str:
    if nanos % 1000:
        raise UnsupportedOperation("an interval of less than a microsecond")
    seconds, micros = divmod(nanos // 1000, 1_000_000)
    parts = {"months": months, "days": days, "seconds": seconds, "microseconds": micros}
    named = " ".join(f"{count} {unit}" for unit, count in parts.items() if count)
    return f"INTERVAL '{named or '0 days'}'"


def _plain_members(members: Sequence[Expr]) -> ValueSet | None:
    """Return members that are constants of one Arrow type in one step, since lists may be long."""
    values = []
    for member in members:
        if member.variant_name() != "Literal":
            return None
        values.append(member.python_value())
    if not values or any(value.type != values[0].type for value in values):
        return None
    constants = pa.array(values, values[0].type)
    _check_sign(constants)
    array, type_ = stored(constants)
    if isinstance(type_, String):
        return ValueSet(array)  # as quoted text, which adapts to the other side
    return None if type_ is None else ValueSet(array, type_)


def _listed(expression: Expr) -> ValueSet | None:
    """Return the members of a constant list."""
    if expression.variant_name() != "Literal":
        return None
    value = expression.python_value()
    if not pa.types.is_list(value.type) or not value.is_valid:
        return None
    if value.values.null_count:
        raise UnsupportedOperation("array_has is read with a constant list without NULL only")
    return ValueSet(*stored(value.values))


def _check_sign(values: pa.Array) -> None:
    if pc.any(negative_nans(values)).as_py():
        raise UnsupportedOperation(
            "NaN with its sign bit set, which DataFusion orders below every number"
        )
