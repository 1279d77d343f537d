"""pyarrow expressions as predicates: what DataFusion pushes down, and what users write.

An expression is read from its serialised form (`Expression.__reduce__`): an Arrow IPC file whose
schema metadata lists the nodes in prefix order and whose columns hold the literals and options.
`str(expression)` is ambiguous, and Substrait loses value sets. Soundness: every node and option is
known here or the whole expression is refused, by `UnsupportedOperation`; nothing is dropped.

DataFusion means SQL by the expressions that it builds: NULL IN (…) is NULL. In pyarrow itself
`is_in` is never NULL; `in_matches_null=True` reads it so.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import SchemaMismatch, UnsupportedOperation
from rowsieve.predicate.ir import (
    FALSE,
    TRUE,
    And,
    BooleanOperand,
    Call,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    FieldAccess,
    InList,
    IsNull,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    ValueSet,
)
from rowsieve.types.conform import conform
from rowsieve.types.encodings import logical_type
from rowsieve.types.logical import Date, Field, LogicalType, Time, Timestamp, is_nested
from rowsieve.types.schema import Schema

_COMPARISONS: Mapping[str, ComparisonOp] = {
    "equal": ComparisonOp.EQ,
    "not_equal": ComparisonOp.NE,
    "less": ComparisonOp.LT,
    "less_equal": ComparisonOp.LE,
    "greater": ComparisonOp.GT,
    "greater_equal": ComparisonOp.GE,
}
_ARITHMETIC: Mapping[str, str] = {  # the unchecked ones wrap around
    "add_checked": "add",
    "subtract_checked": "subtract",
    "multiply_checked": "multiply",
}
_MATCH, _SKIP, _EMIT_NULL, _INCONCLUSIVE = range(4)  # SetLookupOptions::NullMatchingBehavior


@dataclass(slots=True)
class _Frame:
    """A call whose arguments are being read."""

    function: str
    arguments: list[Predicate | Operand] = field(default_factory=list)
    options: pa.StructScalar | None = None


def is_pyarrow_expression(value: object) -> bool:
    """Whether this is a pyarrow (dataset or compute) expression."""
    return isinstance(value, pc.Expression)


def from_pyarrow(expression: pc.Expression, *, in_matches_null: bool = False) -> Predicate:
    """Read an expression as a predicate; literals get their types and physical values.

    `in_matches_null`: give `is_in` the meaning that pyarrow gives it, where NULL is found in a set
    that holds NULL and is FALSE otherwise; by default it is SQL's IN, as DataFusion means it.
    """
    batch = pa.ipc.open_file(expression.__reduce__()[1][0]).get_batch(0)
    return _as_predicate(_decode(batch, in_matches_null=in_matches_null))


def _decode(batch: pa.RecordBatch, *, in_matches_null: bool) -> Predicate | Operand:
    open_: list[_Frame] = []
    pending = iter(_metadata_pairs(batch.schema))
    for kind, value in pending:
        node: Predicate | Operand
        match kind:
            case "call":
                open_.append(_Frame(value))
                continue
            case "options":
                open_[-1].options = batch.column(int(value))[0]
                continue
            case "end":
                node = _call(open_.pop(), in_matches_null=in_matches_null)
            case "field_ref":
                node = Column(value)
            case "nested_field_ref":
                node = Column(next(pending)[1])
                for _ in range(int(value) - 1):
                    node = FieldAccess(node, next(pending)[1])
            case "literal":
                node = literal_of(batch.column(int(value)))
            case _:
                raise UnsupportedOperation(f"a pyarrow expression holds an unknown node {kind!r}")
        if not open_:
            return node
        open_[-1].arguments.append(node)
    raise UnsupportedOperation("a pyarrow expression ends before its calls do")


def _call(frame: _Frame, *, in_matches_null: bool) -> Predicate | Operand:
    name, arguments = frame.function, frame.arguments
    options = {} if frame.options is None else dict(frame.options.items())
    options.pop("_type_name", None)
    if name == "is_in":
        return _is_in(_as_operand(arguments[0]), options, in_matches_null=in_matches_null)
    if name == "is_null" and not _truth(options.pop("nan_is_null", None)):
        _refuse_options(name, options)
        return IsNull(_as_operand(arguments[0]))
    if name == "starts_with" and not _truth(options.pop("ignore_case", None)):
        prefix = literal_of(pa.array([options.pop("pattern").as_py()], pa.string()))
        _refuse_options(name, options)
        return Call("starts_with", (_as_operand(arguments[0]), prefix))
    if name in _ARITHMETIC or name in _CALLS:
        if name in _CALLS:
            _refuse_options(name, options)
            return _CALLS[name](arguments)
        return Call(_ARITHMETIC[name], tuple(map(_as_operand, arguments)))
    if (op := _COMPARISONS.get(name)) is not None:
        _refuse_options(name, options)
        left, right = map(_as_operand, arguments)
        return Comparison(op, left, right)
    raise UnsupportedOperation(
        f"the pyarrow function {name!r}{' with these options' if options else ''} has no "
        "counterpart here; write the condition as SQL text"
    )


def _is_in(operand: Operand, options: dict[str, pa.Scalar], *, in_matches_null: bool) -> Predicate:
    members = options.pop("value_set").values
    behaviour = int(options.pop("null_matching_behavior").as_py())
    _refuse_options("is_in", options)
    array, type_ = stored(members)
    if behaviour == _INCONCLUSIVE or not in_matches_null:
        return InList(operand, ValueSet(array, type_))
    found = InList(operand, ValueSet(array.drop_null(), type_))
    if behaviour == _EMIT_NULL:
        return found
    if behaviour == _MATCH and array.null_count:
        return Or((IsNull(operand), found))
    return And((Not(IsNull(operand)), found))


def _kleene(node: type[And | Or]) -> Callable[[list[Any]], Predicate]:
    def build(arguments: list[Any]) -> Predicate:
        terms: list[Predicate] = []
        for argument in map(_as_predicate, arguments):
            terms.extend(argument.terms if isinstance(argument, node) else (argument,))
        return node(tuple(terms))

    return build


_CALLS: Mapping[str, Callable[[list[Any]], Predicate]] = {
    "and_kleene": _kleene(And),
    "or_kleene": _kleene(Or),
    "invert": lambda arguments: Not(_as_predicate(arguments[0])),
    "is_valid": lambda arguments: Not(IsNull(_as_operand(arguments[0]))),
}


def _truth(option: pa.Scalar | None) -> bool:
    return option is not None and bool(option.as_py())


def _refuse_options(name: str, options: Mapping[str, Any]) -> None:
    if options:
        raise UnsupportedOperation(
            f"the pyarrow function {name!r} has the option {next(iter(options))!r}, which has no "
            "counterpart here"
        )


def _as_predicate(node: Predicate | Operand) -> Predicate:
    if isinstance(node, Condition):
        return node.predicate
    if isinstance(node, Literal) and isinstance(node.value, bool):
        return TRUE if node.value else FALSE
    return node if isinstance(node, Predicate) else BooleanOperand(node)


def _as_operand(node: Predicate | Operand) -> Operand:
    if isinstance(node, BooleanOperand):
        return node.operand
    return Condition(node) if isinstance(node, Predicate) else node


def literal_of(column: pa.Array) -> Literal:
    """The first value of the array as a literal of its logical type."""
    array, type_ = stored(column)
    if type_ is None:
        return Literal(None)
    if isinstance(type_, Date):
        array = array.view(pa.int32())
    elif isinstance(type_, Time | Timestamp):
        array = array.view(pa.int64())
    return Literal(array[0].as_py(), type_)


def stored(array: pa.Array) -> tuple[pa.Array, LogicalType | None]:
    """The values in the storage type of their logical type; values that do not fit are refused."""
    if pa.types.is_null(array.type):
        return array, None
    try:
        type_ = logical_type(pa.field("literal", array.type), lambda: 0)
        schema = Schema(0, (Field(1, "literal", type_),))
        stored = conform(pa.table({"literal": array}), schema).column(0).combine_chunks()
    except SchemaMismatch as error:
        raise UnsupportedOperation(
            f"a constant of the Arrow type {array.type} cannot stand in a predicate: {error}"
        ) from error
    if is_nested(type_):
        raise UnsupportedOperation(f"a constant of the Arrow type {array.type} is not supported")
    return stored, type_


class _ArrowSchema(ctypes.Structure):
    """The head of the C data interface's struct; `metadata` holds every pair in order."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _metadata_pairs(schema: pa.Schema) -> list[tuple[str, str]]:
    """The schema's metadata in order, with repeated keys, which `Schema.metadata` loses."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = schema.__arrow_c_schema__()  # owns the memory that is read below
    place = _ArrowSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    if place is None:
        return []

    def number() -> int:
        nonlocal place
        value = ctypes.c_int32.from_address(place).value
        place += 4
        return value

    def text() -> str:
        nonlocal place
        size = number()
        value = ctypes.string_at(place, size).decode()
        place += size
        return value

    return [(text(), text()) for _ in range(number())]
