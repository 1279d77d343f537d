"""Our tree as a `pyarrow.compute.Expression`: bound first, so that both sides have one type.

Soundness: SQL's NULL is kept where it shows, under NOT and in values; where a condition only keeps
rows, at the top and under AND and OR there, FALSE does as well as NULL and lists stand bare, so
that datasets prune by them. NaN is IEEE's: other engines' order of it is written by `meanings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.pyarrow_exprs import table, zones
from rowsieve.bridges.python_text import recorded
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import (
    And,
    BooleanOperand,
    BoundColumn,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    FalsePredicate,
    FieldAccess,
    InList,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Now,
    Opaque,
    Operand,
    Or,
    Predicate,
    TruePredicate,
    walk,
)
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.literals import scalar
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

_ORDER: Mapping[ComparisonOp, Callable[[Any, Any], Any]] = {
    ComparisonOp.EQ: lambda a, b: a == b,
    ComparisonOp.NE: lambda a, b: a != b,
    ComparisonOp.LT: lambda a, b: a < b,
    ComparisonOp.LE: lambda a, b: a <= b,
    ComparisonOp.GT: lambda a, b: a > b,
    ComparisonOp.GE: lambda a, b: a >= b,
}
_TO_PYARROW = {
    ours: theirs
    for rows in (table.ARITHMETIC, table.TEXT, table.ROUNDING, table.SIGNS, table.SEARCHES)
    for theirs, ours in rows.items()
} | {ours: theirs for theirs, ours in table.TRIMS.items()}
_PARTS = {ours: theirs for theirs, ours in table.PARTS.items()}
_MOST_DIGITS = 38


def expression_of(root: Predicate) -> Expression:
    """The bound condition, or `UnsupportedOperation` with the reason."""
    return _predicate(root, judging=True)


def conjunction(terms: Sequence[Expression]) -> Expression:
    """AND of expressions; TRUE of none."""
    return _balanced(list(terms), all_of=True)


def _predicate(node: Predicate, *, judging: bool = False) -> Expression:
    """`judging`: NULL and FALSE are one, as at the top."""
    match node:
        case TruePredicate():
            return _constant(pa.scalar(value=True))
        case FalsePredicate():
            return _constant(pa.scalar(value=False))
        case And(terms=terms):
            return _balanced([_predicate(term, judging=judging) for term in terms], all_of=True)
        case Or(terms=terms):
            return _balanced([_predicate(term, judging=judging) for term in terms], all_of=False)
        case Not(term=term):
            return ~_predicate(term)
        case Comparison(op=op, left=left, right=right):
            return _comparison(op, left, right)
        case InList():
            return _in_list(node, judging=judging)
        case IsNull(operand=operand):
            return _operand(operand).is_null()
        case Like():
            return _like(node)
        case BooleanOperand(operand=operand):
            return _operand(operand)
        case Opaque(description=description):
            raise UnsupportedOperation(f"{description} is another engine's condition")
        case _:
            assert_never(node)


def _operand(node: Operand) -> Expression:
    match node:
        case BoundColumn(name=name):
            return _pc().field(name)
        case Column(name=name):
            raise AssertionError(f"the column {name!r} is not bound")
        case Literal():
            return _constant(scalar(node))
        case Call():
            return _call(node)
        case Cast():
            return _cast(node)
        case FieldAccess():
            return _member(node)
        case Case():
            return _case(node)
        case Now():
            raise UnsupportedOperation("an expression of pyarrow has no time of its own; pass it")
        case Condition(predicate=predicate):
            return _predicate(predicate)
        case _:
            assert_never(node)


def _comparison(op: ComparisonOp, left: Operand, right: Operand) -> Expression:
    types = type_of(left), type_of(right)
    for type_ in types:
        if is_nested(type_) or isinstance(type_, Json):
            raise UnsupportedOperation(f"values of {type_name(type_)} are not compared")
    _check_digits(types)
    a, b = _operand(left), _operand(right)
    if op not in (ComparisonOp.DISTINCT, ComparisonOp.NOT_DISTINCT):
        return _ORDER[op](a, b)
    same = (a.is_null() & b.is_null()) | (~a.is_null() & ~b.is_null() & (a == b))
    return same if op is ComparisonOp.NOT_DISTINCT else ~same


def _check_digits(types: Sequence[LogicalType]) -> None:
    """Pyarrow brings decimals to one type, which may have no room."""
    decimals = [type_ for type_ in types if isinstance(type_, Decimal)]
    if len(set(decimals)) > 1:
        scale = max(type_.scale for type_ in decimals)
        if scale + max(type_.precision - type_.scale for type_ in decimals) > _MOST_DIGITS:
            raise UnsupportedOperation("decimals that have no type in common")


def _in_list(node: InList, *, judging: bool) -> Expression:
    members = node.values.array
    has_null = members.null_count > 0
    members = members.drop_null()
    if pa.types.is_floating(members.type):
        members = members.filter(pc.invert(pc.is_nan(members)))  # nothing is equal to NaN
    operand = _operand(node.operand)
    if not len(members) and pa.types.is_null(members.type):
        members = pa.array([], arrow_type(type_of(node.operand)))
    found = operand.isin(members)
    if judging:
        return found
    none = _constant(pa.scalar(None, pa.bool_()))
    return found | none if has_null else found | (operand.is_null() & none)


def _like(node: Like) -> Expression:
    pieces: list[str] = []
    characters = iter(node.pattern)
    parse_pattern(node.pattern, node.escape)
    for character in characters:
        escaped = character == node.escape
        plain = next(characters) if escaped else character
        pieces.append(f"\\{plain}" if plain == "\\" or (escaped and plain in "%_") else plain)
    return _pc().match_like(_operand(node.operand), "".join(pieces), ignore_case=node.ignore_case)


def _cast(node: Cast) -> Expression:
    source, target = type_of(node.operand), node.type
    if source == target:
        return _operand(node.operand)
    if isinstance(source, Timestamp) and isinstance(target, Timestamp) and not node.try_:
        return _operand(node.operand).cast(arrow_type(target))  # local times of UTC
    shown = f"a cast of {type_name(source)} to {type_name(target)}"
    kinds = type(source).__name__, type(target).__name__
    narrower = isinstance(source, Float) and target != Float(64)
    zoned = any(isinstance(type_, Timestamp) and type_.utc for type_ in (source, target))
    if node.try_ or kinds not in table.CASTS or narrower or zoned:
        raise UnsupportedOperation(f"{shown} may give other values in pyarrow")
    options = _pc().CastOptions(
        arrow_type(target), allow_float_truncate=True, allow_time_truncate=True
    )
    return _operand(node.operand).cast(options=options)


def _member(node: FieldAccess) -> Expression:
    path: list[str] = []
    inner: Operand = node
    while isinstance(inner, FieldAccess):
        path.append(inner.name)
        inner = inner.operand
    if not isinstance(inner, BoundColumn):
        raise UnsupportedOperation("pyarrow names members of columns only")
    return _pc().field(inner.name, *reversed(path))


def _case(node: Case) -> Expression:
    """Nested `if_else`; all values are computed on all rows, so none may fail."""
    values = [node.otherwise, *(then for _, then in node.branches)]
    for part in (*values, *(when for when, _ in node.branches)):
        if any(map(_may_fail, walk(part))):
            raise UnsupportedOperation("pyarrow computes every branch of a CASE, and one may fail")
    false = _constant(pa.scalar(value=False))
    made = _operand(node.otherwise)
    for when, then in reversed(node.branches):
        made = _pc().if_else(_pc().coalesce(_predicate(when), false), _operand(then), made)
    return made


def _may_fail(node: Node) -> bool:
    if isinstance(node, Cast):
        return True
    quiet = ("coalesce", "extract", "date_trunc", *table.TEXT.values(), *table.SEARCHES.values())
    return isinstance(node, Call) and node.function not in quiet


def _call(node: Call) -> Expression:
    name, result = node.function, type_of(node)
    types = [type_of(argument) for argument in node.arguments]
    constants = [item.value if isinstance(item, Literal) else None for item in node.arguments]
    if name in ("add", "subtract", "multiply", "divide", "negate", "abs"):
        return _arithmetic(node, types, result)
    if name == "coalesce" and all(type_ == result for type_ in types):
        return _pc().coalesce(*map(_operand, node.arguments))
    if name in table.ROUNDING.values() and len(types) == 1 and isinstance(types[0], Float):
        return getattr(_pc(), _TO_PYARROW[name])(_operand(node.arguments[0]))
    if name == "extract" and str(constants[0]) in _PARTS and _is_clock(types[1], constants[0]):
        return getattr(_pc(), _PARTS[str(constants[0])])(_operand(node.arguments[1])).cast(
            pa.int64()
        )
    if name == "date_trunc" and str(constants[0]) in table.UNITS and types[1] == Timestamp():
        return _pc().floor_temporal(_operand(node.arguments[1]), unit=str(constants[0]))
    if name in ("local_time", "instant"):
        return zones.written(node, _operand(node.arguments[1]))
    if isinstance(types[0], String):
        return _text(node, types, constants)
    raise _unknown(node)


def _is_clock(type_: LogicalType, part: object) -> bool:
    return type_ == Timestamp() or (type_ == Date() and part not in ("hour", "minute"))


def _text(node: Call, types: Sequence[LogicalType], constants: Sequence[Any]) -> Expression:
    name, operand = node.function, _operand(node.arguments[0])
    rest = constants[1:]
    if name in table.TEXT.values():
        made = getattr(_pc(), _TO_PYARROW[name])(operand)
        return made.cast(pa.int64()) if name == "length" else made
    if name in table.SEARCHES.values() and isinstance(rest[0], str):
        return getattr(_pc(), _TO_PYARROW[name])(operand, rest[0])
    if name in table.TRIMS.values() and (not rest or isinstance(rest[0], str)):
        return getattr(_pc(), _TO_PYARROW[name])(operand, rest[0] if rest else " ")
    if name == "concat_strict" and all(isinstance(type_, String) for type_ in types):
        return _pc().binary_join_element_wise(*map(_operand, node.arguments), "")
    if name == "replace" and all(isinstance(item, str) for item in rest) and rest[0]:
        return _pc().replace_substring(operand, rest[0], rest[1])
    whole = all(type(item) is int and 0 <= item < 2**31 for item in rest)
    if name == "substr" and whole and rest[0] >= 1:
        start = rest[0] - 1
        return _pc().utf8_slice_codeunits(
            operand, start, start + rest[1] if len(rest) > 1 else None
        )
    raise _unknown(node)


def _arithmetic(node: Call, types: Sequence[LogicalType], result: LogicalType) -> Expression:
    name, sides = node.function, [_operand(argument) for argument in node.arguments]
    alike = all(type_ == result for type_ in types)
    match result:
        case Int() | Float() if alike and name == "divide":
            return (_pc().divide if isinstance(result, Float) else _pc().divide_checked)(*sides)
        case Int() | Float() if alike:
            return getattr(_pc(), _TO_PYARROW[name])(*sides)
        case Decimal(precision=precision) if (
            name in ("add", "subtract", "multiply") and precision < _MOST_DIGITS
        ):
            return getattr(_pc(), _TO_PYARROW[name])(*sides)
        case Decimal() if alike and name in ("negate", "abs"):
            return getattr(_pc(), _TO_PYARROW[name])(*sides)
        case _:
            raise _unknown(node)


def _unknown(node: Call) -> UnsupportedOperation:
    row = next((row for row in table.FUNCTIONS if row.ours.split(" ")[-1] == node.function), None)
    if row is None:
        return UnsupportedOperation(f"the function {node.function!r} has no counterpart in pyarrow")
    return UnsupportedOperation(f"{node.function} means the same in pyarrow only {row.note}")


def _pc() -> Any:
    return recorded(pc, "pc", "import pyarrow.compute as pc")


def _constant(value: pa.Scalar) -> Expression:
    return _pc().scalar(value)


def _balanced(terms: list[Expression], *, all_of: bool) -> Expression:
    """The terms joined two by two: pyarrow recurses as deep as the tree is."""
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        joined = [a & b if all_of else a | b for a, b in pairs]
        terms = joined + terms[len(joined) * 2 :]
    return terms[0] if terms else _constant(pa.scalar(value=all_of))
