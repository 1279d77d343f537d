"""Our tree as an extended expression: bound first, so that both sides have one type.

Engines differ about NaN in comparisons, which Substrait leaves open; so `is_nan` stands beside each
whose outcome could depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.substrait_exprs import table
from rowsieve.bridges.substrait_exprs.lists import options_of
from rowsieve.bridges.substrait_exprs.types import literal_message, type_message
from rowsieve.bridges.substrait_exprs.wire import number, part, parts
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
    Not,
    Now,
    Opaque,
    Operand,
    Or,
    Predicate,
    TruePredicate,
)
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import (
    Bool,
    Date,
    Float,
    Int,
    List,
    LogicalType,
    Map,
    String,
    Struct,
    Time,
    Timestamp,
    is_nested,
    type_name,
)
from rowsieve.types.schema import Schema

_FILES = "https://github.com/substrait-io/substrait/blob/main/extensions/{}.yaml"
_NAMES = "extension:io.substrait:{}"
_EXTENSION_TYPES = "https://github.com/apache/arrow/blob/main/format/substrait/extension_types.yaml"
_VERSION = 44  # the minor version whose messages these are
_TEXT = ("starts_with", "ends_with", "contains")
_OPS = {op: name for name, op in table.COMPARISONS.items()}
_TYPE_ANCHOR = 1 << 10  # of the file of types, apart from those of functions


class Writer:
    """Writes bound trees that are meant under `Semantics.SUBSTRAIT` over one schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._places = {field.id: place for place, field in enumerate(schema)}
        self._files: dict[str, int] = {}
        self._functions: dict[tuple[str, str], int] = {}

    def message(self, terms: list[bytes]) -> bytes:
        """AND of the expressions as a whole message."""
        root = self._balanced(terms, "and")
        user_types: dict[str, int] = {}
        base = self._base(user_types)
        files = {
            _FILES.format(name): (anchor, _NAMES.format(name))
            for name, anchor in self._files.items()
        }
        made = [
            part(1, number(1, anchor), part(2, uri.encode())) for uri, (anchor, _) in files.items()
        ]
        made += [
            part(8, number(1, anchor), part(2, urn.encode())) for anchor, urn in files.values()
        ]
        if user_types:
            made.append(part(1, number(1, _TYPE_ANCHOR), part(2, _EXTENSION_TYPES.encode())))
        for name, anchor in user_types.items():
            declared = (number(1, _TYPE_ANCHOR), number(2, anchor), part(3, name.encode()))
            made.append(part(2, part(1, *declared)))
        for (file, name), anchor in self._functions.items():
            at = self._files[file]
            declared = (number(1, at), number(2, anchor), part(3, name.encode()))
            made.append(part(2, part(3, *declared, number(4, at))))
        made.append(part(3, part(1, root), part(3, b"filter")))
        made.append(part(4, base))
        made.append(part(7, number(2, _VERSION), part(5, b"rowsieve")))
        return b"".join(made)

    def _base(self, user_types: dict[str, int]) -> bytes:
        names: list[bytes] = []

        def name_members(type_: LogicalType) -> None:
            match type_:
                case Struct(fields=members):
                    for member in members:
                        names.append(member.name.encode())
                        name_members(member.type)
                case List(element=element):
                    name_members(element.type)
                case Map(key=key, value=value):
                    name_members(key.type)
                    name_members(value.type)

        for field in self._schema:
            names.append(field.name.encode())
            name_members(field.type)
        types = [
            type_message(field.type, nullable=field.nullable, user_types=user_types)
            for field in self._schema
        ]
        return parts(1, names) + part(2, parts(1, types), number(3, 2))

    # Predicates

    def predicate(self, node: Predicate) -> bytes:
        """The condition as an `Expression`, or `UnsupportedOperation` with the reason."""
        match node:
            case TruePredicate() | FalsePredicate():
                return self._constant(Literal(isinstance(node, TruePredicate), Bool()))
            case And(terms=terms):
                return self._balanced([self.predicate(term) for term in terms], "and")
            case Or(terms=terms):
                return self._balanced([self.predicate(term) for term in terms], "or")
            case Not(term=term):
                return self._not(self.predicate(term))
            case Comparison(op=op, left=left, right=right):
                return self._comparison(op, left, right)
            case InList():
                return self._in_list(node)
            case IsNull(operand=operand):
                return self._judged("is_null", self.operand(operand))
            case Like():
                return self._like(node)
            case BooleanOperand(operand=operand):
                return self.operand(operand)
            case Opaque(description=description):
                raise UnsupportedOperation(f"{description} is another engine's condition")
            case _:
                assert_never(node)

    def operand(self, node: Operand) -> bytes:
        """The value as an `Expression`, or `UnsupportedOperation` with the reason."""
        match node:
            case BoundColumn(field_id=field_id):
                return self._selected([self._places[field_id]])
            case Column(name=name):
                raise AssertionError(f"the column {name!r} is not bound")
            case Literal():
                return self._constant(node)
            case Call():
                return self._call(node)
            case Cast():
                raise UnsupportedOperation("casts are left to the engine in Substrait")
            case FieldAccess(operand=operand, name=name):
                return self._member(operand, name)
            case Case(branches=branches, otherwise=otherwise):
                clauses = [
                    part(1, self._known(self.predicate(when))) + part(2, self.operand(then))
                    for when, then in branches
                ]
                return part(6, parts(1, clauses), part(2, self.operand(otherwise)))
            case Now():
                raise UnsupportedOperation("Substrait has no now(); bind with a time first")
            case Condition(predicate=predicate):
                return self.predicate(predicate)
            case _:
                assert_never(node)

    def _comparison(self, op: ComparisonOp, left: Operand, right: Operand) -> bytes:
        types = type_of(left), type_of(right)
        if types[0] != types[1] or is_nested(types[0]):
            shown = " with ".join(map(type_name, types))
            raise UnsupportedOperation(f"a comparison of {shown}; the types must be one")
        sides = [self.operand(left), self.operand(right)]
        if isinstance(types[0], Float):
            return self._floats(op, (left, right), sides)
        return self._compared(op, sides)

    def _compared(self, op: ComparisonOp, sides: list[bytes]) -> bytes:
        if op in _OPS:
            return self._boolean(table.COMPARISON, _OPS[op], sides)
        equal = self._boolean(table.COMPARISON, "equal", sides)
        return self._distinct(op, sides, equal)

    def _known(self, condition: bytes) -> bytes:
        """The condition, FALSE where it is NULL."""
        never = self._constant(Literal(value=False, type=Bool()))
        return self._boolean(table.COMPARISON, "coalesce", [condition, never])

    def _distinct(self, op: ComparisonOp, sides: list[bytes], equal: bytes) -> bytes:
        both = self._balanced([self._judged("is_null", side) for side in sides], "and")
        same = self._balanced([both, self._known(equal)], "or")
        return same if op is ComparisonOp.NOT_DISTINCT else self._not(same)

    def _floats(self, op: ComparisonOp, nodes: Sequence[Operand], sides: list[bytes]) -> bytes:
        """A comparison by the rules of IEEE, also where the engine has NaN equal or greatest."""
        values = [node.value for node in nodes if isinstance(node, Literal)]
        if any(isinstance(value, float) and math.isnan(value) for value in values):
            raise UnsupportedOperation("a comparison with NaN itself; write x <> x")
        if nodes[0] == nodes[1] and op in (ComparisonOp.EQ, ComparisonOp.NE):
            nan = self._judged("is_nan", sides[0])
            return nan if op is ComparisonOp.NE else self._not(nan)
        if op in (ComparisonOp.DISTINCT, ComparisonOp.NOT_DISTINCT):
            equal = self._floats(ComparisonOp.EQ, nodes, sides)
            return self._distinct(op, sides, equal)
        open_ = [
            self._judged("is_nan", side)
            for node, side in zip(nodes, sides, strict=True)
            if not isinstance(node, Literal)
        ]
        made = self._compared(op, sides)
        if len(open_) == 2 and op is ComparisonOp.NE:
            return self._balanced([made, self._balanced(open_, "and")], "or")
        above = op in (ComparisonOp.GT, ComparisonOp.GE)
        if len(open_) == 2 or (open_ and above and not isinstance(nodes[0], Literal)):
            return self._balanced([made, *map(self._not, open_)], "and")
        return made

    def _in_list(self, node: InList) -> bytes:
        type_ = type_of(node.operand)
        if node.values.type not in (type_, None) or is_nested(type_):
            raise UnsupportedOperation("the members of the list are of another type")
        operand = self.operand(node.operand)
        members = node.values.array
        if isinstance(type_, Float):  # NaN is equal to nothing
            members = members.filter(pc.fill_null(pc.invert(pc.is_nan(members)), fill_value=True))
        if not len(members):
            unknown = self._constant(Literal(None, Bool()))
            return self._balanced([self._judged("is_null", operand), unknown], "and")
        if (options := options_of(members, type_)) is None:
            if isinstance(type_, Date | Time | Timestamp):
                members = members.view(pa.int32() if isinstance(type_, Date) else pa.int64())
            values = members.to_pylist()
            options = parts(2, (self._constant(Literal(value, type_)) for value in values))
        return part(8, part(1, operand), options)

    def _like(self, node: Like) -> bytes:
        pattern = parse_pattern(node.pattern, node.escape)
        operand = self.operand(node.operand)
        rest = parse_pattern(node.pattern.lstrip("%"), node.escape)
        if not node.ignore_case:
            if pattern.is_exact:
                return self._compared(ComparisonOp.EQ, [operand, self._text(pattern.prefix)])
            if pattern.is_prefix:
                return self._found("starts_with", operand, pattern.prefix)
            if node.pattern[0] == "%" and rest.is_exact:
                return self._found("ends_with", operand, rest.prefix)
            if node.pattern[0] == "%" and rest.is_prefix:
                return self._found("contains", operand, rest.prefix)
        raise UnsupportedOperation("a pattern that is more than a part of the text")

    # Operands

    def _call(self, node: Call) -> bytes:
        name, arguments = node.function, node.arguments
        types = [type_of(argument) for argument in arguments]
        value = arguments[-1].value if isinstance(arguments[-1], Literal) else None
        if name in _TEXT and isinstance(value, str) and types == [String(), String()]:
            return self._found(name, self.operand(arguments[0]), value)
        one_type = all(type_ == types[0] for type_ in types)
        if name == "coalesce" and one_type:
            values = [self.operand(item) for item in arguments]
            return self._made(table.COMPARISON, name, values, types[0])
        whole = isinstance(types[0], Int) and types[0].signed and one_type
        if name in ("add", "subtract", "multiply") and whole and type_of(node) == types[0]:
            option = part(1, b"overflow") + part(2, b"ERROR")
            values = [self.operand(item) for item in arguments]
            return self._made(table.ARITHMETIC, name, values, types[0], option)
        shown = ", ".join(map(type_name, types))
        raise UnsupportedOperation(f"the function {name!r} of {shown} has no counterpart there")

    def _member(self, operand: Operand, name: str) -> bytes:
        names = [name]
        while isinstance(operand, FieldAccess):
            names.append(operand.name)
            operand = operand.operand
        if not isinstance(operand, BoundColumn):
            raise UnsupportedOperation("a member of something else than a column")
        places, type_ = [self._places[operand.field_id]], operand.type
        for label in reversed(names):
            assert isinstance(type_, Struct)
            place = next(i for i, field in enumerate(type_.fields) if field.name == label)
            places.append(place)
            type_ = type_.fields[place].type
        return self._selected(places)

    def _selected(self, places: Sequence[int]) -> bytes:
        segment = b""
        for place in reversed(places):
            segment = part(2, number(1, place), part(2, segment) if segment else b"")
        return part(2, part(1, segment), part(4))

    def _constant(self, literal: Literal) -> bytes:
        return part(1, literal_message(literal))

    def _text(self, value: str) -> bytes:
        return self._constant(Literal(value, String()))

    # Calls

    def _found(self, name: str, operand: bytes, value: str) -> bytes:
        option = part(1, b"case_sensitivity") + part(2, b"CASE_SENSITIVE")
        return self._made(table.STRING, name, [operand, self._text(value)], Bool(), option)

    def _judged(self, name: str, operand: bytes) -> bytes:
        return self._boolean(table.COMPARISON, name, [operand])

    def _not(self, operand: bytes) -> bytes:
        return self._boolean(table.BOOLEAN, "not", [operand])

    def _boolean(self, file: str, name: str, arguments: list[bytes]) -> bytes:
        return self._made(file, name, arguments, Bool())

    def _made(
        self, file: str, name: str, arguments: list[bytes], result: LogicalType, *options: bytes
    ) -> bytes:
        self._files.setdefault(file, len(self._files) + 1)
        anchor = self._functions.setdefault((file, name), len(self._functions) + 1)
        type_ = type_message(result, nullable=True, user_types={})
        values = parts(4, (part(3, argument) for argument in arguments))
        return part(3, number(1, anchor), part(3, type_), values, parts(5, options))

    def _balanced(self, terms: list[bytes], name: str) -> bytes:
        """The terms joined two by two: engines recurse as deep as the tree is."""
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            made = [self._boolean(table.BOOLEAN, name, list(pair)) for pair in pairs]
            terms = made + terms[len(made) * 2 :]
        return terms[0] if terms else self._constant(Literal(value=name == "and", type=Bool()))
