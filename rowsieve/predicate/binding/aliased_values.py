"""Functions and operators of PostgreSQL over ranges and arrays, written as conditions on fields.

A column with the alias `range.1` or `array.1` is a struct, whose fields have statistics: so these
conditions skip parts. Soundness: a NULL argument gives NULL, as PostgreSQL's strict functions do.
The rules are those of the values that writes let in (`rowsieve.types.alias_forms.alias_values`); of
other ranges, those without values are `empty` only if they say so.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeGuard

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.binding.array_constants import (
    array_elements,
    array_literal,
    equals_items,
)
from rowsieve.predicate.literal_values import parse_text
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    LogicalType,
    Numeric,
    Struct,
    Timestamp,
    type_name,
)

RANGE: Final = "range.1"
ARRAY: Final = "array.1"
EQUATED: Final = frozenset({RANGE, ARRAY, "acl_item.1", "int2vector.1"})
"""Aliases whose values are equal if their storage is."""

FieldOf: TypeAlias = Callable[[ir.Operand], Field | None]
"""Finds the column, or the field inside one, that an operand is."""
_OF_RANGE: Final = frozenset(
    {"lower", "upper", "isempty", "lower_inc", "upper_inc", "lower_inf", "upper_inf"}
)
_NUMBERS: Final = (Int, Float, Decimal, Numeric)
_CONSTRUCTORS: Final[Mapping[str, tuple[type[LogicalType], ...]]] = {
    "int4range": (Int,),
    "int8range": (Int,),
    "numrange": (Decimal, Numeric),
    "daterange": (Date,),
    "tsrange": (Timestamp,),
    "tstzrange": (Timestamp,),
}
_TEXT = re.compile(r'\s*([\[(])\s*("[^"]*"|[^,"]*?)\s*,\s*("[^"]*"|[^,"]*?)\s*([\])])\s*')
_NULL: Final = ir.BooleanOperand(ir.Literal(None, Bool()))


@dataclass(frozen=True, slots=True)
class _Range:
    """The parts of a range; `whole` is its column, None for a constant."""

    lower: ir.Operand
    upper: ir.Operand
    from_lower: ir.Predicate
    to_upper: ir.Predicate
    empty: ir.Predicate
    whole: ir.Operand | None = None

    @classmethod
    def of(cls, column: ir.Operand) -> _Range:
        """The fields of a column."""

        def flag(name: str) -> ir.Predicate:
            return ir.BooleanOperand(ir.FieldAccess(column, name))

        return cls(
            ir.FieldAccess(column, "lower"),
            ir.FieldAccess(column, "upper"),
            flag("lower_inclusive"),
            flag("upper_inclusive"),
            flag("empty"),
            column,
        )


_NOTHING: Final = _Range(ir.Literal(None), ir.Literal(None), ir.FALSE, ir.FALSE, ir.TRUE)


def aliased_call(
    name: str, arguments: tuple[ir.Operand, ...], field_of: FieldOf, semantics: Semantics
) -> ir.Operand | None:
    """Return what a call means over a range or an array; None for other calls."""
    if name in _CONSTRUCTORS:
        raise InvalidPredicate(
            f"{name} stands next to a column of ranges only; compare other values with its ends, "
            "as in x >= 1 AND x < 5, and a column's lower(…) and upper(…) with other columns"
        )
    fields = [field_of(each) for each in arguments]
    aliases = [None if field is None else field.alias for field in fields]
    if RANGE in aliases:
        if name in _OF_RANGE and len(arguments) == 1:
            return _of_range(name, _Range.of(arguments[0]))
        if name in ("list_contains_all", "list_overlaps") and len(arguments) == 2:
            return _between(name, arguments, aliases, _bound_type(fields))
    if ARRAY in aliases:
        return _of_array(name, _with_elements(name, arguments, fields, semantics), aliases)
    if name == "array_length" and len(arguments) == 2:
        if not isinstance(arguments[1], ir.Literal) or arguments[1].value != 1:
            raise InvalidPredicate("a list has one dimension, 1")
        return ir.Call("nullif", (ir.Call("list_length", arguments[:1]), ir.Literal(0, Int(64))))
    return None


def compare_aliased(
    op: ir.ComparisonOp,
    sides: tuple[ir.Operand, ir.Operand],
    field_of: FieldOf,
    semantics: Semantics,
) -> ir.Predicate | None:
    """Return a comparison of ranges, or an equality of an array and a constant; else None.

    Arrays are equal as structs are, so that a text only becomes a struct.
    """
    fields = [field_of(each) for each in sides]
    aliases = [None if field is None else field.alias for field in fields]
    if RANGE in aliases and op.is_order:
        return (
            _NULL if any(map(_is_null, sides)) else _ordered(op, *_ranges(sides, aliases, fields))
        )
    if op.is_order:
        return None
    if RANGE in aliases:
        equal = _NULL if any(map(_is_null, sides)) else _equal_ranges(sides, aliases, fields)
        return _compared(op, equal, sides)
    if ARRAY not in aliases:
        return None
    place = aliases.index(ARRAY)
    column, other, field = sides[place], sides[1 - place], fields[place]
    assert field is not None
    if isinstance(other, ir.Literal) and _is_text(other):
        assert isinstance(other.value, str)
        return ir.Comparison(op, column, array_literal(other.value, field.type, semantics))
    items = equals_items(column, other, field.type)
    return None if items is None else _compared(op, items, (column,))


def aliased_list(node: ir.InList, field_of: FieldOf) -> ir.Predicate | None:
    """Return IN over ranges or arrays as an OR of equalities; None for other columns."""
    field = field_of(node.operand)
    if field is None or field.alias not in (RANGE, ARRAY):
        return None
    if not len(node.values):
        return ir.And((ir.IsNull(node.operand), _NULL))
    return ir.disjoin(
        ir.Comparison(ir.ComparisonOp.EQ, node.operand, ir.Literal(member))
        for member in node.values.array.to_pylist()
    )


def _compared(
    op: ir.ComparisonOp, equal: ir.Predicate, sides: Sequence[ir.Operand]
) -> ir.Predicate:
    """The comparison by an equality that is NULL if a side is, and never otherwise."""
    if not op.is_null_safe:
        return equal if op is ir.ComparisonOp.EQ else ir.Not(equal)
    others = [each for each in sides if not (_is_text(each) or _is_constructor(each))]
    null = [ir.TRUE if _is_null(each) else ir.IsNull(each) for each in others]
    known = ir.And((*map(ir.Not, null), equal))
    same = ir.Or((known, ir.And(tuple(null)))) if len(null) == len(sides) == 2 else known
    return same if op is ir.ComparisonOp.NOT_DISTINCT else ir.Not(same)


def _equal_ranges(
    sides: tuple[ir.Operand, ir.Operand],
    aliases: Sequence[str | None],
    fields: Sequence[Field | None],
) -> ir.Predicate:
    one, other = _ranges(sides, aliases, fields)
    same = (
        ir.Comparison(ir.ComparisonOp.NOT_DISTINCT, one.lower, other.lower),
        ir.Comparison(ir.ComparisonOp.NOT_DISTINCT, one.upper, other.upper),
        _equal(one.from_lower, other.from_lower),
        _equal(one.to_upper, other.to_upper),
    )
    filled = (ir.Not(one.empty), ir.Not(other.empty))
    return _strict(ir.Or((ir.And((one.empty, other.empty)), ir.And((*filled, *same)))), one, other)


def _ranges(
    sides: tuple[ir.Operand, ir.Operand],
    aliases: Sequence[str | None],
    fields: Sequence[Field | None],
) -> tuple[_Range, _Range]:
    type_ = _bound_type(fields)
    one, other = (_range(each, alias, type_) for each, alias in zip(sides, aliases, strict=True))
    return one, other


def _ordered(op: ir.ComparisonOp, one: _Range, other: _Range) -> ir.Predicate:
    swaps = op.holds_if_greater is not op.holds_if_equal
    less = _less(other, one) if swaps else _less(one, other)
    return ir.Not(less) if op.holds_if_equal else less


def _less(one: _Range, other: _Range) -> ir.Predicate:
    """Whether a range comes first: by its lower bound, then its upper one; `empty` is least."""
    begins_first = ir.Not(_not_above(other, one))
    ends_first = ir.And((_not_above(one, other), ir.Not(_not_below(one, other))))
    filled = ir.And((ir.Not(one.empty), ir.Not(other.empty), ir.Or((begins_first, ends_first))))
    return _strict(ir.Or((ir.And((one.empty, ir.Not(other.empty))), filled)), one, other)


def _of_range(name: str, span: _Range) -> ir.Operand:
    side = span.lower if name.startswith("lower") else span.upper
    inclusive = span.from_lower if name.startswith("lower") else span.to_upper
    if name == "isempty":
        return ir.Condition(span.empty)
    if name in ("lower", "upper"):
        return ir.Case(((ir.Not(span.empty), side),), ir.Literal(None))
    if name.endswith("_inf"):
        return ir.Condition(_strict(ir.And((ir.Not(span.empty), ir.IsNull(side))), span))
    known = ir.And((ir.Not(span.empty), ir.Not(ir.IsNull(side)), inclusive))
    return ir.Condition(_strict(known, span))


def _between(
    name: str, arguments: tuple[ir.Operand, ...], aliases: list[str | None], type_: LogicalType
) -> ir.Operand:
    if any(map(_is_null, arguments)):
        return ir.Condition(_NULL)
    one = _range(arguments[0], aliases[0], type_)
    is_range = aliases[1] == RANGE or _is_text(arguments[1]) or _is_constructor(arguments[1])
    if name == "list_contains_all" and not is_range:
        return ir.Condition(_contains_value(one, arguments[1]))
    other = _range(arguments[1], aliases[1], type_)
    if name == "list_overlaps":
        meets = (ir.Not(one.empty), ir.Not(other.empty), _reaches(one, other), _reaches(other, one))
        return ir.Condition(_strict(ir.And(meets), one, other))
    inside = ir.And((ir.Not(one.empty), _not_above(one, other), _not_below(one, other)))
    return ir.Condition(_strict(ir.Or((other.empty, inside)), one, other))


def _contains_value(span: _Range, value: ir.Operand) -> ir.Predicate:
    less, equal = ir.ComparisonOp.LT, ir.ComparisonOp.EQ
    above = ir.Or((
        ir.IsNull(span.lower),
        ir.Comparison(less, span.lower, value),
        ir.And((ir.Comparison(equal, span.lower, value), span.from_lower)),
    ))  # fmt: skip
    below = ir.Or((
        ir.IsNull(span.upper),
        ir.Comparison(ir.ComparisonOp.GT, span.upper, value),
        ir.And((ir.Comparison(equal, span.upper, value), span.to_upper)),
    ))  # fmt: skip
    return _strict(ir.And((ir.Not(span.empty), above, below)), span, value)


def _reaches(one: _Range, other: _Range) -> ir.Predicate:
    """Whether `one` begins no later than `other` ends; both have values."""
    touch = ir.Comparison(ir.ComparisonOp.EQ, one.lower, other.upper)
    return ir.Or((
        ir.IsNull(one.lower),
        ir.IsNull(other.upper),
        ir.Comparison(ir.ComparisonOp.LT, one.lower, other.upper),
        ir.And((touch, one.from_lower, other.to_upper)),
    ))  # fmt: skip


def _not_above(one: _Range, other: _Range) -> ir.Predicate:
    """Whether `one` begins no later than `other`."""
    same = ir.Comparison(ir.ComparisonOp.EQ, one.lower, other.lower)
    starts = ir.Or((
        ir.Comparison(ir.ComparisonOp.LT, one.lower, other.lower),
        ir.And((same, ir.Or((one.from_lower, ir.Not(other.from_lower))))),
    ))  # fmt: skip
    return ir.Or((ir.IsNull(one.lower), ir.And((ir.Not(ir.IsNull(other.lower)), starts))))


def _not_below(one: _Range, other: _Range) -> ir.Predicate:
    """Whether `one` ends no earlier than `other`."""
    same = ir.Comparison(ir.ComparisonOp.EQ, one.upper, other.upper)
    ends = ir.Or((
        ir.Comparison(ir.ComparisonOp.GT, one.upper, other.upper),
        ir.And((same, ir.Or((one.to_upper, ir.Not(other.to_upper))))),
    ))  # fmt: skip
    return ir.Or((ir.IsNull(one.upper), ir.And((ir.Not(ir.IsNull(other.upper)), ends))))


def _range(operand: ir.Operand, alias: str | None, type_: LogicalType) -> _Range:
    """The parts of a column, or of constant text such as `[1,5)`; InvalidPredicate for others."""
    if alias == RANGE:
        return _Range.of(operand)
    if _is_constructor(operand):
        return _constructed(operand, type_)
    text = operand.value if isinstance(operand, ir.Literal) else None
    if isinstance(text, str) and text.strip().lower() == "empty":
        return _NOTHING
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidPredicate(
            "a range is compared with a column of ranges, with text such as '[1,5)' or 'empty', or "
            "with a range of constants such as int8range(1, 5)"
        )
    return _constant(match, type_)


def _constant(match: re.Match[str], type_: LogicalType) -> _Range:
    """A constant range in the form that stored ones have."""
    texts = [each.strip('"') or None for each in (match[2], match[3])]
    lower, upper = (None if text is None else _parsed(ir.Literal(text), type_) for text in texts)
    return _in_form((lower, upper), match[1] + match[4], type_, match[0])


def _constructed(call: ir.Call, type_: LogicalType) -> _Range:
    """The range of `int8range(1, 5)`, whose ends are constants; InvalidPredicate for others."""
    name, ends = call.function, call.arguments[:2]
    form = call.arguments[2] if len(call.arguments) > 2 else ir.Literal("[)")
    if not isinstance(type_, _CONSTRUCTORS[name]):
        raise InvalidPredicate(
            f"{name} does not construct ranges of {type_name(type_)}; use the function of that type"
        )
    constants = [end for end in ends if isinstance(end, ir.Literal)]
    if len(call.arguments) not in (2, 3) or len(constants) < 2:
        raise InvalidPredicate(f"{name} takes two constants, and a third one such as '[)'")
    if not isinstance(form, ir.Literal) or form.value not in ("[)", "[]", "(]", "()"):
        raise InvalidPredicate(f"the third argument of {name} is one of '[)', '[]', '(]', '()'")
    lower, upper = (
        None if _is_null(end) else _parsed(end, type_)
        for end in ends
        if isinstance(end, ir.Literal)
    )
    return _in_form((lower, upper), str(form.value), type_, name)


def _parsed(constant: ir.Literal, type_: LogicalType) -> tuple[Any, ir.Literal]:
    """The value of a constant as a bound, and the constant; InvalidPredicate for another type."""
    if constant.type is not None and constant.type == type_:
        return constant.value, constant
    is_number = isinstance(constant.value, int | decimal.Decimal) and not isinstance(
        constant.value, bool
    )
    if not _is_text(constant) and not (is_number and isinstance(type_, _NUMBERS)):
        raise InvalidPredicate(
            f"{constant.value!r} cannot be a bound of a range of {type_name(type_)}; write a "
            "constant of that type, in quotes if it is a day or a time"
        )
    text = str(constant.value)
    value = parse_text(text, type_)
    keeps = isinstance(type_, Int | Date)
    return value, ir.Literal(value, type_) if keeps else ir.Literal(text)


def _in_form(
    bounds: tuple[tuple[Any, ir.Literal] | None, tuple[Any, ir.Literal] | None],
    brackets: str,
    type_: LogicalType,
    shown: str,
) -> _Range:
    """The range between these bounds, by its brackets, in the form that stored ones have."""
    lower, upper = (None if each is None else each[0] for each in bounds)
    begins, ends = brackets[0] == "[" and lower is not None, brackets[1] == "]" and bool(bounds[1])
    if _is_above(lower, upper):
        raise InvalidPredicate(f"the lower bound of the range {shown!r} is above the upper one")
    steps = isinstance(type_, Int | Date)
    if steps and isinstance(lower, int):
        lower, begins = lower + (not begins), True
    if steps and isinstance(upper, int):
        upper, ends = upper + ends, False
    if _is_above(lower, upper) or (lower is not None and lower == upper and not (begins and ends)):
        return _NOTHING
    low, high = (
        ir.Literal(value, type_) if steps or each is None else each[1]
        for value, each in zip((lower, upper), bounds, strict=True)
    )
    start, stop = (ir.TRUE if flag else ir.FALSE for flag in (begins, ends))
    return _Range(low, high, start, stop, ir.FALSE)


def _is_above(lower: Any, upper: Any) -> bool:
    return lower is not None and upper is not None and bool(lower > upper)


def _bound_type(fields: Sequence[Field | None]) -> LogicalType:
    """The type of the bounds of the first range."""
    types = (field.type for field in fields if field is not None and field.alias == RANGE)
    struct = next(types)
    assert isinstance(struct, Struct)
    return struct.fields[0].type


def _with_elements(
    name: str,
    arguments: tuple[ir.Operand, ...],
    fields: Sequence[Field | None],
    semantics: Semantics,
) -> tuple[ir.Operand, ...]:
    """The arguments; text that stands for an array is replaced by its elements."""
    if name not in ("list_contains_all", "list_overlaps"):
        return arguments
    type_ = next(field.type for field in fields if field is not None and field.alias == ARRAY)
    return tuple(
        array_elements(str(each.value), type_, semantics)
        if isinstance(each, ir.Literal) and _is_text(each)
        else each
        for each in arguments
    )


def _of_array(
    name: str, arguments: tuple[ir.Operand, ...], aliases: list[str | None]
) -> ir.Operand | None:
    values = [
        ir.FieldAccess(each, "elements") if alias == ARRAY else each
        for each, alias in zip(arguments, aliases, strict=True)
    ]
    if name in ("list_length", "list_contains_all", "list_overlaps", "equals_any"):
        return ir.Call(name, tuple(values))
    dimensions = ir.FieldAccess(arguments[0], "dimensions")
    if name == "array_ndims" and len(arguments) == 1:
        return ir.Call("nullif", (ir.Call("list_length", (dimensions,)), ir.Literal(0, Int(64))))
    if name == "list_element" and len(arguments) == 2:
        return _item(dimensions, *values)
    if name not in ("array_lower", "array_upper", "array_length") or len(arguments) != 2:
        return None
    place = arguments[1].value if isinstance(arguments[1], ir.Literal) else None
    if type(place) is not int:
        raise InvalidPredicate(f"{name} takes an array and the constant number of a dimension")
    if place < 1:
        return ir.Literal(None, Int(32))
    one = ir.Call("list_element", (dimensions, ir.Literal(place, Int(64))))
    lower, length = (ir.FieldAccess(one, each) for each in ("lower", "length"))
    if name != "array_upper":
        return lower if name == "array_lower" else length
    return ir.Call("subtract", (ir.Call("add", (lower, length)), ir.Literal(1, Int(64))))


def _item(dimensions: ir.Operand, elements: ir.Operand, subscript: ir.Operand) -> ir.Operand:
    """The item of an array of one dimension at a subscript, which counts from its lower bound."""
    one = ir.Literal(1, Int(64))
    lower = ir.FieldAccess(ir.Call("list_element", (dimensions, one)), "lower")
    place = ir.Call("add", (ir.Call("subtract", (subscript, lower)), one))
    has_one = ir.Comparison(ir.ComparisonOp.EQ, ir.Call("list_length", (dimensions,)), one)
    begins = ir.Comparison(ir.ComparisonOp.GE, place, one)
    item = ir.Call("list_element", (elements, place))
    return ir.Case(((ir.And((has_one, begins)), item),), ir.Literal(None))


def _strict(condition: ir.Predicate, *arguments: _Range | ir.Operand) -> ir.Predicate:
    """The condition, and NULL if an argument is NULL."""
    wholes = [each.whole if isinstance(each, _Range) else each for each in arguments]
    null = [ir.IsNull(each) for each in wholes if each is not None and not _is_constant(each)]
    if not null:
        return condition
    known = ir.And((condition, *(ir.Not(each) for each in null)))
    return ir.Or((known, ir.And((ir.disjoin(null), _NULL))))


def _equal(one: ir.Predicate, other: ir.Predicate) -> ir.Predicate:
    return ir.Or((ir.And((one, other)), ir.And((ir.Not(one), ir.Not(other)))))


def _is_constant(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Literal) and operand.value is not None


def _is_text(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Literal) and isinstance(operand.value, str) and not operand.type


def _is_constructor(operand: ir.Operand) -> TypeGuard[ir.Call]:
    return isinstance(operand, ir.Call) and operand.function in _CONSTRUCTORS


def _is_null(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Literal) and operand.value is None
