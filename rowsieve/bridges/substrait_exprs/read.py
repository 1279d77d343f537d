"""Read an extended expression as our tree.

Soundness: columns must have the types of the message, and the sides of a comparison one type, as
Substrait requires.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain

from rowsieve.bridges.base import TreeReader, supported
from rowsieve.bridges.chains import flattened
from rowsieve.bridges.constant_values import text_of
from rowsieve.bridges.functions import TypedCall, substrait
from rowsieve.bridges.substrait_exprs import function_table
from rowsieve.bridges.substrait_exprs.long_lists import MIN_MEMBERS, members_at_once
from rowsieve.bridges.substrait_exprs.types import literal_of_message, type_of_message
from rowsieve.bridges.substrait_exprs.wire import Message, Value, fields, one, signed, text
from rowsieve.bridges.ticks import from_ticks
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.binding import zoned
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Bool,
    Date,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Struct,
    Timestamp,
    type_name,
)
from rowsieve.types.schema import Schema
from rowsieve.types.time_zones import given_zone

_LITERAL, _CALL = 1, 3
_STANDARD = re.compile(
    r"(?:extension:io\.substrait:|.*substrait-io/substrait/.*/|/)(functions_\w+?)(?:\.yaml)?"
)
_OF_TWO = (*function_table.COMPARISONS, "xor", "local_timestamp")
_NEVER_NULL = ir.IsNull | ir.TruePredicate | ir.FalsePredicate
_Options = Mapping[str, list[str]]


class SubstraitSource(TreeReader[Value]):
    """One message over the columns of a schema."""

    def __init__(self, message: bytes, schema: Schema) -> None:
        super().__init__(schema, Semantics.SUBSTRAIT)
        whole = fields(message)
        expressions = [fields(item) for item in whole.get(3, [])]
        if len(expressions) != 1 or 1 not in expressions[0] or 4 not in whole:
            raise InvalidPredicate(
                "these bytes are not a Substrait extended expression with one expression and the "
                "schema of its input; make one message of each expression"
            )
        self._root: Value = one(expressions[0], 1)
        self._functions = dict(_functions(whole))
        self._columns = _columns(fields(one(whole, 4)))

    def conditions(self) -> list[Value]:
        """Return the terms of the top-level AND, in the order written."""
        return self._chain(self._root, "and")

    def shown(self, expression: Value) -> str:
        """Return the kind of an expression."""
        kind, content = _kind(expression)
        if kind == _CALL:
            return f"{self._function(fields(content))[1]}(…)"
        return function_table.EXPRESSIONS[kind].foreign

    def _chain(self, expression: Value, name: str) -> list[Value]:
        def terms_of(item: Value) -> list[Value] | None:
            kind, content = _kind(item)
            inner = fields(content) if kind == _CALL else {}
            joined = inner and self._function(inner) == (substrait.BOOLEAN, name)
            return [value for _, value in _arguments(inner)] if joined else None

        return flattened(expression, terms_of)

    def read(self, node: Value) -> ir.Predicate | ir.Operand:
        """Read one `Expression`."""
        kind, content = _kind(node)
        supported(row := function_table.EXPRESSIONS[kind], row.foreign)
        inner = fields(content)
        match kind:
            case 1:
                return literal_of_message(inner)
            case 2:
                return self._selected(inner)
            case 3:
                return self._call(node, inner)
            case 6:
                return self._case(inner)
            case _:
                return self._listed(inner)

    # Columns

    def _selected(self, inner: Message) -> ir.Operand:
        if 1 not in inner or 3 in inner or 5 in inner:
            raise UnsupportedOperation("a reference to something other than an input column")
        segment = fields(one(inner, 1))
        places: list[int] = []
        while segment:
            if 2 not in segment:
                raise UnsupportedOperation("a reference into a list or a map")
            step = fields(one(segment, 2))
            places.append(signed(one(step, 1, 0)))
            segment = fields(one(step, 2)) if 2 in step else {}
        if not places or not 0 <= places[0] < len(self._columns):
            raise InvalidPredicate(f"a Substrait message has no column at the place {places[:1]}")
        return self._column(places)

    def _column(self, places: Sequence[int]) -> ir.Operand:
        name, message = self._columns[places[0]]
        type_ = self.schema.field(name).type
        declared, members = type_of_message(message)
        if declared not in (None, String() if isinstance(type_, Json | Enum) else type_):
            raise UnsupportedOperation(
                f"the column {name!r} is {type_name(declared)} there and {type_name(type_)} here"
            )
        is_unsigned = isinstance(type_, Int) and not type_.signed  # an extension of pyarrow's
        if declared is None and isinstance(type_, Struct) is not bool(members) and not is_unsigned:
            raise UnsupportedOperation(f"the column {name!r} has a type without a counterpart")
        operand: ir.Operand = ir.Column(name)
        for place in places[1:]:
            if not isinstance(type_, Struct) or not 0 <= place < len(type_.fields):
                raise UnsupportedOperation(f"no member at the place {place} in {type_name(type_)}")
            member = type_.fields[place]
            if place >= len(members) or type_of_message(members[place])[0] != member.type:
                raise UnsupportedOperation(f"the member {member.name!r} has another type here")
            operand, type_, members = ir.FieldAccess(operand, member.name), member.type, []
        return operand

    # Values

    def _case(self, inner: Message) -> ir.Operand:
        branches = []
        for clause in map(fields, inner.get(1, [])):
            when = self.predicate(one(clause, 1))
            if not _never_null(when):
                raise UnsupportedOperation(
                    "if_then on a condition that may be NULL; coalesce it with FALSE"
                )
            branches.append((when, self.operand(one(clause, 2))))
        if not branches:
            raise InvalidPredicate("an if_then of a Substrait message has no branch")
        otherwise = self.operand(one(inner, 2)) if 2 in inner else ir.Literal(None)
        self.one_type("if_then", [*(then for _, then in branches), otherwise])
        return ir.Case(tuple(branches), otherwise)

    def _listed(self, inner: Message) -> ir.Predicate:
        operand = self.operand(one(inner, 1))
        if (type_ := self.type_of(operand)) is None:
            raise UnsupportedOperation("a list with a NULL that has no type")
        if 2 not in inner:
            return ir.FALSE  # an OR of nothing, of NULL as well
        if (
            len(inner[2]) >= MIN_MEMBERS
            and (members := members_at_once(inner[2], type_)) is not None
        ):
            return ir.InList(operand, ir.ValueSet(members, type_))
        values = [_member(item, type_) for item in inner[2]]
        return ir.InList(operand, ir.ValueSet(from_ticks(values, type_), type_))

    # Functions

    def _call(self, expression: Value, inner: Message) -> ir.Predicate | ir.Operand:
        file, name = self._function(inner)
        supported(function_table.FUNCTIONS.get((file, name)), f"the function {name} of {file}")
        if file == substrait.BOOLEAN and name in ("and", "or"):
            return self.junction(self._chain(expression, name), all_of=name == "and")
        values = _arguments(inner)
        words = [text(value) for kind, value in values if kind == 1]
        arguments = [value for kind, value in values if kind == 3]
        if name == "extract":
            return self._extract(words, [self.operand(item) for item in arguments])
        if words:
            raise UnsupportedOperation(f"{name} with an argument that is an enum")
        row = substrait.ROWS.get(name)
        count = row.count if row else 2 if name in _OF_TWO else 1
        if count not in (None, len(arguments)):
            raise InvalidPredicate(f"{name} takes {count} arguments, not {len(arguments)}")
        if name == "not":
            return ir.Not(self.predicate(arguments[0]))
        operands = [self.operand(item) for item in arguments]
        if name in function_table.COMPARISONS or name == "xor":
            if self.one_type(name, operands) != Bool() and name == "xor":
                raise UnsupportedOperation(
                    "xor is read of booleans only; write <> for other values"
                )
            op = function_table.COMPARISONS.get(name, ir.ComparisonOp.NE)
            return ir.Comparison(op, *operands)
        if row is not None:
            return self._known(row, operands, dict(_options(inner)))
        if name == "local_timestamp":
            return self._local(operands[0], operands[1])
        if name in ("is_null", "is_not_null"):
            null = ir.IsNull(operands[0])
            return null if name == "is_null" else ir.Not(null)
        return self._of_float(name, operands[0])

    def _known(
        self, row: substrait.Function, operands: Sequence[ir.Operand], options: _Options
    ) -> ir.Operand:
        """Read a call by its row; raise for other arguments or options."""
        own_types = [self.type_of(operand) for operand in operands]
        known = next((type_ for type_ in own_types if type_ is not None), String())
        types = [type_ or known for type_ in own_types]
        call = ir.Call(row.name, tuple(operands))
        if not row.has_option(options) or not row.case.holds(TypedCall(call, types, known)):
            raise UnsupportedOperation(f"{row.name} is read for {row.text} only")
        return call

    def _of_float(self, name: str, operand: ir.Operand) -> ir.Predicate:
        if not isinstance(type_ := self.type_of(operand), Float):
            raise UnsupportedOperation(f"{name} of something else than a float")
        if name == "is_nan":
            return ir.Comparison(ir.ComparisonOp.NE, operand, operand)
        ends = ir.Literal(-math.inf, type_), ir.Literal(math.inf, type_)
        above = ir.Comparison(ir.ComparisonOp.GT, operand, ends[0])
        return ir.And((above, ir.Comparison(ir.ComparisonOp.LT, operand, ends[1])))

    def _extract(self, words: list[str], operands: list[ir.Operand]) -> ir.Operand:
        """Read `extract`: the component, ONE if it may count from 0, the time, perhaps its zone."""
        component, *indexing = words or [""]
        tables = {(): function_table.PARTS, ("ONE",): function_table.COUNTED}
        known = tables.get(tuple(indexing), {})
        if component not in known:
            raise UnsupportedOperation(f"extract of {', '.join(words)}")
        moment = self._local(*operands) if len(operands) == 2 else operands[0]
        type_ = self.type_of(moment)
        if len(operands) > 2 or type_ not in (Date(), Timestamp()):
            raise UnsupportedOperation("extract of a value that is not a date or local time")
        return ir.Call("extract", (ir.Literal(known[component], String()), moment))

    def _local(self, moment: ir.Operand, name: ir.Operand) -> ir.Operand:
        named = text_of(name)
        if named is None or self.type_of(moment) != Timestamp(utc=True):
            raise UnsupportedOperation("a time zone that is not constant, or not of an instant")
        return zoned.local_time(given_zone(named).name, moment)

    def _function(self, inner: Message) -> tuple[str, str]:
        anchor = signed(one(inner, 1, 0))
        if anchor not in self._functions:
            raise InvalidPredicate(f"a Substrait message calls a function {anchor} without a name")
        return self._functions[anchor]


def _functions(whole: Message) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield the declared functions: anchor, standard file and name."""
    files = {
        (at, signed(one(inner, 1, 0))): text(one(inner, 2, b""))
        for at in (1, 8)
        for inner in map(fields, whole.get(at, []))
    }
    for declared in map(fields, whole.get(2, [])):
        if 3 not in declared:
            continue
        inner = fields(one(declared, 3))
        old = (1, signed(one(inner, 1, 0)))
        uri = files.get((8, signed(one(inner, 4)))) if 4 in inner else None
        uri = uri or files.get(old, "")
        match = _STANDARD.fullmatch(uri)
        name = text(one(inner, 3, b"")).partition(":")[0]
        yield signed(one(inner, 2, 0)), (match[1] if match else uri, name)


def _columns(base: Message) -> list[tuple[str, Message]]:
    """Return the input's columns with their types; names of struct fields are skipped.

    Substrait also names struct fields inside lists and maps, pyarrow does not.
    """
    names = [text(item) for item in base.get(1, [])]
    types = [fields(item) for item in fields(one(base, 2, b"")).get(1, [])]
    for kinds in ((25,), (25, 27, 28)):
        taken = [1 + _members(type_, kinds) for type_ in types]
        if sum(taken) == len(names):
            starts = accumulate(taken, initial=0)
            return [(names[at], type_) for at, type_ in zip(starts, types, strict=False)]
    raise InvalidPredicate(
        f"a Substrait message names {len(names):,} columns and members, and has types for "
        f"{sum(taken):,}; name each"
    )


def _members(type_: Message, kinds: Sequence[int]) -> int:
    """Return the number of names for a type's struct fields, inside types of these kinds."""
    taken = 0
    stack = [type_]
    while stack:
        for kind, values in stack.pop().items():
            inner = fields(values[-1]) if kind in kinds else {}
            below = chain(inner.get(1, []), inner.get(2, []))
            stack += [fields(item) for item in below if isinstance(item, bytes)]
            taken += len(inner.get(1, [])) if kind == 25 else 0
    return taken


def _kind(expression: Value) -> tuple[int, Value]:
    """Return the kind of an expression and its undecoded content."""
    message = fields(expression)
    known = [at for at in message if at in function_table.EXPRESSIONS]
    if len(known) != 1:
        raise InvalidPredicate("a Substrait expression does not have exactly one kind")
    return known[0], one(message, known[0])


def _arguments(inner: Message) -> list[tuple[int, Value]]:
    """Return the arguments with their kinds: 1 for enums, 3 for values."""
    if 2 in inner:
        raise UnsupportedOperation(
            "a call with `args`, the arguments of old messages; write `arguments`"
        )
    arguments = []
    for argument in map(fields, inner.get(4, [])):
        if len(argument) != 1 or (kind := next(iter(argument))) not in (1, 3):
            raise UnsupportedOperation("a call with a type as its argument; write a cast")
        arguments.append((kind, one(argument, kind)))
    return arguments


def _options(inner: Message) -> Iterator[tuple[str, list[str]]]:
    for option in map(fields, inner.get(5, [])):
        yield text(one(option, 1, b"")), [text(value) for value in option.get(2, [])]


def _member(item: Value, type_: LogicalType) -> ir.PhysicalValue:
    content = fields(item).get(_LITERAL)
    if content is None or len(content) != 1:
        raise UnsupportedOperation("singular_or_list of constants only; write OR")
    literal = literal_of_message(fields(content[0]))
    if literal.type != type_:
        raise UnsupportedOperation("the members of a list are of another type")
    return literal.value


def _never_null(predicate: ir.Predicate) -> bool:
    """Whether a condition is never NULL: engines differ about NULL in if_then."""
    match predicate:
        case ir.And(terms=terms) | ir.Or(terms=terms):
            return all(map(_never_null, terms))
        case ir.Not(term=term):
            return _never_null(term)
        case ir.BooleanOperand(
            operand=ir.Call(function="coalesce", arguments=(*_, ir.Literal(value=bool())))
        ):
            return True
        case _:
            return isinstance(predicate, _NEVER_NULL)
