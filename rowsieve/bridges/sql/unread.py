"""Text that means something to an engine and something else here: it is not read for a translation.

A row per difference that the engine itself showed on awkward data. Soundness: what is refused here
is left in its own words, as a whole condition; what passes gave the same rows in the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rowsieve.bridges.sql.typenames import NUMERIC
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.casts import reads_every_text
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Decimal, Float, Int, Json, String, Struct, type_name

_RANGES = (ir.ComparisonOp.LT, ir.ComparisonOp.LE, ir.ComparisonOp.GT, ir.ComparisonOp.GE)
_CHOICES = frozenset({"coalesce", "nullif", "greatest", "least"})
_SUMS = frozenset({"add", "subtract", "multiply", "divide", "modulo"})
_REAL = Float(32)


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that the engine takes in another way, and how it is found in a bound tree."""

    what: str
    example: str  # over the columns of the tests
    found: Callable[[ir.Node], bool]


def _is_text_range(node: ir.Node) -> bool:
    """Whether the order of texts decides."""
    if isinstance(node, ir.Comparison):
        return node.op in _RANGES and isinstance(type_of(node.left), String)
    if isinstance(node, ir.Call) and node.function in ("greatest", "least"):
        return isinstance(type_of(node), String)
    return False


def _calls(*names: str) -> Callable[[ir.Node], bool]:
    return lambda node: isinstance(node, ir.Call) and node.function in names


def _divides_decimals(node: ir.Node) -> bool:
    if not isinstance(node, ir.Call) or node.function != "divide":
        return False
    return isinstance(type_of(node), Decimal)


def _whole_milliseconds(node: ir.Node) -> bool:
    if not isinstance(node, ir.Call):
        return False
    unit = node.arguments[0] if node.function == "extract" else None
    named = isinstance(unit, ir.Literal) and str(unit.value).lower() == "millisecond"
    return named or node.function == "extract_millisecond"


def _rounds_longs(node: ir.Node) -> bool:
    if not isinstance(node, ir.Call) or node.function not in ("floor", "ceil", "round"):
        return False
    return len(node.arguments) == 1 and type_of(node.arguments[0]) == Int(64)


def _rounds_up(node: ir.Node) -> bool:
    if not isinstance(node, ir.Call) or node.function != "round" or len(node.arguments) < 2:
        return False
    return isinstance(type_of(node.arguments[0]), Int)


def _tests_struct(node: ir.Node) -> bool:
    return isinstance(node, ir.IsNull) and isinstance(type_of(node.operand), Struct)


def _counts_by_rows(node: ir.Node) -> bool:
    if not isinstance(node, ir.Call) or node.function != "right":
        return False
    return not isinstance(node.arguments[1], ir.Literal)


def _fits_real(value: object) -> bool:
    """Whether a float32 holds the number itself."""
    if value is None:
        return True
    with np.errstate(over="ignore"):
        return float(np.float32(float(str(value)))) == value or value != value  # noqa: PLR0124 - NaN


def _narrows_choice(node: ir.Node) -> bool:
    """A choice between a float32 and other numbers is a float32 there, and a float64 here."""
    if isinstance(node, ir.Call) and node.function in _CHOICES:
        return _mixes_real([_uncast(item) for item in node.arguments])
    if isinstance(node, ir.Case):
        kept = [then for _, then in node.branches]
        return _mixes_real([_uncast(item) for item in (*kept, node.otherwise)])
    return False


def _uncast(item: ir.Operand) -> ir.Operand:
    return item.operand if isinstance(item, ir.Cast) and item.type == Float(64) else item


def _mixes_real(items: list[ir.Operand]) -> bool:
    types = [type_of(item) for item in items]
    if _REAL not in types:
        return False  # there may be no number among them
    others = [item for item, type_ in zip(items, types, strict=True) if type_ != _REAL]
    return not all(isinstance(item, ir.Literal) and _fits_real(item.value) for item in others)


def _narrows_list(node: ir.Node) -> bool:
    """A list beside a float32 has its members as float32 there."""
    if not isinstance(node, ir.InList) or len(node.values) < 2:
        return False
    if type_of(_uncast(node.operand)) != _REAL or pa.types.is_float32(node.values.array.type):
        return False
    return not all(_fits_real(value) for value in node.values.array.to_pylist())


def _has_huge_literal(node: ir.Node) -> bool:
    """PostgreSQL's decimals have 131,072 digits: such a number is a float here."""
    if not isinstance(node, ir.Call) or node.function not in _SUMS:
        return False
    others = [type_of(_uncast(item)) for item in node.arguments if not isinstance(item, ir.Literal)]
    return any(isinstance(type_, Int | Decimal) for type_ in others) and any(
        isinstance(item, ir.Literal) and isinstance(item.value, float) and _is_far(item.value)
        for item in node.arguments
    )


def _is_far(value: float) -> bool:
    return value != 0 and not 1e-38 < abs(value) < 1e38


POSTGRES: tuple[Difference, ...] = (
    Difference("divides decimals to other digits", "i32 / d = -0.1428571", _divides_decimals),
    Difference(
        "divides by the degrees of a radian", "degrees(f64) = 5.729577951308233", _calls("degrees")
    ),
    Difference(
        "has fractions of milliseconds", "extract(millisecond FROM ts) = 0", _whole_milliseconds
    ),
    Difference(
        "takes letters as the locale of its database does",
        "upper(s) = 'STRAßE'",
        lambda node: (
            _calls("upper", "lower")(node) or (isinstance(node, ir.Like) and node.ignore_case)
        ),
    ),
    Difference(
        "takes classes of letters and their cases as the locale of its database does",
        r"s ~ '^\w+$'",
        lambda node: _calls("regex_matches")(node) and len(ir.children(node)) == 3,
    ),
    Difference(
        "has a numeric of any number of digits",
        "CAST(f64 AS numeric) = 0",
        lambda node: isinstance(node, ir.Cast) and node.type == NUMERIC,
    ),
    Difference("takes a row of NULLs for NULL", "pair IS NULL", _tests_struct),
    Difference("has no end of text for the least count", "right(s, i32) = ''", _counts_by_rows),
    Difference(
        "takes a float32 among other numbers for one",
        "greatest(f32, i32) = 2147483647",
        _narrows_choice,
    ),
    Difference("takes members beside a float32 for one", "f32 IN (0.1, 1.5)", _narrows_list),
    Difference(
        "makes floats of whole numbers of 64 bits", "floor(i64) = 9007199254740992", _rounds_longs
    ),
    Difference(
        "rounds whole numbers to digits as decimals, without an end",
        "round(i32, -1) = 2147483650",
        _rounds_up,
    ),
    Difference(
        "has decimals of any size", "i64 * 1e200 > 9007199254740992 * 1e200", _has_huge_literal
    ),
)


# Functions that Trino has under other names, or of bytes only.
_NOT_IN_TRINO = frozenset({"md5", "sha256_hex", "octet_length", "contains", "left", "days_between"})


def check_read(root: ir.Predicate, dialect: str) -> None:
    """Refuse a bound condition that the dialect's engine means in another way."""
    for node in ir.walk(root) if dialect == "trino" else ():
        if isinstance(node, ir.Call) and node.function in _NOT_IN_TRINO:
            raise UnsupportedOperation(f"{dialect} has no function {node.function} of text")
    for node in ir.walk(root) if dialect == "postgres" else ():
        for each in POSTGRES:
            if each.found(node):
                raise UnsupportedOperation(f"{dialect} {each.what}")


def check_texts(root: ir.Predicate, semantics: Semantics) -> None:
    """Refuse a cast of text that may meet one whose value is not known here."""
    for node in ir.walk(root):
        if not isinstance(node, ir.Cast) or not isinstance(type_of(node.operand), String):
            continue
        if isinstance(node.type, String | Json) or reads_every_text(node.type, semantics):
            continue
        raise UnsupportedOperation(
            f"{semantics.text_reading.value} reads some texts as {type_name(node.type)} by rules "
            "of its own, which are not known here"
        )


def orders_text(root: ir.Predicate) -> bool:
    """Whether the order of texts decides somewhere in a bound condition."""
    return any(_is_text_range(node) for node in ir.walk(root))


def check_order(root: ir.Predicate, dialect: str) -> None:
    """Refuse a bound condition in which it does, where no collation is named."""
    if orders_text(root):
        raise UnsupportedOperation(
            f'{dialect} orders text by the collation of its database; write text COLLATE "C" < …'
        )
