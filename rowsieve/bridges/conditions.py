"""Translate each condition of the top-level AND separately, wholly or not at all.

A condition that a bridge does not support is omitted, and reported with its position and the
reason.

Soundness: only whole conditions of that AND are omitted, so the result is TRUE wherever the
original is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rowsieve.bridges.condition_notes import note_on
from rowsieve.bridges.differences import Direction, check
from rowsieve.bridges.translation import Translation, translated
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind, bind_each
from rowsieve.predicate.bound import BoundPredicate
from rowsieve.predicate.interpretation.nan_signs import check_nan_signs
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.logical import is_nested, type_name
from rowsieve.types.schema import Schema

E = TypeVar("E")
R = TypeVar("R")


def _accept(_condition: object, _bound: BoundPredicate) -> None:
    """Accept every condition: the reader has refused the others."""


def read_conditions(
    conditions: Sequence[E],
    read: Callable[[E], ir.Predicate],
    join: Callable[[list[E]], R],
    schema: Schema,
    semantics: Semantics,
    *,
    accept: Callable[[E, BoundPredicate], None] = _accept,
    shown: Callable[[E], object] = str,
    strict: bool = False,
) -> Translation[ir.Predicate, R]:
    """Read all conditions and bind them once; those that are rejected are the residual.

    `read` returns the tree of a condition; `accept` raises `UnsupportedOperation` for a bound one
    that has another meaning in the engine.
    """
    readable: list[BoundPredicate] = []
    left: list[E] = []
    notes: list[str] = []
    direction = (
        Direction.READS | Direction.IN_CONJUNCTION if len(conditions) > 1 else Direction.READS
    )
    readings = [_read(read, condition) for condition in conditions]
    trees = [reading for reading in readings if not isinstance(reading, Exception)]
    bound = iter(bind_each(trees, schema, semantics))
    for index, (condition, reading) in enumerate(zip(conditions, readings, strict=True)):
        try:
            result = reading if isinstance(reading, Exception) else next(bound)
            if isinstance(result, Exception):
                raise result
            accept(condition, result)
            check(result.root, semantics.name, direction)
            readable.append(result)
        except UnknownColumn:
            raise
        except (UnsupportedOperation, InvalidPredicate) as error:
            notes.append(note_on(index, len(conditions), shown(condition), error))
            left.append(condition)
    whole = ir.conjoin(each.source for each in readable) if readable or not left else None
    residual = join(left) if left else None
    return translated(whole, residual, notes, strict=strict, bound=readable)


def _read(
    read: Callable[[E], ir.Predicate], condition: E
) -> ir.Predicate | InvalidPredicate | UnsupportedOperation:
    """Return the tree of a condition, or the error of one that is rejected."""
    try:
        return read(condition)
    except (InvalidPredicate, UnsupportedOperation) as error:
        return error


def write_conditions(
    predicate: ir.Predicate,
    write: Callable[[ir.Predicate], E],
    join: Callable[[list[E]], R],
    schema: Schema,
    semantics: Semantics,
    *,
    strict: bool = False,
) -> Translation[R, ir.Predicate]:
    """Bind the predicate and write each condition; rejected ones are the residual."""
    conditions = bind(predicate, schema, semantics, simplified=False).conjuncts
    written: list[E] = []
    left: list[ir.Predicate] = []
    notes: list[str] = []
    for index, (condition, root) in enumerate(conditions):
        try:
            _refuse_nested(root)
            if semantics.nan is NanOrder.SIGNED:
                check_nan_signs(root)
            written.append(write(root))
        except UnsupportedOperation as error:
            notes.append(note_on(index, len(conditions), condition, error))
            left.append(condition)
    whole = join(written) if written or not left else None
    return translated(whole, ir.conjoin(left) if left else None, notes, strict=strict)


def _refuse_nested(root: ir.Predicate) -> None:
    """Raise for comparisons of lists and structs: engines differ, and no writer supports them."""
    for node in ir.walk(root):
        if isinstance(node, ir.Comparison) and is_nested(type_ := type_of(node.left)):
            raise UnsupportedOperation(
                f"engines compare values of {type_name(type_)} differently; compare their items or "
                "fields"
            )
