"""Write a bound tree as a `pyarrow.compute.Expression`.

Soundness: SQL's NULL is preserved where it matters, under NOT and in values. At the top level, and
under AND and OR there, a condition only keeps rows, so FALSE may replace NULL and lists need no
guard; datasets can prune by them. NaN compares as in IEEE 754; `meanings` writes other orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.base import OperatorWriter, path_of
from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.functions import TypedCall
from rowsieve.bridges.functions.casts import CASTS, kinds_of
from rowsieve.bridges.functions.pyarrow import BY_FUNCTION, Kernel
from rowsieve.bridges.pyarrow_exprs import function_table, zones
from rowsieve.bridges.python_text import recorded
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.numbers.decimals import int_as_decimal
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Timestamp,
    is_nested,
    type_name,
)

Expression: TypeAlias = Any  # pyarrow has no types

# Functions that give a value for each value of their types.
_NEVER_FAIL = frozenset(
    {"coalesce", "extract", "date_trunc", "length", "lower", "upper", "reverse"}
    | {"starts_with", "ends_with", "contains"}
)
_PARTS = {ours: theirs for theirs, ours in function_table.PARTS.items()}
_MAX_DIGITS = 38


class PyArrowWriter(OperatorWriter[Expression]):
    """Writes bound trees under `Semantics.PYARROW`."""

    engine = "pyarrow"

    def __init__(self) -> None:
        self._pc: Any = recorded(pc, "pc", "import pyarrow.compute as pc")

    def row_filter(self, node: ir.Predicate) -> Expression:
        """Write a condition that only keeps rows, as at the top: FALSE may replace NULL."""
        match node:
            case ir.And(terms=terms) | ir.Or(terms=terms):
                written = [self.row_filter(term) for term in terms]
                return self.junction(written, all_of=isinstance(node, ir.And))
            case ir.InList():
                return self._found(node)[0]
            case _:
                return self.predicate(node)

    def truth(self, *, value: bool | None) -> Expression:
        """Write a boolean constant."""
        return self._pc.scalar(pa.scalar(value, pa.bool_()))

    def column(self, node: ir.BoundColumn) -> Expression:
        """Write a column by its name."""
        return self._pc.field(node.name)

    def constant(self, literal: ir.Literal) -> Expression:
        """Write a constant of its type."""
        return self._pc.scalar(scalar(literal))

    def comparison(self, op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand) -> Expression:
        """Write a comparison; IS DISTINCT FROM is expanded."""
        types = type_of(left), type_of(right)
        for type_ in types:
            if is_nested(type_) or isinstance(type_, Json):
                raise UnsupportedOperation(
                    f"pyarrow does not compare values of {type_name(type_)}; compare their items "
                    "or fields"
                )
        _check_digits(types)
        a, b = self.operand(left), self.operand(right)
        if not op.is_null_safe:
            return op.python(a, b)
        same = (a.is_null() & b.is_null()) | (~a.is_null() & ~b.is_null() & (a == b))
        return same if op is ir.ComparisonOp.NOT_DISTINCT else ~same

    def in_list(self, node: ir.InList) -> Expression:
        """Write `is_in`, NULL for no match if the operand or a member is NULL."""
        membership, operand = self._found(node)
        none = self.truth(value=None)
        has_null = node.values.array.null_count > 0
        return membership | none if has_null else membership | (operand.is_null() & none)

    def _found(self, node: ir.InList) -> tuple[Expression, Expression]:
        """Write `is_in` without NULL and NaN members; return it with the operand."""
        members = node.values.array.drop_null()
        if pa.types.is_floating(members.type):
            members = members.filter(pc.invert(pc.is_nan(members)))  # nothing equals NaN
        operand = self.operand(node.operand)
        if not len(members) and pa.types.is_null(members.type):
            members = pa.array([], arrow_type(type_of(node.operand)))
        return operand.isin(members), operand

    def like(self, node: ir.Like) -> Expression:
        """Write `match_like`."""
        pieces: list[str] = []
        characters = iter(node.pattern)
        parse_pattern(node.pattern, node.escape)
        for character in characters:
            escaped = character == node.escape
            plain = next(characters) if escaped else character
            pieces.append(f"\\{plain}" if plain == "\\" or (escaped and plain in "%_") else plain)
        text = self.operand(node.operand)
        return self._pc.match_like(text, "".join(pieces), ignore_case=node.ignore_case)

    def cast(self, node: ir.Cast) -> Expression:
        """Write a cast between types for which pyarrow agrees."""
        source, target = type_of(node.operand), node.type
        if source == target:
            return self.operand(node.operand)
        if isinstance(source, Timestamp) and isinstance(target, Timestamp) and not node.try_:
            return self.operand(node.operand).cast(arrow_type(target))  # local times in UTC
        shown = f"a cast of {type_name(source)} to {type_name(target)}"
        narrower = isinstance(source, Float) and target != Float(64)
        zoned = any(isinstance(type_, Timestamp) and type_.utc for type_ in (source, target))
        if node.try_ or kinds_of(source, target) not in CASTS["pyarrow"] or narrower or zoned:
            raise UnsupportedOperation(f"{shown} may give other values in pyarrow")
        operand = self.operand(node.operand)
        if isinstance(source, Int) and isinstance(target, Decimal):
            operand = self._with_room(operand, source, target)
        return self._cast(operand, target)

    def _with_room(self, operand: Expression, source: Int, target: Decimal) -> Expression:
        """Cast integers to a decimal for all of their type, if the target is not one.

        pyarrow casts them to no decimal that a value of their type could overflow, whatever the
        values are (Arrow C++ 26, `Precision is not great enough`), but one decimal to another.
        """
        room = int_as_decimal(source).precision + target.scale
        if room <= target.precision:
            return operand
        if room > _MAX_DIGITS:
            raise UnsupportedOperation(
                f"pyarrow casts {type_name(source)} to {type_name(target)} by {room} digits, more "
                f"than {_MAX_DIGITS}"
            )
        return self._cast(operand, Decimal(room, target.scale))

    def _cast(self, operand: Expression, target: LogicalType) -> Expression:
        options = self._pc.CastOptions(
            arrow_type(target), allow_float_truncate=True, allow_time_truncate=True
        )
        return operand.cast(options=options)

    def field_access(self, node: ir.FieldAccess) -> Expression:
        """Write the path from a column into structs."""
        column, names = path_of(node, self.engine)
        return self._pc.field(column.name, *names)

    def case(self, node: ir.Case) -> Expression:
        """Write nested `if_else`; all branches are evaluated on all rows, so none may fail."""
        values = [node.otherwise, *(then for _, then in node.branches)]
        for part in (*values, *(when for when, _ in node.branches)):
            if any(map(_may_fail, ir.walk(part))):
                raise UnsupportedOperation(
                    "pyarrow computes every branch of a CASE, and one may fail"
                )
        false = self.truth(value=False)
        chosen = self.operand(node.otherwise)
        for when, then in reversed(node.branches):
            chosen = self._pc.if_else(
                self._pc.coalesce(self.predicate(when), false), self.operand(then), chosen
            )
        return chosen

    def call(self, node: ir.Call) -> Expression:
        """Write a function call."""
        name, types = node.function, [type_of(argument) for argument in node.arguments]
        typed = TypedCall(node, types, type_of(node))
        for row in BY_FUNCTION.get(name, ()):
            if row.case.holds(typed):
                return self._by_kernel(row, node)
        if name == "extract" and typed.field in _PARTS and _is_clock(types[1], typed.field):
            part = getattr(self._pc, _PARTS[typed.field])
            return part(self.operand(node.arguments[1])).cast(pa.int64())
        if name == "date_trunc" and typed.field in function_table.UNITS and types[1] == Timestamp():
            return self._pc.floor_temporal(self.operand(node.arguments[1]), unit=typed.field)
        if name in ("local_time", "instant"):
            return zones.written(node, self.operand(node.arguments[1]))
        places = typed.numbers
        if name == "substr" and isinstance(types[0], String) and _are_places(places):
            start, *count = places
            stop = start - 1 + count[0] if count else None
            text = self.operand(node.arguments[0])
            return self._pc.utf8_slice_codeunits(text, start - 1, stop)
        raise _unknown(node)

    def _by_kernel(self, row: Kernel, node: ir.Call) -> Expression:
        """Write a call by its row: constants are options, other arguments are operands."""
        split = 1 if row.constants else len(node.arguments)
        operands = map(self.operand, node.arguments[:split])
        if row.name == "coalesce" and isinstance(type_of(node), Timestamp):
            return self._first_time(*operands)
        constants = [value_of(item) for item in node.arguments[split:]] or row.default
        result = getattr(self._pc, row.name)(*operands, *constants)
        return result.cast(pa.int64()) if row.function == "length" else result

    def _first_time(self, *operands: Expression) -> Expression:
        """The first time that is not NULL; `coalesce` of pyarrow mixes up units of times."""
        *before, chosen = operands
        for operand in reversed(before):
            chosen = self._pc.if_else(self._pc.is_valid(operand), operand, chosen)
        return chosen


def _check_digits(types: Sequence[LogicalType]) -> None:
    """Raise if pyarrow's common type of decimals lacks room."""
    decimals = [type_ for type_ in types if isinstance(type_, Decimal)]
    if len(set(decimals)) > 1:
        scale = max(type_.scale for type_ in decimals)
        if scale + max(type_.precision - type_.scale for type_ in decimals) > _MAX_DIGITS:
            raise UnsupportedOperation(
                f"decimals whose common type has over {_MAX_DIGITS} digits; cast one"
            )


def _may_fail(node: ir.Node) -> bool:
    if isinstance(node, ir.Cast):
        return True
    return isinstance(node, ir.Call) and node.function not in _NEVER_FAIL


def _are_places(numbers: Sequence[int]) -> bool:
    return numbers[0] >= 1 and all(0 <= number < 2**31 for number in numbers)


def _is_clock(type_: LogicalType, part: object) -> bool:
    return type_ == Timestamp() or (type_ == Date() and part not in ("hour", "minute"))


def _unknown(node: ir.Call) -> UnsupportedOperation:
    if (form := function_table.FORMS.get(node.function)) is None:
        return UnsupportedOperation(f"the function {node.function!r} has no counterpart in pyarrow")
    return UnsupportedOperation(f"{node.function} is exact in pyarrow only in this form: {form}")
