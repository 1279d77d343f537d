"""Filters that Spark passes to a Python data source, and predicates.

A list of filters is their AND, under `Semantics.SPARK`. Their values are Python values, so the
column's type defines the meaning of a value.

Soundness: a filter whose value does not fit its column's type is omitted as a whole and named, in
both directions. PySpark is imported at first use.
"""

from __future__ import annotations

import datetime
import decimal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.base import path_of
from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.extras import imported
from rowsieve.bridges.rows import both
from rowsieve.bridges.sql.spark.catalyst_classes import COMPARISONS, TEXT_TESTS
from rowsieve.bridges.ticks import as_ticks, from_ticks
from rowsieve.bridges.translation import Row, Translation
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Struct,
    Time,
    Timestamp,
    type_name,
)
from rowsieve.types.schema import Schema

_VALUE = "a value of the column's type"
_EMPTY = "an empty list is never written; its NOT IN is read if the ANSI mode is given"
_NOTHING = (
    "NOT IN of nothing keeps NULL where ANSI mode is on, and not where it is off: "
    "pass ansi= to from_spark_filters"
)

_TEXT: Mapping[str, str] = {f"String{kind}": ours for kind, ours in TEXT_TESTS.items()}
FILTERS: tuple[Row, ...] = (
    *(both(name, op.value, _VALUE) for name, op in COMPARISONS.items()),
    both("In", "InList", f"{_VALUE}; {_EMPTY}"),
    both("IsNull", "IsNull"),
    both("IsNotNull", "Not(IsNull)"),
    both("Not", "Not", "of one filter"),
    *(
        both(name, ours, "and LIKE 'text%'" if ours == "starts_with" else "")
        for name, ours in _TEXT.items()
    ),
)
_KNOWN = frozenset(row.foreign for row in FILTERS)
_CLASSES = {op: name for name, op in COMPARISONS.items()}
_TEXT_CLASSES = {ours: name for name, ours in _TEXT.items()}
_ACCEPTED: Mapping[type[LogicalType], tuple[type, ...]] = {
    Bool: (bool,),
    Int: (int,),
    Float: (float,),
    Decimal: (decimal.Decimal,),
    String: (str,),
    Binary: (bytes, bytearray),
    Date: (datetime.date,),
    Time: (datetime.time,),
    Timestamp: (datetime.datetime,),
}
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_DAY = datetime.date(1970, 1, 1).toordinal()
_LAST_DAY = datetime.date.max.toordinal()


def is_spark_filters(value: object) -> bool:
    """Whether this is a Spark filter, or a list or tuple of them; does not import PySpark."""
    module = sys.modules.get("pyspark.sql.datasource")
    known: Any = getattr(module, "Filter", None)
    if known is None or isinstance(value, known):
        return known is not None
    if not isinstance(value, list | tuple):
        return False
    return bool(value) and all(isinstance(item, known) for item in value)


def from_spark_filters(
    filters: Any, schema: Schema, *, strict: bool = False, ansi: bool | None = None
) -> Translation[ir.Predicate, list[Any]]:
    """Read filters over columns of the schema; the residual contains the unsupported ones.

    One filter is a list of one.

    `ansi`: `spark.sql.ansi.enabled` of their session. IN with an empty list is FALSE in ANSI mode,
    and NULL for NULL otherwise. If the mode is unknown, NOT IN with an empty list is unsupported;
    IN with an empty list keeps no row in either mode.
    """
    return read_conditions(
        filters if isinstance(filters, list | tuple) else [filters],
        lambda item: _read(item, schema, ansi),
        list,
        schema,
        Semantics.SPARK,
        strict=strict,
    )


def to_spark_filters(
    predicate: ir.Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.SPARK,
    *,
    strict: bool = False,
) -> Translation[list[Any], ir.Predicate]:
    """Write a predicate with the given semantics as filters over the schema."""
    return write_conditions(
        predicate, lambda root: _write(root, semantics), list, schema, semantics, strict=strict
    )


# Reading


def _read(item: Any, schema: Schema, ansi: bool | None) -> ir.Predicate:
    kind = type(item).__name__
    if kind == "Not":
        depth = 0
        while type(item).__name__ == "Not":  # a chain of NOT may be long
            item, depth = item.child, depth + 1
        if ansi is None and depth % 2 and type(item).__name__ == "In" and not item.value:
            raise UnsupportedOperation(_NOTHING)
        inner = _read(item, schema, ansi)
        return ir.Not(inner) if depth % 2 else inner
    if kind not in _KNOWN:
        raise UnsupportedOperation(f"the filter {kind} is unknown to Rowsieve")
    operand, type_ = _attribute(item.attribute, schema)
    if kind == "IsNull":
        return ir.IsNull(operand)
    if kind == "IsNotNull":
        return ir.Not(ir.IsNull(operand))
    if kind in COMPARISONS:
        literal = ir.Literal(_physical(item.value, type_), type_)
        return ir.Comparison(COMPARISONS[kind], operand, literal)
    if kind == "In":
        return _read_in(operand, type_, item.value, ansi=ansi)
    if not isinstance(type_, String) or not isinstance(item.value, str):
        raise UnsupportedOperation(f"{kind} is of text, not of {type_name(type_)}")
    return ir.BooleanOperand(ir.Call(_TEXT[kind], (operand, ir.Literal(item.value, String()))))


def _read_in(
    operand: ir.Operand, type_: LogicalType, values: Sequence[Any], *, ansi: bool | None
) -> ir.Predicate:
    if not values and ansi is not False:
        return ir.FALSE  # even for NULL; if the mode is unknown, NULL keeps no row either
    plain = isinstance(type_, Bool | Int | Float | String)
    known = plain and set(map(type, values)) <= {*_ACCEPTED[type(type_)], type(None)}
    try:
        physical = values if known else [_physical(value, type_) for value in values]
        members = from_ticks(physical, type_)
    except (pa.ArrowException, OverflowError) as error:
        raise UnsupportedOperation(
            f"a value of IN is not a valid {type_name(type_)}: {error}"
        ) from error
    return ir.InList(operand, ir.ValueSet(members, type_))


def _attribute(path: Sequence[str], schema: Schema) -> tuple[ir.Operand, LogicalType]:
    operand: ir.Operand = ir.Column(path[0])
    type_ = schema.field(path[0]).type
    for name in path[1:]:
        fields = type_.fields if isinstance(type_, Struct) else ()
        matches = [field for field in fields if field.name == name]
        if not matches:
            raise UnsupportedOperation(f"no field {name!r} in a {type_name(type_)}")
        operand, type_ = ir.FieldAccess(operand, name), matches[0].type
    return operand, type_


def _physical(value: Any, type_: LogicalType) -> ir.PhysicalValue:
    """Convert a value to the column's type; raise for a value of another kind."""
    if value is None:
        return None
    if type(value) in _ACCEPTED.get(type(type_), ()):
        if isinstance(value, datetime.datetime) and isinstance(type_, Timestamp):
            return _microseconds(value, type_)
        if isinstance(value, datetime.date):
            return value.toordinal() - _DAY
        if isinstance(value, datetime.time) and value.tzinfo is None:
            since = datetime.datetime.combine(_EPOCH, value) - _EPOCH
            return since // _MICROSECOND
        if not isinstance(value, datetime.time):
            plain: ir.PhysicalValue = bytes(value) if isinstance(value, bytearray) else value
            return plain
    raise UnsupportedOperation(
        f"{type(value).__name__} {value!r} compared with a column of type {type_name(type_)}"
    )


def _microseconds(value: datetime.datetime, type_: Timestamp) -> int:
    if (value.tzinfo is not None) != type_.utc:
        raise UnsupportedOperation(
            f"{value.isoformat()} compared with a {type_name(type_)}: one of them has a time zone"
        )
    zone = datetime.UTC if type_.utc else None
    return (value - _EPOCH.replace(tzinfo=zone)) // _MICROSECOND


# Writing


def _write(node: ir.Predicate, semantics: Semantics) -> Any:
    match node:
        case ir.Comparison(op=op, left=left, right=ir.Literal(value=value, type=type_)):
            path = _path(left)
            assert type_ is not None
            _check_nan(type_, semantics)
            if type_of(left) != type_:
                raise UnsupportedOperation("a filter compares values of one type")
            name = _CLASSES.get(op)
            spark_filter = _filter_of(name or _CLASSES[op.negated], path, _python(value, type_))
            return spark_filter if name is not None else _filter_of("Not", spark_filter)
        case ir.Not(term=ir.IsNull(operand=operand)):
            return _filter_of("IsNotNull", _path(operand))
        case ir.Not(term=term):
            return _filter_of("Not", _write(term, semantics))
        case ir.IsNull(operand=operand):
            return _filter_of("IsNull", _path(operand))
        case ir.InList(operand=operand, values=values):
            return _write_in(_path(operand), values, type_of(operand), semantics)
        case ir.BooleanOperand(
            operand=ir.Call(function=function, arguments=(text, ir.Literal(value=part)))
        ):
            if function in _TEXT_CLASSES and isinstance(part, str):
                return _filter_of(_TEXT_CLASSES[function], _path(text), part)
        case ir.BooleanOperand(operand=ir.BoundColumn() | ir.FieldAccess() as operand):
            return _filter_of("EqualTo", _path(operand), _python(value=True, type_=Bool()))
        case ir.Like(operand=operand):
            return _write_like(node, _path(operand))
    raise UnsupportedOperation("Spark has no filter of this form; compare a column with constants")


def _write_in(
    path: tuple[str, ...], values: ir.ValueSet, type_: LogicalType, semantics: Semantics
) -> Any:
    members = values.array
    _check_nan(type_, semantics)
    if not len(members) or values.type != type_:
        raise UnsupportedOperation("an IN list holds values of the column's type and is not empty")
    bitwise = isinstance(type_, Float) and semantics.compares_bits(len(members))
    if bitwise and pc.any(pc.equal(members, 0.0)).as_py():
        raise UnsupportedOperation("Spark's IN finds zeros of both signs")
    physical: list[Any] = as_ticks(members, type_).to_pylist()
    if not isinstance(type_, Bool | Int | Float | String):
        physical = [_python(value, type_) for value in physical]
    return _filter_of("In", path, tuple(physical))


def _write_like(node: ir.Like, path: tuple[str, ...]) -> Any:
    body, name = node.pattern, "StringStartsWith"
    if body.startswith("%") and body.endswith("%") and len(body) > 1:
        body, name = body[1:-1], "StringContains"
    elif body.startswith("%"):
        body, name = body[1:], "StringEndsWith"
    elif body.endswith("%"):
        body = body[:-1]
    else:
        raise UnsupportedOperation("Spark has a filter of LIKE with % at an end only")
    plain = not any(mark in body for mark in ("%", "_", node.escape or "\\"))
    if node.ignore_case or not plain:
        raise UnsupportedOperation(
            f"{'ILIKE' if node.ignore_case else 'LIKE'} {node.pattern!r}: Spark's filters find "
            "plain text at the start, at the end or inside, in its own case"
        )
    return _filter_of(name, path, body)


def _path(operand: ir.Operand) -> tuple[str, ...]:
    column, names = path_of(operand, "a filter of Spark")
    return (column.name, *names)


def _check_nan(type_: LogicalType, semantics: Semantics) -> None:
    if isinstance(type_, Float) and semantics.nan is NanOrder.IEEE:
        raise UnsupportedOperation(
            "a comparison of floats by IEEE 754: Spark takes NaN for the greatest number, equal to "
            "itself; write it by Spark's rules"
        )


def _python(value: ir.PhysicalValue, type_: LogicalType) -> Any:
    if value is None:
        return None
    match type_:
        case Bool() | Int() | Float() | Decimal() | String() | Binary():
            return value
        case Date() if isinstance(value, int) and 0 < value + _DAY <= _LAST_DAY:
            return datetime.date.fromordinal(value + _DAY)
        case Time() if isinstance(value, int):
            return (_EPOCH + value * _MICROSECOND).time()
        case Timestamp(utc=utc) if isinstance(value, int):
            zone = datetime.UTC if utc else None
            try:
                return _EPOCH.replace(tzinfo=zone) + value * _MICROSECOND
            except OverflowError as error:
                raise UnsupportedOperation("a time that Python cannot hold") from error
    raise UnsupportedOperation(f"a value of type {type_name(type_)} has no form in a filter")


def _filter_of(name: str, *arguments: Any) -> Any:
    make: Callable[..., Any] = getattr(imported("pyspark.sql.datasource", "spark"), name)
    return make(*arguments)
