"""An extended expression as our tree: the functions by their names, the columns by their places.

Soundness: columns must have the types here that the message says, and the sides of a comparison
one type, as Substrait wants it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from rowsieve.bridges.substrait_exprs import table
from rowsieve.bridges.substrait_exprs.lists import members_of
from rowsieve.bridges.substrait_exprs.types import literal_of_message, type_of_message
from rowsieve.bridges.substrait_exprs.wire import (
    Message,
    Value,
    fields,
    first_part,
    one,
    signed,
    text,
)
from rowsieve.bridges.translation import Exactness, Row
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.ir import (
    FALSE,
    TRUE,
    And,
    BooleanOperand,
    Call,
    Case,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    FalsePredicate,
    FieldAccess,
    InList,
    IsNull,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    TruePredicate,
    ValueSet,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Bool,
    Date,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Struct,
    Time,
    Timestamp,
    type_name,
)
from rowsieve.types.schema import Schema

_DEPTH = 100
_LITERAL, _SELECTION, _CALL, _IF, _LIST = 1, 2, 3, 6, 8
_STANDARD = re.compile(
    r"(?:extension:io\.substrait:|.*substrait-io/substrait/.*/|/)(functions_\w+?)(?:\.yaml)?"
)
_HELD = {Date: pa.int32(), Time: pa.int64(), Timestamp: pa.int64()}


class Source:
    """One message, whose columns are those of a schema."""

    def __init__(self, message: bytes, schema: Schema) -> None:
        whole = fields(message)
        found = [fields(item) for item in whole.get(3, [])]
        if len(found) != 1 or 1 not in found[0] or 4 not in whole:
            raise InvalidPredicate(
                "these bytes are no extended expression of Substrait's with one expression and the "
                "schema of its input; make one message of each expression"
            )
        self._root: Value = one(found[0], 1)
        self._schema = schema
        self._functions = dict(_functions(whole))
        self._columns = _columns(fields(one(whole, 4)))
        self._depth = 0

    def conditions(self) -> list[Value]:
        """The terms of the AND at the top, in the order written."""
        return self._chain(self._root, "and")

    def shown(self, expression: Value) -> str:
        """What kind of expression it is."""
        kind, content = _kind(expression)
        if kind == _CALL:
            return f"{self._function(fields(content))[1]}(…)"
        row = table.EXPRESSIONS.get(kind)
        return row.foreign if row else f"kind {kind}"

    def predicate(self, expression: Value) -> Predicate:
        """The expression as a condition."""
        node = self._node(expression)
        if isinstance(node, Condition):
            return node.predicate
        if isinstance(node, Literal) and isinstance(node.value, bool):
            return TRUE if node.value else FALSE
        return node if isinstance(node, Predicate) else BooleanOperand(node)

    def operand(self, expression: Value) -> Operand:
        """The expression as a value."""
        node = self._node(expression)
        if isinstance(node, BooleanOperand):
            return node.operand
        return Condition(node) if isinstance(node, Predicate) else node

    def _chain(self, expression: Value, name: str) -> list[Value]:
        found: list[Value] = []
        stack = [expression]
        while stack:
            item = stack.pop()
            kind, content = _kind(item)
            inner = fields(content) if kind == _CALL else {}
            if inner and self._function(inner) == (table.BOOLEAN, name):
                stack.extend(reversed(_arguments(inner)))
            else:
                found.append(item)
        return found

    def _node(self, expression: Value) -> Predicate | Operand:
        self._depth += 1
        try:
            if self._depth > _DEPTH:
                raise UnsupportedOperation(f"it nests deeper than {_DEPTH} levels")
            kind, content = _kind(expression)
            row = table.EXPRESSIONS.get(kind)
            if row is None or row.reads is not Exactness.EXACT:
                shown = row.foreign if row else f"expression of kind {kind}"
                raise UnsupportedOperation(f"{shown}: {row.note if row else 'not known here'}")
            if kind == _LIST:
                return self._listed(content)
            inner = fields(content)
            match kind:
                case 1:
                    return literal_of_message(inner)
                case 2:
                    return self._selected(inner)
                case 3:
                    return self._call(expression, inner)
                case 6:
                    return self._case(inner)
                case _:
                    raise AssertionError(kind)
        finally:
            self._depth -= 1

    # Columns

    def _selected(self, inner: Message) -> Operand:
        if 1 not in inner or 3 in inner or 5 in inner:
            raise UnsupportedOperation("a reference to something else than a column of the input")
        segment = fields(one(inner, 1))
        places: list[int] = []
        while segment:
            if 2 not in segment:
                raise UnsupportedOperation("a reference into a list or a map")
            step = fields(one(segment, 2))
            places.append(signed(one(step, 1, 0)))
            segment = fields(one(step, 2)) if 2 in step else {}
        return self._column(places)

    def _column(self, places: Sequence[int]) -> Operand:
        if not places:
            raise InvalidPredicate("a reference of a Substrait message names no column")
        if not 0 <= places[0] < len(self._columns):
            raise InvalidPredicate(f"a Substrait message has no column at the place {places[0]}")
        name, said = self._columns[places[0]]
        type_ = self._schema.field(name).type
        told, members = type_of_message(said)
        if told is not None and told != (String() if type_ == Json() else type_):
            raise UnsupportedOperation(
                f"the column {name!r} is {type_name(told)} there and {type_name(type_)} here"
            )
        if told is None and (isinstance(type_, Struct) is not bool(members)):
            unsigned = isinstance(type_, Int) and not type_.signed
            if not unsigned:
                raise UnsupportedOperation(f"the column {name!r} has a type without a counterpart")
        operand: Operand = Column(name)
        for place in places[1:]:
            if not isinstance(type_, Struct) or not 0 <= place < len(type_.fields):
                raise UnsupportedOperation(f"no member at the place {place} in {type_name(type_)}")
            told, _ = type_of_message(members[place] if place < len(members) else {})
            member = type_.fields[place]
            if told != member.type:
                raise UnsupportedOperation(f"the member {member.name!r} has another type here")
            operand, type_, members = FieldAccess(operand, member.name), member.type, []
        return operand

    # Values

    def _case(self, inner: Message) -> Operand:
        branches = []
        for item in inner.get(1, []):
            clause = fields(item)
            if 1 not in clause or 2 not in clause:
                raise InvalidPredicate("an if_then of a Substrait message lacks a part")
            when = self.predicate(one(clause, 1))
            if not _never_null(when):
                raise UnsupportedOperation("if_then on what may be NULL; coalesce it with FALSE")
            branches.append((when, self.operand(one(clause, 2))))
        if not branches:
            raise InvalidPredicate("an if_then of a Substrait message has no branch")
        otherwise = self.operand(one(inner, 2)) if 2 in inner else Literal(None)
        self._one_type("if_then", [*(then for _, then in branches), otherwise])
        return Case(tuple(branches), otherwise)

    def _listed(self, content: Value) -> Predicate:
        value, options = first_part(content)
        inner = {} if value else fields(content)
        if not value and 1 not in inner:
            raise InvalidPredicate("a singular_or_list of a Substrait message has no value")
        operand = self.operand(value or one(inner, 1))
        type_ = self._type(operand)
        if type_ is None:
            raise UnsupportedOperation("a list beside a NULL without a type")
        if value:
            if (members := members_of(options, type_)) is not None:
                return InList(operand, ValueSet(members, type_))
            inner = fields(content)
        if 2 not in inner:
            return FALSE  # an OR of nothing, of NULL as well
        values = []
        for item in inner[2]:
            kind, content = _kind(item)
            if kind != _LITERAL:
                raise UnsupportedOperation("singular_or_list of constants only; write OR")
            literal = literal_of_message(fields(content))
            if literal.type != type_:
                raise UnsupportedOperation("the members of a list are of another type")
            values.append(literal.value)
        storage = arrow_type(type_)
        held = _HELD.get(type(type_), storage)
        return InList(operand, ValueSet(pa.array(values, held).view(storage), type_))

    # Functions

    def _call(self, expression: Value, inner: Message) -> Predicate | Operand:
        file, name = self._function(inner)
        row = table.FUNCTIONS.get((file, name))
        if row is None or row.reads is not Exactness.EXACT:
            reason = row.note if row else "it has no counterpart here"
            raise UnsupportedOperation(f"the function {name} of {file}: {reason}")
        if (file, name) in ((table.BOOLEAN, "and"), (table.BOOLEAN, "or")):
            terms = tuple(self.predicate(item) for item in self._chain(expression, name))
            return And(terms) if name == "and" else Or(terms)
        arguments = _arguments(inner)
        if name == "not":
            _expect(name, arguments, 1)
            return Not(self.predicate(arguments[0]))
        operands = [self.operand(item) for item in arguments]
        options = dict(_options(inner))
        if name in table.COMPARISONS or name == "xor":
            _expect(name, operands, 2)
            types = self._one_type(name, operands)
            if name == "xor" and types != Bool():
                raise UnsupportedOperation("xor of something else than booleans")
            return Comparison(table.COMPARISONS.get(name, ComparisonOp.NE), *operands)
        if file == table.STRING:
            return self._text(name, operands, options)
        if file == table.ARITHMETIC:
            return self._arithmetic(row, operands, options)
        if name == "coalesce":
            self._one_type(name, operands)
            return Call(name, tuple(operands))
        _expect(name, operands, 1)
        return self._judged(name, operands[0])

    def _judged(self, name: str, operand: Operand) -> Predicate:
        if name == "is_null":
            return IsNull(operand)
        if name == "is_not_null":
            return Not(IsNull(operand))
        type_ = self._type(operand)
        if not isinstance(type_, Float):
            raise UnsupportedOperation(f"{name} of something else than a float")
        if name == "is_nan":
            return Comparison(ComparisonOp.NE, operand, operand)
        ends = Literal(-math.inf, type_), Literal(math.inf, type_)
        above = Comparison(ComparisonOp.GT, operand, ends[0])
        return And((above, Comparison(ComparisonOp.LT, operand, ends[1])))

    def _text(self, name: str, operands: list[Operand], options: dict[str, list[str]]) -> Operand:
        _expect(name, operands, 2)
        part = operands[1]
        if options.get("case_sensitivity", ["CASE_SENSITIVE"]) != ["CASE_SENSITIVE"]:
            raise UnsupportedOperation(f"{name} that may ignore the case of letters")
        if self._type(operands[0]) != String() or not isinstance(part, Literal):
            raise UnsupportedOperation(f"{name} of a text and a constant part only")
        if not isinstance(part.value, str):
            raise UnsupportedOperation(f"{name} of a text and a constant part only")
        return Call(name, tuple(operands))

    def _arithmetic(
        self, row: Row, operands: list[Operand], options: dict[str, list[str]]
    ) -> Operand:
        _expect(row.foreign, operands, 2)
        if not isinstance(self._one_type(row.foreign, operands), Int):
            raise UnsupportedOperation(f"{row.foreign} of something else than whole numbers")
        if options.get("overflow") != ["ERROR"]:
            raise UnsupportedOperation(f"{row.foreign} whose overflow is no ERROR")
        return Call(row.ours, tuple(operands))

    def _function(self, inner: Message) -> tuple[str, str]:
        anchor = signed(one(inner, 1, 0))
        if anchor not in self._functions:
            raise InvalidPredicate(f"a Substrait message calls a function {anchor} without a name")
        return self._functions[anchor]

    # Types

    def _type(self, operand: Operand) -> LogicalType | None:
        match operand:
            case Column(name=name):
                return self._schema.field(name).type
            case Literal(type=type_):
                return type_
            case Condition():
                return Bool()
            case _:
                return bind_operand(operand, self._schema, Semantics.SUBSTRAIT).type

    def _one_type(self, what: str, operands: Sequence[Operand]) -> LogicalType | None:
        types = {type_ for item in operands if (type_ := self._type(item)) is not None}
        if len(types) > 1:
            shown = " and ".join(sorted(map(type_name, types)))
            raise UnsupportedOperation(f"{what} of {shown}: the types must be one")
        return next(iter(types), None)


def _functions(whole: Message) -> Iterator[tuple[int, tuple[str, str]]]:
    """The functions that the message declares: the standard file and the name by the anchor."""
    files: dict[tuple[int, int], str] = {}
    for at in (1, 8):
        for item in whole.get(at, []):
            inner = fields(item)
            files[at, signed(one(inner, 1, 0))] = text(one(inner, 2, b""))
    for item in whole.get(2, []):
        declared = fields(item)
        if 3 not in declared:
            continue
        inner = fields(one(declared, 3))
        by = (8, signed(one(inner, 4))) if 4 in inner else (1, signed(one(inner, 1, 0)))
        uri = files.get(by) or files.get((1, signed(one(inner, 1, 0))), "")
        match = _STANDARD.fullmatch(uri)
        name = text(one(inner, 3, b"")).partition(":")[0]
        yield signed(one(inner, 2, 0)), (match[1] if match else uri, name)


def _columns(base: Message) -> list[tuple[str, Message]]:
    """The columns of the input with their types; names of members are passed over."""
    names = [text(item) for item in base.get(1, [])]
    types = [fields(item) for item in fields(one(base, 2)).get(1, [])] if 2 in base else []
    found: list[tuple[str, Message]] = []
    at = 0
    for type_ in types:
        if at >= len(names):
            raise InvalidPredicate("a Substrait message names fewer columns than it has types")
        found.append((names[at], type_))
        at += 1 + _members(type_)
    return found


def _members(type_: Message) -> int:
    """How many names the members of a type take, depth first."""
    taken = 0
    stack = [type_]
    while stack:
        for kind, values in stack.pop().items():
            inner = fields(values[-1]) if kind in (25, 27, 28) else {}
            below = [
                fields(item)
                for at in (1, 2)
                for item in inner.get(at, [])
                if isinstance(item, bytes)
            ]
            taken += len(inner.get(1, [])) if kind == 25 else 0
            stack += below
    return taken


def _kind(expression: Value) -> tuple[int, Value]:
    """Which kind of expression it is, and its content, not yet read: lists may be long."""
    message = fields(expression)
    known = [at for at in message if at in table.EXPRESSIONS]
    if len(known) != 1:
        raise InvalidPredicate("a Substrait expression has not the one kind that it must have")
    return known[0], one(message, known[0])


def _arguments(inner: Message) -> list[Value]:
    if 2 in inner:
        raise UnsupportedOperation("a call with the arguments of old messages")
    found = []
    for item in inner.get(4, []):
        argument = fields(item)
        if 3 not in argument:
            raise UnsupportedOperation("an argument that is a type or an enum")
        found.append(one(argument, 3))
    return found


def _options(inner: Message) -> Iterator[tuple[str, list[str]]]:
    for item in inner.get(5, []):
        option = fields(item)
        yield text(one(option, 1, b"")), [text(value) for value in option.get(2, [])]


def _never_null(predicate: Predicate) -> bool:
    """Whether a condition is TRUE or FALSE of every row: engines differ about NULL in if_then."""
    match predicate:
        case And(terms=terms) | Or(terms=terms):
            return all(map(_never_null, terms))
        case Not(term=term):
            return _never_null(term)
        case BooleanOperand(
            operand=Call(function="coalesce", arguments=(*_, Literal(value=bool())))
        ):
            return True
        case _:
            return isinstance(predicate, IsNull | TruePredicate | FalsePredicate)


def _expect(name: str, arguments: Sequence[object], count: int) -> None:
    if len(arguments) != count:
        raise InvalidPredicate(f"{name} takes {count} arguments, not {len(arguments)}")
