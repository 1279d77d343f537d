"""Bind a predicate to a schema: resolve columns, constants and functions, and check types.

Binding happens once per predicate. The result carries the `Semantics` of its evaluation. Every
literal has a type, both sides of a comparison have one comparable type, and every conversion is a
`Cast` in the tree. Invalid predicates are rejected here, before any row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, assert_never, get_args

import pyarrow as pa

from rowsieve.errors import InvalidInput, InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.binding.aliased_values import (
    EQUATED,
    aliased_call,
    aliased_list,
    compare_aliased,
)
from rowsieve.predicate.binding.bound_columns import known_column
from rowsieve.predicate.binding.coerce import (
    compare_operands,
    constant_instant,
    convert,
    typed,
)
from rowsieve.predicate.binding.dated import days_moved
from rowsieve.predicate.binding.enum_labels import (
    as_text,
    enum_members,
    is_enum,
    read_as_text,
    with_text,
)
from rowsieve.predicate.binding.envelopes import as_meeting
from rowsieve.predicate.binding.json_comparisons import json_call, json_in_list
from rowsieve.predicate.binding.members import bind_members, member_literals
from rowsieve.predicate.binding.nanosecond_rules import (
    arguments_of,
    cast_of_nanoseconds,
    compared_members,
)
from rowsieve.predicate.binding.nested_constants import adapted, adapts, is_constructor
from rowsieve.predicate.binding.nested_types import member_of
from rowsieve.predicate.binding.null_arguments import (
    check_choice,
    null_result,
    typed_by_members,
)
from rowsieve.predicate.binding.simplify import simplify
from rowsieve.predicate.binding.stored_comparisons import (
    as_length,
    as_listed_numbers,
    as_stored,
    lengths,
    without_widening,
)
from rowsieve.predicate.binding.zoned import (
    READ_IN_ZONE,
    at_time_zone,
    cast_of_session,
    folded,
    is_utc,
    zoned_call,
    zoned_trunc,
)
from rowsieve.predicate.bound import (
    BoundOperand as BoundOperand,  # noqa: PLC0414 - exported
)
from rowsieve.predicate.bound import (
    BoundPredicate as BoundPredicate,  # noqa: PLC0414 - exported
)
from rowsieve.predicate.callable_module import callable_as
from rowsieve.predicate.functions.casting.casts import cast_rule
from rowsieve.predicate.functions.conditional import common_type
from rowsieve.predicate.functions.nested.json_scalars import as_scalar, function_for
from rowsieve.predicate.functions.registry import canonical_call, known_of, resolve
from rowsieve.predicate.functions.texts.strings import lower_case
from rowsieve.predicate.like import lowered, parse_pattern
from rowsieve.predicate.limits import check_limits
from rowsieve.predicate.literal_values import check_literal, constant_type, int_range
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.aliases import may_compare
from rowsieve.types.encodings import refuse_unsupported, schema_of_arrow
from rowsieve.types.logical import (
    Bool,
    Decimal,
    Enum,
    Field,
    Int,
    Interval,
    Json,
    LogicalType,
    Map,
    Numeric,
    String,
    Struct,
    Timestamp,
    is_nested,
    type_name,
)
from rowsieve.types.schema import Schema

_INT64: Final = Int(64)
_BARE_NULL: Final = ir.Literal(None)
_INT64_MAX: Final = 2**63 - 1
_Typed: TypeAlias = tuple[ir.Operand, LogicalType | None]


def bind(
    predicate: ir.Predicate,
    schema: Schema | pa.Schema,
    semantics: Semantics = Semantics.SQL,
    *,
    now_us: int | None = None,
    simplified: bool = True,
    within_limits: bool = False,
) -> BoundPredicate:
    """Resolve names and types; `now_us` (microseconds since 1970, UTC) replaces every `Now`.

    By default, constants are computed and functions of columns are inverted (`simplify`).
    `within_limits`: `check_limits` has already accepted the tree. The fields of a schema of pyarrow
    are numbered from 1, depth first. Its columns of types that tables do not support, such as null,
    are left out; SchemaMismatch if the predicate names one.
    """
    columns = as_schema(schema)
    binder = _binder(columns, semantics, now_us)
    if not within_limits:
        if not isinstance(predicate, get_args(ir.Predicate)):
            raise InvalidInput(
                f"bind: the predicate is {type(predicate).__name__}, not a tree; text and "
                "expressions become one by rowsieve.translate(…, target='rowsieve')"
            )
        check_limits(predicate)
    try:
        root = binder.predicate(predicate)
    except UnknownColumn as error:
        refuse_unsupported(error.name, schema)
        raise
    if simplified:
        return BoundPredicate(simplify(root, semantics), columns.id, semantics)
    return BoundPredicate(root, columns.id, semantics, predicate)


def bind_each(
    predicates: Sequence[ir.Predicate], schema: Schema, semantics: Semantics
) -> list[BoundPredicate | InvalidPredicate | UnsupportedOperation]:
    """Bind several conditions at once, not simplified; one that is rejected becomes its error."""
    try:
        binder = _binder(schema, semantics, None)
    except InvalidPredicate as error:
        return [error] * len(predicates)
    results: list[BoundPredicate | InvalidPredicate | UnsupportedOperation] = []
    for predicate in predicates:
        try:
            check_limits(predicate)
            root = binder.predicate(predicate)
            results.append(BoundPredicate(root, schema.id, semantics, predicate))
        except (InvalidPredicate, UnsupportedOperation) as error:
            results.append(error)
    return results


def bind_conjuncts(
    predicate: ir.Predicate, schema: Schema, semantics: Semantics, *, now_us: int
) -> tuple[tuple[ir.Predicate, BoundPredicate], ...]:
    """Bind a predicate once; return each conjunct with its bound form, simplified."""
    bound = bind(predicate, schema, semantics, now_us=now_us, simplified=False)
    return tuple(
        (term, BoundPredicate(simplify(root, semantics), schema.id, semantics))
        for term, root in bound.conjuncts
    )


def bind_operand(
    operand: ir.Operand,
    schema: Schema | pa.Schema,
    semantics: Semantics = Semantics.SQL,
    *,
    now_us: int | None = None,
    target: LogicalType | None = None,
) -> BoundOperand:
    """Resolve names and types; with a `target`, convert the value to it as an assignment does."""
    schema = as_schema(schema)
    check_limits(operand)
    match operand:
        case ir.Cast(operand=assigned, type=Enum() as enum) if target is None:
            operand, target = assigned, enum
    binder = _binder(schema, semantics, now_us)
    root, type_ = binder.operand(operand)
    wanted = target or type_ or String()
    return BoundOperand(convert(root, type_, wanted, semantics), wanted, schema.id, semantics)


def as_schema(schema: Schema | pa.Schema) -> Schema:
    """Return the schema, ours or pyarrow's, that this is or has; InvalidInput for others."""
    if not isinstance(schema, Schema | pa.Schema):
        schema = getattr(schema, "schema", schema)
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, pa.Schema):
        return schema_of_arrow(schema)
    raise InvalidInput(
        f"a predicate is bound to a schema of pyarrow or of a plan (plan.schema), or to what has "
        f"one, such as a table, not to {type(schema).__name__}"
    )


def _binder(schema: Schema, semantics: Semantics, now_us: int | None) -> _Binder:
    if not semantics.has_session_zone and not is_utc(semantics):
        raise InvalidPredicate(
            f"the time zone {semantics.time_zone} of a session does not apply to {semantics.name}: "
            "its instants have the zone of their type; name the zone in the condition"
        )
    seen = schema if semantics.orders_enums else with_text(schema)
    return _Binder(seen, semantics, now_us)


@dataclass(frozen=True, slots=True)
class _Binder:
    schema: Schema
    semantics: Semantics
    now_us: int | None

    def predicate(self, node: ir.Predicate) -> ir.Predicate:
        match node:
            case ir.TruePredicate() | ir.FalsePredicate() | ir.Opaque():
                return node
            case ir.And(terms=terms):
                return ir.And(tuple(self.predicate(term) for term in terms))
            case ir.Or(terms=terms):
                return ir.Or(tuple(self.predicate(term) for term in terms))
            case ir.Not(term=term):
                return ir.Not(self.predicate(term))
            case ir.Comparison(op=op, left=left, right=right):
                if (plain := self.integers(node)) is not None:
                    return plain
                if self.is_postgres:
                    comparison = compare_aliased(op, (left, right), self.field_of, self.semantics)
                    if comparison is not None:
                        return self.predicate(comparison)
                self.check_alias(left, op)
                self.check_alias(right, op)
                sides = self.sides(left, right)
                return compare_operands(op, *sides, self.semantics)
            case ir.InList():
                return self.in_list(node)
            case ir.IsNull(operand=operand):
                return ir.IsNull(self.typed_operand(operand)[0])
            case ir.Like():
                return self.like(node)
            case ir.BooleanOperand(operand=operand):
                return ir.BooleanOperand(self.boolean(operand))
            case _:
                assert_never(node)

    def integers(self, node: ir.Comparison) -> ir.Predicate | None:
        """Bind an integer column that is compared with one of its values; None for others.

        A fast path for ORs of thousands: the result is the one of `compare_operands`. The column
        may be bound, as in a tree that is bound again under another engine's rules.
        """
        left, right = node.left, node.right
        if not isinstance(left, ir.Column | ir.BoundColumn) or not isinstance(right, ir.Literal):
            return None
        value, type_ = right.value, right.type
        if type(value) is not int or self.semantics.compares_storage:
            return None
        if isinstance(left, ir.BoundColumn):
            column = left
            known_column(self.schema, left)
        else:
            field = self.schema.field(left.name)
            if field.alias is not None:
                return None
            column = ir.BoundColumn(field.id, field.name, field.type)
        if not isinstance(column.type, Int) or type_ not in (None, _INT64, column.type):
            return None
        low, high = int_range(column.type)
        if not max(low, -(2**63)) <= value <= min(high, _INT64_MAX):
            return None
        return ir.Comparison(node.op, column, ir.Literal(value, column.type))

    @property
    def is_postgres(self) -> bool:
        """Whether the values and functions of PostgreSQL's own types apply."""
        return self.semantics.name in (Semantics.SQL.name, Semantics.POSTGRES.name)

    def check_alias(self, node: ir.Operand, op: ir.ComparisonOp | None = None) -> None:
        """Refuse a column whose alias has an order of its own; engines compare the storage."""
        field = None if self.semantics.compares_storage else self.field_of(node)
        if field is None or field.alias is None:
            return
        if op is not None and not op.is_order and self.is_postgres and field.alias in EQUATED:
            return
        if not may_compare(field.alias):
            raise InvalidPredicate(
                f"the column {field.name!r} is a {field.alias}, which cannot be compared; compare "
                "a field or an item of it, or test IS NULL"
            )

    def field_of(self, node: ir.Operand) -> Field | None:
        """Return the field of a column, or of a field inside a struct column."""
        match node:
            case ir.Column(name=name):
                return self.schema.field(name)
            case ir.FieldAccess(operand=parent, name=name):
                outer = self.field_of(parent)
                if outer is not None and isinstance(outer.type, Struct):
                    return member_of(outer.type, name)
        return None

    def sides(
        self, left: ir.Operand, right: ir.Operand
    ) -> tuple[ir.Operand, LogicalType | None, ir.Operand, LogicalType | None]:
        """Bind both sides; constants inside a list or struct constructor adapt to the other side.

        `now()` compared with a number becomes its milliseconds since 1970.
        """
        if isinstance(left, ir.Now) and not isinstance(right, ir.Now):
            other, other_type = self.operand(right)
            return (*self.operand(self.now_like(left, other_type)), other, other_type)
        if adapts(left) and not is_constructor(right):
            other, other_type = self.operand(right)
            return (*self.operand(adapted(left, other_type, self.semantics)), other, other_type)
        one, one_type = self.operand(left)
        right = self.now_like(right, one_type)
        return (one, one_type, *self.operand(adapted(right, one_type, self.semantics)))

    def now_like(self, node: ir.Operand, type_: LogicalType | None) -> ir.Operand:
        """Convert `now()` to a number if compared with one, except by an engine's own rule."""
        if not isinstance(node, ir.Now) or not isinstance(type_, Int | Decimal | Numeric):
            return node
        if not self.is_postgres:
            return node
        return ir.Call("divide", (ir.Call("epoch_us", (node,)), ir.Literal(1000, Int(64))))

    def operand(self, node: ir.Operand) -> tuple[ir.Operand, LogicalType | None]:
        """Return the bound operand and its type; the type of a bare text or NULL is None."""
        match node:
            case ir.Column(name=name):
                field = self.schema.field(name)
                return ir.BoundColumn(field.id, field.name, field.type), field.type
            case ir.BoundColumn():
                return self.bound_column(node)
            case ir.Literal(value=value, type=Enum()) if not self.semantics.orders_enums:
                return ir.Literal(value, String()), String()
            case ir.Literal(value=value, type=type_):
                if type_ is not None:
                    check_literal(node)
                natural = type_ or constant_type(value)
                return ir.Literal(value, natural), natural
            case ir.Call():
                return self.call(node)
            case ir.Cast():
                return self.cast(node)
            case ir.FieldAccess(operand=operand, name=name):
                return self.field_access(operand, name)
            case ir.Case():
                return self.case(node)
            case ir.Now():
                instant = Timestamp(utc=True)
                return (node if self.now_us is None else ir.Literal(self.now_us, instant)), instant
            case ir.Condition(predicate=predicate):
                return ir.Condition(self.predicate(predicate)), Bool()
            case _:
                assert_never(node)

    def typed_operand(self, node: ir.Operand) -> tuple[ir.Operand, LogicalType]:
        """Return the bound operand and its type; bare text and NULL become text."""
        operand, type_ = self.operand(node)
        if type_ is None:
            assert isinstance(operand, ir.Literal)
            return typed(operand, String(), self.semantics), String()
        return operand, type_

    def bound_column(self, column: ir.BoundColumn) -> tuple[ir.Operand, LogicalType]:
        """Check that the schema has the column; one that was bound as text stays text."""
        known = known_column(self.schema, column)
        if not self.semantics.orders_enums:
            read = read_as_text(column)
            return read, String() if read is not column else column.type
        if isinstance(known.type, Enum) and column.type == String():
            return as_text(ir.BoundColumn(column.field_id, column.name, known.type)), String()
        return column, column.type

    def in_list(self, node: ir.InList) -> ir.Predicate:
        if self.is_postgres and (aliased := aliased_list(node, self.field_of)) is not None:
            return self.predicate(aliased)
        self.check_alias(node.operand)
        operand, type_ = self.operand(node.operand)
        if type_ is None:
            operand, type_ = typed_by_members(operand, node.values, self.semantics)
        if self.semantics.compares_storage:
            operand, type_ = as_stored(operand, type_)
        assert type_ is not None
        if isinstance(type_, Json) and self.semantics.casts_json:
            return json_in_list(operand, node.values)
        if is_nested(type_):
            return self.nested_in_list(operand, type_, node.values)
        values = node.values
        if pa.types.is_integer(values.array.type) or pa.types.is_decimal(values.array.type):
            operand, type_ = without_widening(operand, type_, Decimal(38, 0))
        if isinstance(type_, Interval):
            operand, type_ = as_length(operand, type_, self.semantics)
            values = lengths(values)
        elif isinstance(type_, Numeric) or values.type == Numeric():
            operand, type_, values = as_listed_numbers(operand, type_, values)
        elif isinstance(type_, Enum):
            values = enum_members(values, type_)
            operand, type_ = as_text(operand), String()
        elif isinstance(type_, Timestamp):
            values = compared_members(values, operand, self.semantics)
        assert type_ is not None
        common, values = bind_members(type_, values, self.semantics)
        return ir.InList(convert(operand, type_, common, self.semantics), values)

    def nested_in_list(
        self, operand: ir.Operand, type_: LogicalType, values: ir.ValueSet
    ) -> ir.Predicate:
        """Rewrite IN over lists or structs as an OR of equalities; `ValueSet` cannot hold them."""
        if not len(values):
            return ir.And((ir.IsNull(operand), ir.BooleanOperand(ir.Literal(None, Bool()))))
        terms = (
            compare_operands(
                ir.ComparisonOp.EQ,
                operand,
                type_,
                member,
                member.type,
                self.semantics,
            )
            for member in member_literals(values)
        )
        return ir.disjoin(terms)

    def like(self, node: ir.Like) -> ir.Predicate:
        operand, type_ = self.typed_operand(node.operand)
        if not isinstance(type_, String):
            raise InvalidPredicate(
                f"LIKE needs text, not {type_name(type_)}; cast the operand to string"
            )
        parse_pattern(node.pattern, node.escape)
        if node.ignore_case and self.semantics.lowers_patterns:
            lower = partial(lower_case, semantics=self.semantics)
            return lowered(ir.Like(operand, node.pattern, node.escape), lower)
        return ir.Like(operand, node.pattern, node.escape, node.ignore_case)

    def boolean(self, node: ir.Operand) -> ir.Operand:
        operand, type_ = self.operand(node)
        if type_ is None:
            assert isinstance(operand, ir.Literal)
            return typed(operand, Bool(), self.semantics)
        if not isinstance(type_, Bool):
            raise InvalidPredicate(
                f"expected a condition, got a value of type {type_name(type_)}; compare it with "
                "another value"
            )
        return operand

    def call(self, node: ir.Call) -> _Typed:
        name, arguments = canonical_call(node)
        if self.is_postgres:
            aliased = aliased_call(name, arguments, self.field_of, self.semantics)
            if aliased is not None:
                return self.typed_operand(aliased)
        if (meeting := as_meeting(name, arguments)) is not None:
            return self.operand(meeting)[0], Bool()
        operands = [self.operand(argument) for argument in arguments]
        name, bound = json_call(name, arguments_of(name, operands, self.semantics), self.semantics)
        if name == "timezone" and len(bound) == 2:
            return at_time_zone(bound[0][0], *bound[1], self.semantics)
        if name == "date_trunc" and len(bound) == 3:
            return self.truncated_in_zone(*bound)
        if name == "epoch_us" and len(bound) == 2:
            return self.call(ir.Call(name, (self.instant_like(*bound),)))
        if (moved := days_moved(name, bound, self.semantics)) is not None:
            return self.call(moved)
        if name in READ_IN_ZONE and len(bound) == 2:
            bound.insert(0, (ir.Literal(self.semantics.time_zone, String()), String()))
        values = [operand for operand, _ in bound]
        known = known_of(values, [type_ for _, type_ in bound])
        if _BARE_NULL in values and (null := null_result(name, arguments, operands, known)):
            return null
        row, signature = resolve(name, known)
        pairs = zip(bound, signature.arguments, strict=True)
        converted = tuple(convert(*typed_, wanted, self.semantics) for typed_, wanted in pairs)
        zoned = zoned_call(row.name, converted, signature.arguments, self.semantics)
        return zoned or ir.Call(row.name, converted), signature.result

    def instant_like(self, time: _Typed, other: _Typed) -> ir.Operand:
        """Return the minuend of a difference of times; an instant if the subtrahend is one."""
        instant = Timestamp(utc=True)
        mixed = isinstance(time[1], Timestamp) and other[1] == instant
        return convert(*time, instant, self.semantics) if mixed else time[0]

    def truncated_in_zone(self, unit: _Typed, operand: _Typed, name: _Typed) -> _Typed:
        """Bind `date_trunc(unit, instant, zone)`."""
        instant = Timestamp(utc=True)
        spelled = name[0].value if isinstance(name[0], ir.Literal) else None
        if not isinstance(spelled, str) or operand[1] not in (None, instant):
            raise InvalidPredicate(
                "date_trunc with a time zone takes a unit, an instant and a constant zone; a "
                "timestamp without a zone is truncated as it is"
            )
        value = convert(*operand, instant, self.semantics)
        call = zoned_trunc(unit[0], spelled, value, self.semantics)
        assert isinstance(call, ir.Call)
        return self.call(call)

    def cast(self, node: ir.Cast) -> tuple[ir.Operand, LogicalType]:
        operand, source = self.operand(node.operand)
        if source is None:
            assert isinstance(operand, ir.Literal)
            return self.cast_text(operand, node), node.type
        if isinstance(source, Json) and self._casts_json(node):
            call, source = self.call(ir.Call(function_for(node.type), (operand,)))
            return (call if source == node.type else ir.Cast(call, node.type)), node.type
        fine = cast_of_nanoseconds(operand, source, node.type, self.semantics, try_=node.try_)
        if fine is not None:
            return fine, node.type
        if source == String() == node.type and is_enum(node.operand):
            return operand, source  # written as a cast for an engine that orders enums
        if cast_rule(source, node.type) is None or isinstance(node.type, Enum):
            raise InvalidPredicate(
                f"CAST from {type_name(source)} to {type_name(node.type)} is not supported; "
                "compare the value itself, or cast it to a type in between"
            )
        is_stored = isinstance(operand, ir.BoundColumn | ir.FieldAccess)
        if isinstance(source, Numeric) and isinstance(node.type, String) and not is_stored:
            raise InvalidPredicate(
                "the text of a computed numeric depends on zeros at its end, such as those of "
                "1.50, which are not stored; cast it to a decimal, such as numeric(20, 6), first"
            )
        session_cast = cast_of_session(operand, source, node.type, self.semantics, try_=node.try_)
        cast = ir.Cast(operand, node.type, node.try_) if session_cast is None else session_cast
        instant = node.type == Timestamp(utc=True) and self.semantics.has_session_zone
        if instant and isinstance(operand, ir.Literal) and source == Timestamp(utc=False):
            cast = folded(cast, self.semantics)
        return cast, node.type

    def _casts_json(self, node: ir.Cast) -> bool:
        return self.semantics.casts_json and as_scalar(node.type) and not node.try_

    def cast_text(self, literal: ir.Literal, node: ir.Cast) -> ir.Operand:
        if isinstance(node.type, Enum):
            raise InvalidPredicate(
                f"CAST to {type_name(node.type)} is not supported; compare the column with a label"
            )
        if literal.value is None:
            return ir.Literal(None, node.type)
        if node.type == Timestamp(utc=True):
            instant = constant_instant(literal.value, self.semantics)
            if instant is not None:
                return instant
        if cast_rule(String(), node.type) is not None:
            return ir.Cast(ir.Literal(literal.value, String()), node.type, node.try_)
        try:
            return typed(literal, node.type, self.semantics)
        except InvalidPredicate:
            if node.try_:
                return ir.Literal(None, node.type)
            raise

    def field_access(self, node: ir.Operand, name: str) -> _Typed:
        operand, type_ = self.typed_operand(node)
        if isinstance(type_, Map):
            return self.call(ir.Call("map_value", (operand, ir.Literal(name))))
        if isinstance(type_, Numeric) and name.lower() in ("approx", "exact"):
            read = "numeric_approx" if name.lower() == "approx" else "numeric_bytes"
            return self.call(ir.Call(read, (operand,)))
        if not isinstance(type_, Struct):
            raise InvalidPredicate(
                f"a {type_name(type_)} has no field {name!r}; only a struct has fields"
            )
        member = member_of(type_, name)
        return ir.FieldAccess(operand, member.name), member.type

    def case(self, node: ir.Case) -> tuple[ir.Operand, LogicalType]:
        conditions = [self.predicate(when) for when, _ in node.branches]
        results = (*(then for _, then in node.branches), node.otherwise)
        values = list(map(self.operand, results))
        types = [type_ for _, type_ in values]
        if (_BARE_NULL, None) in values:
            check_choice("CASE", results, values)
        common = common_type(types)
        if common is None:
            named = ", ".join("NULL" if type_ is None else type_name(type_) for type_ in types)
            raise InvalidPredicate(f"the branches of CASE have no common type: {named}; cast one")
        *converted, last = (convert(*value, common, self.semantics) for value in values)
        return ir.Case(tuple(zip(conditions, converted, strict=True)), last), common


callable_as(__name__, bind)
