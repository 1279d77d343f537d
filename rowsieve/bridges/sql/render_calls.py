"""Calls as SQL: operators and functions, with the dialects in which each means the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rowsieve.bridges.sql.parts import PARTS, PORTABLE_PARTS, TRUNCATIONS
from rowsieve.bridges.sql.render_literals import quoted
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Call, Cast, Literal, Operand
from rowsieve.types.logical import Float

if TYPE_CHECKING:
    from rowsieve.bridges.sql.render import Writer

_INFIX: Mapping[str, str] = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "concat_strict": "||",
}
# What every dialect calls by the same name and means in the same way.
_COMMON = frozenset(
    {"lower", "upper", "abs", "length", "coalesce", "nullif", "greatest", "least", "ceil", "floor"}
)
_SPELT: Mapping[tuple[str, str], str] = {
    ("spark", "starts_with"): "startswith",
    ("duckdb", "starts_with"): "starts_with",
    ("datafusion", "starts_with"): "starts_with",
    ("duckdb", "concat"): "concat",
    ("datafusion", "concat"): "concat",
}
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def call_text(call: Call, writer: Writer) -> tuple[str, bool]:
    """A call, and whether it is an operator between its operands."""
    name, arguments, dialect = call.function, call.arguments, writer.dialect
    if name in _INFIX and (len(arguments) == 2 or (name == "concat_strict" and arguments[1:])):
        if name == "divide" and not dialect.divides_integers and not _divides_floats(call, writer):
            raise UnsupportedOperation(
                f"{dialect.name} SQL divides integers as doubles; cast the dividend to a float"
            )
        return f" {_INFIX[name]} ".join(writer.atom(item) for item in arguments), True
    if name == "negate" and len(arguments) == 1:
        operand = writer.atom(arguments[0])
        return f"-({operand})" if isinstance(arguments[0], Literal) else f"-{operand}", True
    if name == "date_trunc" and len(arguments) == 2:
        unit = _constant(arguments[0])
        if unit in TRUNCATIONS:
            return f"date_trunc({quoted(unit, dialect)}, {writer.text(arguments[1])})", False
    if name == "extract" and len(arguments) == 2:
        name, arguments = f"extract_{_constant(arguments[0])}", arguments[1:]
    part = name.removeprefix("extract_")
    known = PARTS if dialect.name == "postgres" else PORTABLE_PARTS
    if name.startswith("extract_") and part in known and len(arguments) == 1:
        return f"EXTRACT({part.upper()} FROM {writer.text(arguments[0])})", False
    written = ", ".join(writer.text(item) for item in arguments)
    return f"{_function(name, arguments, writer)}({written})", False


def _function(name: str, arguments: tuple[Operand, ...], writer: Writer) -> str:
    dialect = writer.dialect.name
    if name in _COMMON:
        return name
    if name == "substr" and (dialect == "postgres" or _starts_inside(arguments)):
        return name
    if spelling := _SPELT.get((dialect, name)):
        return spelling
    if dialect == "postgres" and _PLAIN_NAME.fullmatch(name):
        return name
    raise UnsupportedOperation(f"the function {name!r} has no counterpart in {dialect} SQL")


def _starts_inside(arguments: tuple[Operand, ...]) -> bool:
    start = arguments[1].value if len(arguments) > 1 and isinstance(arguments[1], Literal) else None
    return isinstance(start, int) and start >= 1


def _divides_floats(call: Call, writer: Writer) -> bool:
    sides = call.arguments[:1] if writer.dialect.name == "duckdb" else call.arguments
    return any(isinstance(side, Cast) and isinstance(side.type, Float) for side in sides)


def _constant(operand: Operand) -> str:
    value = operand.value if isinstance(operand, Literal) else None
    return value.lower() if isinstance(value, str) else ""
