"""Serialise predicates as JSON for plans: each node is an object with its kind under `node`.

Values carry their kind, so the result does not depend on how a JSON library reads numbers: integers
beyond 2^53, floats (their shortest exact text) and decimals are text, bytes are base64, and IN
lists are Arrow IPC streams in base64. Decoding never runs code and rejects input that nests deeper
than a predicate may.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import decimal
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, assert_never

import pyarrow as pa

from rowsieve.errors import CorruptData, InvalidPredicate, RowsieveError
from rowsieve.predicate import ir
from rowsieve.predicate.limits import MAX_DEPTH, check_limits
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Field, LogicalType
from rowsieve.types.schema import Schema, schema_from_json, schema_to_json

Json = dict[str, Any]
_EXACT_IN_JSON = 2**53
_MALFORMED = (
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    StopIteration,
    pa.ArrowException,
)


def predicate_to_json(predicate: ir.Predicate) -> Json:
    """Convert the predicate to objects, lists, text and numbers."""
    check_limits(predicate)
    return ir.fold(predicate, _encoded)


def operand_to_json(operand: ir.Operand) -> Json:
    """Convert the operand to objects, lists, text and numbers."""
    check_limits(operand)
    return ir.fold(operand, _encoded)


def predicate_from_json(value: Any) -> ir.Predicate:
    """Decode the output of `predicate_to_json`; CorruptData for any other value."""
    with _Reading():
        predicate = _read_predicate(value, MAX_DEPTH)
        check_limits(predicate)
        return predicate


def operand_from_json(value: Any) -> ir.Operand:
    """Decode the output of `operand_to_json`; CorruptData for any other value."""
    with _Reading():
        operand = _read_operand(value, MAX_DEPTH)
        check_limits(operand)
        return operand


def semantics_to_json(semantics: Semantics) -> Json:
    """Return the name, and the fields that differ from the built-in semantics of that name."""
    document: Json = {"name": semantics.name}
    built_in = Semantics.named(semantics.name)
    for field in dataclasses.fields(Semantics):
        value = getattr(semantics, field.name)
        if value != getattr(built_in, field.name):
            document[field.name] = value.value if isinstance(value, Enum) else value
    return document


def semantics_from_json(value: Any) -> Semantics:
    """Decode the output of `semantics_to_json`; CorruptData for any other value."""
    with _Reading():
        semantics = Semantics.named(value["name"])
        changed = {name: _field(name, member) for name, member in value.items() if name != "name"}
        return dataclasses.replace(semantics, **changed)


def _field(name: str, value: Any) -> Any:
    """Decode a field of `Semantics`, by the type of its default."""
    defaults = {field.name: field.default for field in dataclasses.fields(Semantics)}
    default = defaults[name]
    if isinstance(default, Enum):
        return type(default)(value)
    if default is None:
        return None if value is None else int(value)
    if type(value) is not type(default):
        raise TypeError(f"{name} is {value!r}")
    return value


class _Reading:
    """Convert every error caused by malformed input to `CorruptData`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is None or isinstance(error, RowsieveError):
            return
        if isinstance(error, _MALFORMED):
            raise CorruptData(
                f"a serialised predicate is malformed: {error!r}; serialise it again"
            ) from error


def _encoded(node: ir.Node, below: tuple[Json, ...]) -> Json:
    """Encode a node whose children are encoded."""
    match node:
        case ir.TruePredicate():
            return {"node": "true"}
        case ir.FalsePredicate():
            return {"node": "false"}
        case ir.Comparison(op=op):
            left, right = below
            return {"node": "comparison", "op": op.value, "left": left, "right": right}
        case ir.Not():
            return {"node": "not", "term": below[0]}
        case ir.And():
            return {"node": "and", "terms": list(below)}
        case ir.Or():
            return {"node": "or", "terms": list(below)}
        case ir.InList(values=values):
            return {"node": "in", "operand": below[0], **_values(values)}
        case ir.IsNull():
            return {"node": "is_null", "operand": below[0]}
        case ir.Like(pattern=pattern, escape=escape, ignore_case=ignore_case):
            return {
                "node": "like",
                "operand": below[0],
                "pattern": pattern,
                "escape": escape,
                "ignore_case": ignore_case,
            }
        case ir.BooleanOperand():
            return {"node": "boolean", "operand": below[0]}
        case ir.Opaque(description=description, source=source, columns=columns):
            return {
                "node": "opaque",
                "description": description,
                "source": source,
                "columns": list(columns),
            }
        case _:
            return _encoded_operand(node, below)


def _encoded_operand(node: ir.Operand, below: tuple[Json, ...]) -> Json:
    match node:
        case ir.Column(name=name):
            return {"node": "column", "name": name}
        case ir.BoundColumn(field_id=field_id, name=name, type=type_):
            return {"node": "bound_column", "id": field_id, "name": name, "type": _type(type_)}
        case ir.Literal(value=value, type=type_):
            return {"node": "literal", "value": _value(value), "type": _type(type_)}
        case ir.Call(function=function):
            return {"node": "call", "function": function, "arguments": list(below)}
        case ir.Cast(type=type_, try_=try_):
            return {"node": "cast", "operand": below[0], "type": _type(type_), "try": try_}
        case ir.FieldAccess(name=name):
            return {"node": "field", "operand": below[0], "name": name}
        case ir.Case():
            pairs = zip(below[:-1:2], below[1:-1:2], strict=True)
            return {
                "node": "case",
                "branches": [[when, then] for when, then in pairs],
                "otherwise": below[-1],
            }
        case ir.Now():
            return {"node": "now"}
        case ir.Condition():
            return {"node": "condition", "predicate": below[0]}
        case _:
            assert_never(node)


def _read_predicate(value: Mapping[str, Any], depth: int) -> ir.Predicate:
    below = _below(depth)
    match value["node"]:
        case "true":
            return ir.TRUE
        case "false":
            return ir.FALSE
        case "comparison":
            left, right = (_read_operand(value[side], below) for side in ("left", "right"))
            return ir.Comparison(ir.ComparisonOp(value["op"]), left, right)
        case "not":
            return ir.Not(_read_predicate(value["term"], below))
        case "and":
            return ir.And(tuple(_read_predicate(term, below) for term in value["terms"]))
        case "or":
            return ir.Or(tuple(_read_predicate(term, below) for term in value["terms"]))
        case "in":
            return ir.InList(_read_operand(value["operand"], below), _read_values(value))
        case "is_null":
            return ir.IsNull(_read_operand(value["operand"], below))
        case "like":
            escape = value["escape"]
            return ir.Like(
                _read_operand(value["operand"], below),
                _text(value["pattern"]),
                None if escape is None else _text(escape),
                _flag(value["ignore_case"]),
            )
        case "boolean":
            return ir.BooleanOperand(_read_operand(value["operand"], below))
        case "opaque":
            names = tuple(_text(name) for name in value["columns"])
            return ir.Opaque(_text(value["description"]), _text(value["source"]), names)
        case other:
            raise ValueError(f"unknown predicate {other!r}")


def _read_operand(value: Mapping[str, Any], depth: int) -> ir.Operand:
    below = _below(depth)
    match value["node"]:
        case "column":
            return ir.Column(_text(value["name"]))
        case "bound_column":
            return ir.BoundColumn(
                int(value["id"]), _text(value["name"]), _known_type(value["type"])
            )
        case "literal":
            return ir.Literal(_read_value(value["value"]), _read_type(value["type"]))
        case "call":
            arguments = tuple(_read_operand(item, below) for item in value["arguments"])
            return ir.Call(_text(value["function"]), arguments)
        case "cast":
            operand = _read_operand(value["operand"], below)
            return ir.Cast(operand, _known_type(value["type"]), _flag(value["try"]))
        case "field":
            return ir.FieldAccess(_read_operand(value["operand"], below), _text(value["name"]))
        case "case":
            branches = tuple(
                (_read_predicate(when, below), _read_operand(then, below))
                for when, then in value["branches"]
            )
            return ir.Case(branches, _read_operand(value["otherwise"], below))
        case "now":
            return ir.Now()
        case "condition":
            return ir.Condition(_read_predicate(value["predicate"], below))
        case other:
            raise ValueError(f"unknown operand {other!r}")


def _below(depth: int) -> int:
    if depth <= 0:
        raise InvalidPredicate(
            f"a serialised predicate nests deeper than {MAX_DEPTH} levels; flatten or split it"
        )
    return depth - 1


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, got {value!r}")
    return value


def _value(value: ir.PhysicalValue) -> Json | None:
    match value:
        case None:
            return None
        case bool():
            return {"bool": value}
        case int():
            return {"int": value if abs(value) <= _EXACT_IN_JSON else str(value)}
        case float():
            negative_nan = math.isnan(value) and math.copysign(1, value) < 0
            return {"float": "-nan" if negative_nan else repr(value)}
        case decimal.Decimal():
            return {"decimal": str(value)}
        case str():
            return {"text": value}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case tuple():
            return {"members": [_value(member) for member in value]}


def _read_value(value: Any, depth: int = MAX_DEPTH) -> ir.PhysicalValue:
    if value is None:
        return None
    ((kind, content),) = value.items()
    match kind:
        case "bool":
            return _flag(content)
        case "int":
            return int(content)
        case "float":
            return float(content)
        case "decimal":
            return decimal.Decimal(content)
        case "text":
            return _text(content)
        case "bytes":
            return _bytes(content)
        case "members":
            return tuple(_read_value(member, _below(depth)) for member in content)
        case _:
            raise ValueError(f"unknown kind of value {kind!r}")


def _bytes(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


def _values(values: ir.ValueSet) -> Json:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([values.array], names=["values"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content = base64.b64encode(sink.getvalue().to_pybytes()).decode()
    return {"values": content, "type": _type(values.type)}


def _read_values(value: Mapping[str, Any]) -> ir.ValueSet:
    with pa.ipc.open_stream(_bytes(value["values"])) as reader:
        batch = reader.read_next_batch()
    batch.validate(full=True)
    return ir.ValueSet(batch.column(0), _read_type(value["type"]))


def _type(type_: LogicalType | None) -> Any:
    if type_ is None:
        return None
    return schema_to_json(Schema(0, (Field(0, "", type_),)))["fields"][0]["type"]


def _read_type(value: Any) -> LogicalType | None:
    return None if value is None else _known_type(value)


def _known_type(value: Any) -> LogicalType:
    field = {"id": 0, "name": "", "type": value, "nullable": True}
    return schema_from_json({"id": 0, "fields": [field]}).fields[0].type
