"""Read a pyarrow expression under pyarrow's own rules: `Semantics.PYARROW`.

Soundness: every function and option is known here, or becomes an `Opaque` condition with the
reason, and conditions that contain one are omitted as a whole. pyarrow converts the arguments of a
call to one type by rules of its own; where ours differ, a call has the casts of `converted_sides`,
or is rejected too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.base import TreeReader, as_operand, as_predicate, supported
from rowsieve.bridges.functions import TypedCall
from rowsieve.bridges.functions.casts import CASTS, kinds_of
from rowsieve.bridges.functions.pyarrow import BY_NAME, Kernel, keeps_order
from rowsieve.bridges.pyarrow_exprs import converted_sides, function_table, zones
from rowsieve.bridges.pyarrow_exprs.literals import literal_of, stored
from rowsieve.bridges.pyarrow_exprs.nodes import (
    Decoded,
    Frame,
    Options,
    decode,
    junction,
)
from rowsieve.errors import (
    InvalidPredicate,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedOperation,
)
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type, logical_type
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Nanos,
    String,
    Time,
    Timestamp,
    Uuid,
    type_name,
)
from rowsieve.types.schema import Schema

_MATCH, _SKIP, _EMIT_NULL, _INCONCLUSIVE = range(4)  # SetLookupOptions::NullMatchingBehavior
_NULL = ir.BooleanOperand(ir.Literal(None, Bool()))
_COMPARISON_NAMES = {op: name for name, op in function_table.COMPARISONS.items()}
_CAST_OPTIONS = (
    *("allow_int_overflow", "allow_decimal_truncate", "allow_time_overflow"),
    *("allow_time_truncate", "allow_float_truncate", "allow_invalid_utf8"),
)


def conditions(expression: pc.Expression, schema: Schema) -> tuple[ir.Predicate, ...]:
    """Return the terms of the top-level AND; a term with an `Opaque` is not fully known."""
    reader = _PyArrowReader(schema)
    whole = _judging(as_predicate(decode(expression, reader.read, reader.constant)))
    return whole.terms if isinstance(whole, ir.And) else (whole,)


def known(condition: ir.Predicate) -> ir.Predicate:
    """Return the condition; `UnsupportedOperation` with the reason if a part is unknown."""
    for node in ir.walk(condition):
        if isinstance(node, ir.Opaque):
            raise UnsupportedOperation(node.description)
    return condition


def comparison_of_column(
    op: ir.ComparisonOp, column: str, constant: pa.Scalar, schema: Schema
) -> ir.Predicate:
    """Return `column op constant`, as that expression would be read."""
    sides = ir.Column(column), literal_of(pa.repeat(constant, 1))
    name = _COMPARISON_NAMES[op]
    return ir.Comparison(op, *converted_sides.compared(name, sides, _PyArrowReader(schema).type_of))


def list_of_column(
    column: str, members: pa.Array, schema: Schema, *, negated: bool = False
) -> ir.Predicate:
    """Return `column.isin(members)`, or its negation, as read in the top-level AND and OR."""
    membership = _PyArrowReader(schema).is_in(ir.Column(column), members, _MATCH)
    return ir.Not(membership) if negated else _judging(membership)


def _judging(term: ir.Predicate) -> ir.Predicate:
    """Read a term of the top-level AND and OR, where NULL acts as FALSE: lists need no guard."""
    if isinstance(term, ir.And | ir.Or):
        return _guarded(term) or type(term)(tuple(map(_judging, term.terms)))
    return term


def _guarded(term: ir.Predicate) -> ir.InList | None:
    """Return the list of `x IS NOT NULL AND x IN (…)`, as `is_in` is read; None for others."""
    match term:
        case ir.And(
            terms=(ir.Not(term=ir.IsNull(operand=guarded)), ir.InList(operand=operand) as in_list)
        ) if guarded == operand:
            return in_list
    return None


class _PyArrowReader(TreeReader[Frame]):
    """Reads calls whose arguments have been read."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema, Semantics.PYARROW)
        self._other_units: list[Decoded] = []  # time constants with other units than ours

    def constant(self, column: pa.Array) -> Decoded:
        """Convert the constant, or return an `Opaque` with the reason."""
        try:
            literal = literal_of(column)
        except UnsupportedOperation as error:
            return ir.Opaque(str(error), "pyarrow")
        times = isinstance(literal.type, Time | Timestamp | Nanos)
        if times and getattr(column.type, "unit", "us") != "us":
            self._other_units.append(literal)
        return literal

    def one_unit(self, name: str, operands: Sequence[ir.Operand]) -> None:
        """Raise for constants of other units: pyarrow takes their ticks for those of the first."""
        nodes = {id(node) for operand in operands for node in ir.walk(operand)}
        if any(id(literal) in nodes for literal in self._other_units):
            raise UnsupportedOperation(f"{name} of times of several units; cast them to one")

    def read(self, node: Frame) -> Decoded:
        """Convert the call, or return an `Opaque` with the reason."""
        try:
            supported(
                function_table.ROWS.get(node.function),
                f"the pyarrow function {node.function!r}",
                "it is unknown to Rowsieve",
            )
            return self._known(node)
        except UnknownColumn:
            raise
        except (UnsupportedOperation, InvalidPredicate) as error:
            return ir.Opaque(str(error), "pyarrow")

    def _known(self, frame: Frame) -> Decoded:
        name, arguments = frame.function, frame.arguments
        options = Options(name, frame.options)
        if name in ("and_kleene", "or_kleene"):
            return _list_with_null(junction(ir.And if name == "and_kleene" else ir.Or, arguments))
        if name == "invert":
            return ir.Not(as_predicate(arguments[0]))
        operands = tuple(map(as_operand, arguments))
        for item in operands:
            if isinstance(item, ir.Condition) and isinstance(item.predicate, ir.Opaque):
                raise UnsupportedOperation(item.predicate.description)
        node = self._by_name(name, operands, options)
        options.done()
        return node

    def _by_name(self, name: str, operands: tuple[ir.Operand, ...], options: Options) -> Decoded:
        if (op := function_table.COMPARISONS.get(name)) is not None:
            return ir.Comparison(op, *converted_sides.compared(name, operands, self.type_of))
        if name in ("is_null", "is_valid"):
            options.must("nan_is_null", value=False)
            return ir.IsNull(operands[0]) if name == "is_null" else ir.Not(ir.IsNull(operands[0]))
        if name == "is_nan":
            self.only(name, operands, Float)
            return ir.Comparison(ir.ComparisonOp.NE, operands[0], operands[0])
        if name == "is_in":
            members = options.take("value_set").values
            behaviour = int(options.take("null_matching_behavior").as_py())
            return self.is_in(operands[0], members, behaviour)
        if (handler := _HANDLERS.get(name)) is not None:
            return handler(_Call(self, name, operands, options))
        return self._by_kernel(BY_NAME[name], operands, options)

    def _by_kernel(
        self, row: Kernel, operands: tuple[ir.Operand, ...], options: Options
    ) -> Decoded:
        if row.kinds:
            self.only(row.name, operands, *row.kinds)
        if row.meets:
            operands = converted_sides.computed(row.name, operands, self.type_of)
        for option, value in row.options.items():
            options.must(option, value=value)
        constants = [_constant(options, name) for name in row.constants]
        if not row.default or [constant.value for constant in constants] != [*row.default]:
            operands = (*operands, *constants)
        call = ir.Call(row.function, operands)
        if not keeps_order(TypedCall(call)):
            raise UnsupportedOperation(
                f"{row.name} in {row.name}, which pyarrow computes in another order: constants "
                "first; put the constants together"
            )
        return ir.BooleanOperand(call) if row.is_condition else call

    def is_in(self, operand: ir.Operand, members: pa.Array, behaviour: int) -> ir.Predicate:
        """Build a list, with pyarrow's rule for NULL among its members."""
        array, type_ = stored(members)
        operand_type = self.type_of(operand)
        if operand_type == Uuid() and members.type == pa.binary(16):  # as UUIDs are stored
            array, type_ = array.cast(members.type), operand_type
        alike = operand_type == type_ or (isinstance(operand_type, Int) and isinstance(type_, Int))
        if type_ is not None and operand_type is not None and not alike:
            raise UnsupportedOperation(
                f"is_in of {type_name(operand_type)} in {type_name(type_)}: "
                "give the set the column's type"
            )
        has_null, members = array.null_count > 0, array.drop_null()
        if pa.types.is_floating(members.type) and pc.any(pc.is_nan(members)).as_py():
            raise UnsupportedOperation("is_in with NaN, which finds NaN of the same bits only")
        membership: ir.Predicate = ir.InList(operand, ir.ValueSet(members, type_))
        if behaviour == _EMIT_NULL:
            return membership
        if behaviour == _INCONCLUSIVE:
            return ir.Or((membership, _NULL)) if has_null else membership
        if behaviour == _MATCH and has_null:
            return ir.Or((ir.IsNull(operand), membership))
        return ir.And((ir.Not(ir.IsNull(operand)), membership))

    # Types

    def only(self, name: str, operands: Sequence[ir.Operand], *kinds: type[LogicalType]) -> None:
        for operand in operands:
            type_ = self.type_of(operand)
            if type_ is not None and not isinstance(type_, kinds):
                raise UnsupportedOperation(f"{name} of {type_name(type_)} is unknown to Rowsieve")


def _list_with_null(test: ir.Predicate) -> ir.Predicate:
    """Match how SQL's IN is written, whose NULL result is_in does not have."""
    match test:
        case ir.Or(terms=(first, rest)) if (in_list := _guarded(first)) is not None:
            if rest == _NULL:
                members, type_ = in_list.values.array, in_list.values.type
                with_null = pa.concat_arrays([members, pa.nulls(1, members.type)])
                return ir.InList(in_list.operand, ir.ValueSet(with_null, type_))
            if rest == ir.And((ir.IsNull(in_list.operand), _NULL)):
                return in_list
    return test


@dataclass(frozen=True, slots=True)
class _Call:
    """A call whose arguments have been read."""

    reader: _PyArrowReader
    name: str
    operands: tuple[ir.Operand, ...]
    options: Options


def _constant(options: Options, name: str) -> ir.Literal:
    return literal_of(pa.array([options.take(name).as_py()], pa.string()))


def _liked(call: _Call) -> ir.Predicate:
    call.reader.only(call.name, call.operands, String)
    pattern = str(_constant(call.options, "pattern").value)
    fold = bool(call.options.take("ignore_case").as_py())
    return ir.Like(call.operands[0], pattern, "\\" if "\\" in pattern else None, fold)


def _replaced(call: _Call) -> ir.Operand:
    call.reader.only(call.name, call.operands, String)
    pattern, other = (_constant(call.options, name) for name in ("pattern", "replacement"))
    limit = call.options.take("max_replacements").as_py()
    if not pattern.value or limit not in (None, -1):
        raise UnsupportedOperation("replace_substring of empty text, or of some places only")
    return ir.Call("replace", (*call.operands, pattern, other))


def _sliced(call: _Call) -> ir.Operand:
    call.reader.only(call.name, call.operands, String)
    call.options.must("step", value=1)
    start, stop = call.options.take("start").as_py(), call.options.take("stop").as_py()
    if start < 0 or (stop is not None and stop < start):
        raise UnsupportedOperation("utf8_slice_codeunits from the end is unknown to Rowsieve")
    places = [ir.Literal(start + 1, Int(64))]
    if stop is not None and stop < 2**62:
        places.append(ir.Literal(stop - start, Int(64)))
    return ir.Call("substr", (*call.operands, *places))


def _joined(call: _Call) -> ir.Operand:
    *parts, separator = call.operands
    call.options.must("null_handling", value=0)
    call.options.ignore("null_replacement")
    call.reader.only(call.name, call.operands, String)
    if not isinstance(separator, ir.Literal) or separator.value != "" or len(parts) < 2:
        raise UnsupportedOperation("binary_join_element_wise with a separator")
    return ir.Call("concat_strict", tuple(parts))


def _coalesced(call: _Call) -> ir.Operand:
    call.reader.one_type(call.name, call.operands)
    call.reader.one_unit(call.name, call.operands)
    return ir.Call("coalesce", call.operands)


def _null_where_null(operands: tuple[ir.Operand, ...]) -> ir.Predicate | None:
    """Match how DuckDB writes SQL's IN: `if_else(is_valid(x), <in a list>, NULL)`."""
    match operands:
        case (
            ir.Condition(predicate=ir.Not(term=ir.IsNull(operand=guarded))),
            ir.Condition(predicate=listed),
            ir.Literal(value=None),
        ):
            return _unguarded(listed, guarded)
        case _:
            return None


def _unguarded(predicate: ir.Predicate, guarded: ir.Operand) -> ir.Predicate | None:
    """Return the condition as NULL where `guarded` is NULL; None if it may be something else."""
    match predicate:
        case ir.And():
            listed = _guarded(predicate)
            return listed if listed is not None and listed.operand == guarded else None
        case ir.Comparison(left=left, right=ir.Literal(value=value)) if value is not None:
            return predicate if left == guarded else None
        case ir.Or(terms=terms):
            bare = [inner for term in terms if (inner := _unguarded(term, guarded)) is not None]
            return ir.Or(tuple(bare)) if len(bare) == len(terms) else None
        case _:
            return None


def _chosen(call: _Call) -> Decoded:
    """Convert `if_else`: a NULL condition gives NULL, unless the condition is never NULL."""
    if (listed := _null_where_null(call.operands)) is not None:
        return listed
    call.reader.one_type(call.name, call.operands[1:])
    match call.operands[0]:
        case ir.Call(function="coalesce", arguments=(inner, ir.Literal(value=False))):
            return ir.Case(((as_predicate(inner), call.operands[1]),), call.operands[2])
        case operand:
            _, then, other = call.operands
            when = as_predicate(operand)
            none = ir.Literal(None, call.reader.type_of(then))
            return ir.Case(((when, then), (ir.Not(when), other)), none)


def _cast(call: _Call) -> ir.Operand:
    storage = call.options.take("to_type").type
    source = call.reader.type_of(call.operands[0])
    if (operand := zones.relabelled(call.operands[0], source, storage)) is not None:
        call.reader.one_unit(call.name, call.operands)
        call.options.ignore(*_CAST_OPTIONS)
        return operand
    try:
        target = logical_type(pa.field(call.name, storage), lambda: 0)
    except SchemaMismatch as error:
        raise UnsupportedOperation(f"a cast to {storage}, which no column can have") from error
    if isinstance(target, Float | Time | Timestamp) and storage != arrow_type(target):
        raise UnsupportedOperation(f"a cast to {storage}, which Rowsieve stores in another form")
    if isinstance(source, Int | Decimal):
        call.options.must("allow_int_overflow", value=False)
        call.options.must("allow_decimal_truncate", value=False)
    if isinstance(source, Date):
        call.options.must("allow_time_overflow", value=False)
    call.options.ignore(*_CAST_OPTIONS)
    if source is None or source == target:
        return ir.Cast(call.operands[0], target)
    if (whole := _through_decimal(call.operands[0], source, target)) is not None:
        return ir.Cast(whole, target)
    narrower = isinstance(source, Float) and target != Float(64)
    zoned = any(isinstance(type_, Timestamp) and type_.utc for type_ in (source, target))
    if kinds_of(source, target) not in CASTS["pyarrow"] or narrower or zoned:
        raise UnsupportedOperation(
            f"a cast of {type_name(source)} to {type_name(target)} may differ in Rowsieve"
        )
    return ir.Cast(call.operands[0], target)


def _through_decimal(
    operand: ir.Operand, source: LogicalType, target: LogicalType
) -> ir.Operand | None:
    """Return the operand of a cast to a longer decimal of the same scale, as is written."""
    if not isinstance(operand, ir.Cast) or operand.try_:
        return None
    if not (isinstance(source, Decimal) and isinstance(target, Decimal)):
        return None
    longer = source.scale == target.scale and source.precision > target.precision
    return operand.operand if longer else None


def _clock(reader: _PyArrowReader, name: str, operand: ir.Operand, *, dates: bool) -> None:
    type_ = reader.type_of(operand)
    if type_ != Timestamp() and not (dates and type_ == Date()):
        shown = "NULL" if type_ is None else type_name(type_)
        raise UnsupportedOperation(f"{name} of {shown} is unknown to Rowsieve")


def _part(call: _Call) -> ir.Operand:
    (operand,) = call.operands
    if call.reader.type_of(operand) == Timestamp(utc=True):
        operand = zones.local_time(operand, call.reader.type_of(operand))
    _clock(call.reader, call.name, operand, dates=call.name not in ("hour", "minute"))
    return ir.Call("extract", (ir.Literal(function_table.PARTS[call.name], String()), operand))


def _local(call: _Call) -> ir.Operand:
    call.reader.one_unit(call.name, call.operands)
    return zones.local_time(call.operands[0], call.reader.type_of(call.operands[0]))


def _assumed(call: _Call) -> ir.Operand:
    call.reader.one_unit(call.name, call.operands)
    _clock(call.reader, call.name, call.operands[0], dates=False)
    zone = str(call.options.take("timezone").as_py())
    rules = (int(call.options.take(rule).as_py()) for rule in ("ambiguous", "nonexistent"))
    return zones.instant(call.operands[0], zone, *rules)


def _cut(call: _Call) -> ir.Operand:
    _clock(call.reader, call.name, call.operands[0], dates=False)
    call.options.must("multiple", value=1)
    call.options.must("week_starts_monday", value=True)
    call.options.must("calendar_based_origin", value=False)
    call.options.ignore("ceil_is_strictly_greater")
    unit = call.options.take("unit").as_py() - function_table.FIRST_UNIT
    if not 0 <= unit < len(function_table.UNITS):
        raise UnsupportedOperation("floor_temporal to less than a second")
    return ir.Call("date_trunc", (ir.Literal(function_table.UNITS[unit], String()), *call.operands))


_HANDLERS: Mapping[str, Callable[[_Call], Decoded]] = {
    **dict.fromkeys(function_table.PARTS, _part),
    "match_like": _liked,
    "replace_substring": _replaced,
    "utf8_slice_codeunits": _sliced,
    "binary_join_element_wise": _joined,
    "coalesce": _coalesced,
    "if_else": _chosen,
    "cast": _cast,
    "floor_temporal": _cut,
    "local_timestamp": _local,
    "assume_timezone": _assumed,
}
