"""Convert a Spark Connect column, whose expression is a tree of Python objects, to forms.

Soundness: an expression of another kind is refused by name; SQL text inside a column is first
parsed by itself, so its parentheses are balanced.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rowsieve.bridges.chains import flattened
from rowsieve.bridges.spark_columns.connect_times import check_moments
from rowsieve.bridges.spark_columns.long_lists import LISTED, SHORT
from rowsieve.bridges.sql import parse_expression
from rowsieve.bridges.sql.placeholders import StandIns
from rowsieve.bridges.sql.spark import column_words
from rowsieve.bridges.sql.spark.column_words import Form
from rowsieve.bridges.sql.spark.type_names import cast_target, type_named
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.ir import ValueSet
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, LogicalType


def conditions(column: Any) -> list[tuple[Any, Any]]:
    """Return each condition of the top-level AND: its column, and its expression or SQL text."""

    def terms_of(item: Any) -> Sequence[Any] | None:
        is_and = type(item).__name__ == "UnresolvedFunction" and item._name == "and"
        terms: Sequence[Any] | None = item._args if is_and else None
        return terms

    conjuncts: list[tuple[Any, Any]] = []
    for item in flattened(column._expr, terms_of):
        conjunct = type(column)(item)
        is_text = type(item).__name__ == "SQLExpression"
        conjuncts += [
            (conjunct, piece) for piece in (_pieces(str(item._expr)) if is_text else [item])
        ]
    return conjuncts


def form_of(expression: Any, stand_ins: StandIns) -> Form:
    """Return the form of an expression; `UnsupportedOperation` if it has none."""
    if type(expression).__name__ == "SQLExpression":
        return _text(str(expression._expr), stand_ins)
    while type(expression).__name__ == "ColumnAlias":
        expression = expression._child
    form = _FORMS.get(type(expression).__name__)
    if form is None:
        raise UnsupportedOperation(f"{type(expression).__name__} has no counterpart in Rowsieve")
    return form(expression)


def _pieces(text: str) -> list[str]:
    from rowsieve.bridges.sql.reading import parse  # noqa: PLC0415 - sqlglot takes 0.1 s to import

    try:
        return [piece for piece, _ in parse.conditions(text, "spark")]
    except InvalidPredicate:
        return [text]  # reading rejects it


def _text(text: str, stand_ins: StandIns) -> Form:
    if stand_ins.may_stand_in(text):
        raise UnsupportedOperation("text that names something other than a column")
    try:
        parse_expression(text, "spark")  # its parentheses are balanced
    except InvalidPredicate as error:
        raise UnsupportedOperation(str(error)) from error
    return column_words.Spelled(f"({text}\n)")


def _call(expression: Any) -> Form:
    name, arguments = str(expression._name).lower().strip("`"), expression._args
    if getattr(expression, "_is_distinct", False):
        raise UnsupportedOperation(f"{name} of distinct values has no counterpart in Rowsieve")
    if (
        name == "in"
        and len(arguments) > SHORT
        and (values := _constants(arguments[1:])) is not None
    ):
        return column_words.SparkList(arguments[0], values)
    return column_words.SparkCall(name, arguments)


def _cast(expression: Any) -> Form:
    mode = expression._eval_mode
    if mode not in (None, "try"):
        raise UnsupportedOperation(f"a cast in the mode {mode} has no counterpart in Rowsieve")
    target = cast_target(expression._data_type)
    return column_words.CastTo(expression._expr, target, is_try=mode == "try")


def _constants(members: Sequence[Any]) -> ValueSet | None:
    """Return constants of one type, integers of any width, and NULLs as a set; else None."""
    types: set[LogicalType] = set()
    for member in members:
        if type(member).__name__ != "LiteralExpression":
            return None
        spelled = str(member._dataType.jsonValue())
        if spelled != "void":
            if spelled not in LISTED:
                return None
            types.add(LISTED[spelled])
    if len(types) != 1:
        return None
    (type_,) = types
    values = [member._value for member in members]
    if type_ == Date():
        check_moments("date", [value for value in values if value is not None])
    plain = pa.int32() if type_ == Date() else arrow_type(type_)
    return ValueSet(pa.array(values, plain).view(arrow_type(type_)), type_)


def _literal(expression: Any) -> Form:
    value, spelled = expression._value, str(expression._dataType.jsonValue())
    if hasattr(value, "as_tuple"):  # the server widens the type that the client declares
        _, digits, exponent = value.as_tuple()
        scale = max(-exponent, expression._dataType.scale)
        precision = max(len(digits) + max(exponent, 0), scale, expression._dataType.precision)
        if precision > 38:
            raise UnsupportedOperation("a constant of more than 38 digits")
        with decimal.localcontext(prec=60):
            value = value.quantize(decimal.Decimal(1).scaleb(-scale))
        return column_words.constant(value, f"decimal({precision},{scale})")
    if isinstance(value, bytearray):
        value = bytes(value)
    if isinstance(value, int) and type_named(spelled) is not None:
        check_moments(spelled, [value])
    return column_words.constant(value, spelled)


def _case(expression: Any) -> Form:
    return column_words.Choice(expression._branches, expression._else_value)


_FORMS: Mapping[str, Callable[[Any], Form]] = {
    "ColumnReference": lambda each: column_words.parse_name(str(each._unparsed_identifier)),
    "LiteralExpression": _literal,
    "CastExpression": _cast,
    "CaseWhen": _case,
    "UnresolvedExtractValue": lambda each: column_words.Member(each._child, each._extraction),
    "CallFunction": _call,
    "UnresolvedFunction": _call,
}
