"""Write a bound tree as an extended expression.

pyarrow reads the result, except functions of time zones, which it lacks.

Soundness: where engines differ about NaN and NULL, the expression tests them explicitly; if it
cannot, the whole condition is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, partial

import pyarrow.compute as pc

from rowsieve.bridges.base import TreeWriter, as_text_test, path_of
from rowsieve.bridges.constant_values import value_of
from rowsieve.bridges.functions import TypedCall, substrait
from rowsieve.bridges.substrait_exprs import function_table
from rowsieve.bridges.substrait_exprs.types import (
    columns_message,
    encoder_of,
    literal_message,
    type_message,
)
from rowsieve.bridges.substrait_exprs.wire import each_part, fields, number, one, part, parts, raw
from rowsieve.bridges.ticks import as_ticks
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import (
    Bool,
    Date,
    Float,
    Int,
    LogicalType,
    String,
    Struct,
    Timestamp,
    is_nested,
    type_name,
)
from rowsieve.types.schema import Schema
from rowsieve.types.time_zones import fixed_offset, name_in, shown_zone

_FILES = "https://github.com/substrait-io/substrait/blob/main/extensions/{}.yaml"
_NAMES = "extension:io.substrait:{}"
_REQUIRED = 2  # a nullability
_VERSION = 44  # the minor version whose messages these are
_OPS = {op: name for name, op in function_table.COMPARISONS.items()}
_LOCAL = (Date(), Timestamp())


class SubstraitWriter(TreeWriter[bytes]):
    """Writes bound trees under `Semantics.SUBSTRAIT` over one schema."""

    engine = "Substrait"

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._places = {field.id: place for place, field in enumerate(schema)}
        self._files: dict[str, int] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._type_message = cache(partial(type_message, columns=tuple(schema)))

    def message(self, terms: list[bytes]) -> bytes:
        """Write the AND of expressions as a message."""
        root = self.junction(terms, all_of=True)
        columns = columns_message(self._schema)
        types = [raw(item) for item in columns.get(1, [])]  # the files of extension types
        at = {file: anchor + len(types) for file, anchor in self._files.items()}
        content = [
            part(field, number(1, anchor), part(2, form.format(name).encode()))
            for field, form in ((1, _FILES), (8, _NAMES))
            for name, anchor in at.items()
        ]
        content += [parts(1, types), parts(2, map(raw, columns.get(2, [])))]
        for (file, name), anchor in self._functions.items():
            declared = (number(1, at[file]), number(2, anchor), part(3, name.encode()))
            content.append(part(2, part(3, *declared, number(4, at[file]))))
        content.append(part(3, part(1, root), part(3, b"filter")))
        base = fields(one(columns, 4))
        names, rows = map(raw, base.get(1, [])), raw(one(base, 2))
        content.append(part(4, parts(1, names), part(2, rows, number(3, _REQUIRED))))
        content.append(part(7, number(2, _VERSION), part(5, b"rowsieve")))
        return b"".join(content)

    # Predicates

    def truth(self, *, value: bool | None) -> bytes:
        """Write a boolean constant."""
        return self.constant(ir.Literal(value, Bool()))

    def pair(self, left: bytes, right: bytes, *, all_of: bool) -> bytes:
        """Write `and` or `or` of two."""
        return self._boolean(substrait.BOOLEAN, "and" if all_of else "or", left, right)

    def negation(self, term: bytes) -> bytes:
        """Write `not`."""
        return self._boolean(substrait.BOOLEAN, "not", term)

    def is_null(self, operand: bytes) -> bytes:
        """Write `is_null`."""
        return self._judged("is_null", operand)

    def comparison(self, op: ComparisonOp, left: ir.Operand, right: ir.Operand) -> bytes:
        """Write a comparison; the sides must have one type."""
        types = type_of(left), type_of(right)
        if types[0] != types[1] or is_nested(types[0]):
            shown = " with ".join(map(type_name, types))
            raise UnsupportedOperation(
                f"a comparison of {shown}: Substrait compares values of one type; cast one of them"
            )
        sides = self.operand(left), self.operand(right)
        if isinstance(types[0], Float):
            return self._floats(op, (left, right), sides)
        return self._compared(op, sides)

    def _compared(self, op: ComparisonOp, sides: tuple[bytes, bytes]) -> bytes:
        if op in _OPS:
            return self._boolean(substrait.COMPARISON, _OPS[op], *sides)
        return self._distinct(op, sides, self._boolean(substrait.COMPARISON, "equal", *sides))

    def _known(self, condition: bytes) -> bytes:
        """Write the condition with FALSE for NULL."""
        return self._boolean(substrait.COMPARISON, "coalesce", condition, self.truth(value=False))

    def _distinct(self, op: ComparisonOp, sides: tuple[bytes, bytes], equal: bytes) -> bytes:
        both = self.pair(*map(self.is_null, sides), all_of=True)
        same = self.pair(both, self._known(equal), all_of=False)
        return same if op is ComparisonOp.NOT_DISTINCT else self.negation(same)

    def _floats(
        self, op: ComparisonOp, nodes: Sequence[ir.Operand], sides: tuple[bytes, bytes]
    ) -> bytes:
        """Write a comparison by IEEE 754, also for engines that order NaN."""
        values = [node.value for node in nodes if isinstance(node, ir.Literal)]
        if any(isinstance(value, float) and math.isnan(value) for value in values):
            raise UnsupportedOperation(
                "a comparison with the constant NaN, which equals nothing; write x <> x to find NaN"
            )
        if nodes[0] == nodes[1] and op in (ComparisonOp.EQ, ComparisonOp.NE):
            nan = self._judged("is_nan", sides[0])
            return nan if op is ComparisonOp.NE else self.negation(nan)
        if op.is_null_safe:
            return self._distinct(op, sides, self._floats(ComparisonOp.EQ, nodes, sides))
        comparison = self._compared(op, sides)
        open_ = [place for place in (0, 1) if not isinstance(nodes[place], ir.Literal)]
        if op is ComparisonOp.NE and len(open_) == 2:
            both = [self._judged("is_nan", side) for side in sides]
            return self.pair(comparison, self.junction(both, all_of=True), all_of=False)
        greater = 0 if op.is_order and op.holds_if_greater else 1
        if len(open_) == 2 or (open_ == [greater] and op.is_order):
            guards = [self._is_number(nodes, sides, place) for place in open_]
            return self.junction([comparison, *guards], all_of=True)
        return comparison

    def _is_number(
        self, nodes: Sequence[ir.Operand], sides: tuple[bytes, bytes], place: int
    ) -> bytes:
        """Write that a side is not NaN or the other is NULL: then the comparison is NULL."""
        number = self.negation(self._judged("is_nan", sides[place]))
        other = nodes[1 - place]
        if isinstance(other, ir.Literal) and other.value is not None:
            return number
        return self.pair(number, self.is_null(sides[1 - place]), all_of=False)

    def in_list(self, node: ir.InList) -> bytes:
        """Write `singular_or_list` with constants of the operand's type."""
        type_ = type_of(node.operand)
        if node.values.type not in (type_, None) or is_nested(type_):
            raise UnsupportedOperation(
                "the members of the list are of another type than the column; cast them to its type"
            )
        operand, members = self.operand(node.operand), node.values.array
        if isinstance(type_, Float):  # NaN is equal to nothing
            members = members.filter(pc.fill_null(pc.invert(pc.is_nan(members)), fill_value=True))
        if not len(members):
            return self.pair(self.is_null(operand), self.truth(value=None), all_of=True)
        encode, null = encoder_of(type_), literal_message(ir.Literal(None, type_))
        contents = (
            null if value is None else encode(value)
            for value in as_ticks(members, type_).to_pylist()
        )
        return part(8, part(1, operand), *each_part(2, each_part(1, contents)))

    def like(self, node: ir.Like) -> bytes:
        """Write a pattern that is equality, a prefix, a suffix or a part."""
        if (plain := as_text_test(node)) is None:
            raise UnsupportedOperation(
                f"LIKE {node.pattern!r}, which asks for more than a prefix, a suffix or a part; "
                "Substrait's functions find these alone"
            )
        name, value = plain
        operand, text = self.operand(node.operand), self.constant(ir.Literal(value, String()))
        if name == "=":
            return self._compared(ComparisonOp.EQ, (operand, text))
        return self._row(substrait.ROWS[name], Bool(), operand, text)

    # Operands

    def column(self, node: ir.BoundColumn) -> bytes:
        """Write a column by its position."""
        return _selected([self._places[node.field_id]])

    def constant(self, literal: ir.Literal) -> bytes:
        """Write a `literal`."""
        return part(1, literal_message(literal))

    def cast(self, node: ir.Cast) -> bytes:
        """Raise: engines differ on values out of range."""
        raise UnsupportedOperation(
            f"engines that read Substrait differ in casts to {type_name(node.type)}; compare the "
            "value itself"
        )

    def case(self, node: ir.Case) -> bytes:
        """Write `if_then`, whose conditions are never NULL."""
        clauses = [
            part(1, self._known(self.predicate(when))) + part(2, self.operand(then))
            for when, then in node.branches
        ]
        return part(6, parts(1, clauses), part(2, self.operand(node.otherwise)))

    def field_access(self, node: ir.FieldAccess) -> bytes:
        """Write the path from a column into structs."""
        column, names = path_of(node, self.engine)
        places, type_ = [self._places[column.field_id]], column.type
        for label in names:
            assert isinstance(type_, Struct)
            place = next(i for i, field in enumerate(type_.fields) if field.name == label)
            places.append(place)
            type_ = type_.fields[place].type
        return _selected(places)

    def call(self, node: ir.Call) -> bytes:
        """Write a function call."""
        name, arguments = node.function, node.arguments
        types = [type_of(argument) for argument in arguments]
        constants = [value_of(item) for item in arguments]
        row = substrait.ROWS.get(name)
        if row is not None and (row.writes or row.case).holds(
            TypedCall(node, types, type_of(node))
        ):
            return self._row(row, type_of(node), *map(self.operand, arguments))
        if (
            name == "extract"
            and constants[0] in function_table.WRITTEN_PARTS
            and types[1] in _LOCAL
        ):
            component = function_table.WRITTEN_PARTS[str(constants[0])]
            moment = self.operand(arguments[1])
            return self._scalar_function(
                substrait.DATETIME, name, Int(64), moment, words=[component]
            )
        if name == "extract" and constants[0] in function_table.ZONED_PARTS:
            zoned_time = _in_zone(arguments[1])
            if zoned_time is not None:
                return self._zoned_part(str(constants[0]), *zoned_time)
        if name == "local_time":
            moment, zone_ = self.operand(arguments[1]), self._zone(str(constants[0]))
            return self._scalar_function(
                substrait.DATETIME, "local_timestamp", Timestamp(), moment, zone_
            )
        shown = ", ".join(map(type_name, types))
        raise UnsupportedOperation(f"{name!r} of {shown} has no counterpart in Substrait")

    # Calls

    def _zoned_part(self, field: str, instant: ir.Operand, name: str) -> bytes:
        """Write `extract` of an instant in a zone, with ONE for parts that may count from 0."""
        component = function_table.ZONED_PARTS[field]
        words = [component, "ONE"] if component in function_table.COUNTED else [component]
        sides = self.operand(instant), self._zone(name)
        return self._scalar_function(substrait.DATETIME, "extract", Int(64), *sides, words=words)

    def _zone(self, name: str) -> bytes:
        if name_in(name) is None:
            raise UnsupportedOperation(
                f"engines may change clocks of {shown_zone(name)} at other times; use UTC"
            )
        if fixed_offset(name) is not None:
            raise UnsupportedOperation(
                f"the offset {name!r} as a time zone; Substrait has IANA's names, as Europe/Berlin"
            )
        return self.constant(ir.Literal(name, String()))

    def _row(self, row: substrait.Function, result: LogicalType, *arguments: bytes) -> bytes:
        """Write a call by its row, with its option."""
        option = [part(at, text.encode()) for at, text in enumerate(row.option or (), 1)]
        options = [b"".join(option)] if option else []
        return self._scalar_function(row.file, row.name, result, *arguments, options=options)

    def _judged(self, name: str, operand: bytes) -> bytes:
        return self._boolean(substrait.COMPARISON, name, operand)

    def _boolean(self, file: str, name: str, *arguments: bytes) -> bytes:
        return self._scalar_function(file, name, Bool(), *arguments)

    def _scalar_function(
        self,
        file: str,
        name: str,
        result: LogicalType,
        *arguments: bytes,
        words: Sequence[str] = (),
        options: Sequence[bytes] = (),
    ) -> bytes:
        """Write a `scalar_function`; `words` are its enum arguments, which come first."""
        self._files.setdefault(file, len(self._files) + 1)
        anchor = self._functions.setdefault((file, name), len(self._functions) + 1)
        enums = [part(1, word.encode()) for word in words]
        values = parts(4, [*enums, *(part(3, argument) for argument in arguments)])
        return part(
            3, number(1, anchor), part(3, self._type_message(result)), values, parts(5, options)
        )


def _in_zone(moment: ir.Operand) -> tuple[ir.Operand, str] | None:
    """Return instant and zone of the argument of `extract`; None for other times."""
    match moment:
        case ir.Call(function="local_time", arguments=(ir.Literal(value=str() as name), instant)):
            return instant, name
        case _ if type_of(moment) == Timestamp(utc=True):
            return moment, "UTC"
    return None


def _selected(places: Sequence[int]) -> bytes:
    segment = b""
    for place in reversed(places):
        segment = part(2, number(1, place), part(2, segment) if segment else b"")
    return part(2, part(1, segment), part(4))
