"""Decode the serialised form of a pyarrow expression to its nodes in prefix order.

The form (`Expression.__reduce__`) is an Arrow IPC file: its schema metadata lists the nodes, and
its columns hold the literals and options. The alternatives are worse: `str(expression)` is
ambiguous, and Substrait loses value sets.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.base import as_operand, as_predicate
from rowsieve.bridges.pyarrow_exprs.literals import literal_of
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir

Decoded: TypeAlias = ir.Predicate | ir.Operand


@dataclass(slots=True)
class Frame:
    """A call whose arguments are being read."""

    function: str
    arguments: list[Decoded] = field(default_factory=list)
    options: pa.StructScalar | None = None


def decode(
    expression: pc.Expression,
    call: Callable[[Frame], Decoded],
    constant: Callable[[pa.Array], Decoded] = literal_of,
) -> Decoded:
    """Convert the expression to our tree; `call` converts each call, innermost first."""
    try:
        message = expression.__reduce__()[1][0]
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedOperation(
            f"pyarrow cannot serialize {expression}: {error}; name each column, as in "
            "pc.field('id'), not by its number"
        ) from error
    batch = pa.ipc.open_file(message).get_batch(0)
    open_: list[Frame] = []
    pending = iter(_metadata_pairs(batch.schema))
    for kind, value in pending:
        node: Decoded
        match kind:
            case "call":
                open_.append(Frame(value))
                continue
            case "options":
                open_[-1].options = batch.column(int(value))[0]
                continue
            case "end":
                node = call(open_.pop())
            case "field_ref":
                node = ir.Column(value)
            case "nested_field_ref":
                node = ir.Column(next(pending)[1])
                for _ in range(int(value) - 1):
                    node = ir.FieldAccess(node, next(pending)[1])
            case "literal":
                node = constant(batch.column(int(value)))
            case _:
                raise UnsupportedOperation(f"a pyarrow expression has an unknown node {kind!r}")
        if not open_:
            return node
        open_[-1].arguments.append(node)
    raise UnsupportedOperation("the serialised pyarrow expression is truncated")


def names_in(expression: pc.Expression) -> set[str]:
    """Return the names of the top-level columns that the expression reads."""
    whole = decode(
        expression,
        lambda frame: ir.Call(frame.function, tuple(map(as_operand, frame.arguments))),
        lambda _: ir.TRUE,
    )
    return {node.name for node in ir.walk(whole) if isinstance(node, ir.Column)}


def junction(kind: type[ir.And | ir.Or], arguments: Iterable[Decoded]) -> ir.Predicate:
    """Return a flat AND or OR of the results."""
    terms: list[ir.Predicate] = []
    for argument in map(as_predicate, arguments):
        terms.extend(argument.terms if isinstance(argument, kind) else (argument,))
    return kind(tuple(terms))


class Options:
    """The options of a call: each must be consumed, or the call is rejected."""

    def __init__(self, name: str, fields: pa.StructScalar | None) -> None:
        self._name = name
        self._left: dict[str, Any] = {} if fields is None else dict(fields.items())
        self._left.pop("_type_name", None)

    def take(self, name: str) -> Any:
        """Consume an option and return it as a scalar; raise if the call lacks it."""
        try:
            return self._left.pop(name)
        except KeyError:
            raise UnsupportedOperation(
                f"the pyarrow function {self._name!r} is called without its option {name!r}, which "
                "pyarrow requires"
            ) from None

    def must(self, name: str, *, value: Any) -> None:
        """Consume an option, which must have this value if it exists."""
        if (option := self._left.pop(name, None)) is not None and option.as_py() != value:
            self._refuse(name)

    def ignore(self, *names: str) -> None:
        """Consume options that do not affect the result."""
        for name in names:
            self._left.pop(name, None)

    def done(self) -> None:
        """Raise if an option was not consumed."""
        if self._left:
            self._refuse(next(iter(self._left)))

    def _refuse(self, name: str) -> None:
        raise UnsupportedOperation(
            f"the pyarrow function {self._name!r} has the option {name!r}, which has no "
            "counterpart here"
        )


class _ArrowSchema(ctypes.Structure):
    """The start of the struct of the C data interface; `metadata` contains all pairs in order."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _metadata_pairs(schema: pa.Schema) -> list[tuple[str, str]]:
    """Return the schema's metadata in order, with repeated keys, which `Schema.metadata` loses."""
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
