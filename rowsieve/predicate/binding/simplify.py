"""Simplify bound trees: compute constants, and invert functions of a column.

`date_trunc('day', ts) = d` becomes a range of `ts`, `id + 1 = 5` becomes `id = 4`: then blooms,
page indexes and the other conjuncts apply.

Soundness: every row keeps its outcome: TRUE, FALSE, NULL or failed. So a function is inverted only
if it is defined on all values, or together with a term that fails on the same rows; a constant
expression that fails is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.predicate.binding.enum_labels import read_as_text
from rowsieve.predicate.binding.inverses import inverted_comparison, inverted_list
from rowsieve.predicate.functions.casting.casts import cast_as_written, gives_null
from rowsieve.predicate.functions.registry import known_of, resolve
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.literal_values import from_scalar, scalar
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Bool,
    Enum,
    Json,
    LogicalType,
    Map,
    String,
    Struct,
    Timestamp,
)

_MAX_STEPS = 32  # limit of nested functions that are inverted


def simplify(predicate: ir.Predicate, semantics: Semantics) -> ir.Predicate:
    """Rewrite a bound tree to a form with the same outcome on every row that prunes better."""
    terms = [_predicate(term, semantics) for term in ir.root_conjuncts(predicate)]
    return terms[0] if len(terms) == 1 else ir.And(tuple(terms))


def _predicate(node: ir.Predicate, semantics: Semantics) -> ir.Predicate:
    match node:
        case ir.Not(term=term):
            return ir.Not(_predicate(term, semantics))
        case ir.And(terms=terms):
            return ir.And(tuple(_predicate(term, semantics) for term in terms))
        case ir.Or(terms=terms):
            return ir.Or(tuple(_predicate(term, semantics) for term in terms))
        case ir.Comparison(op=op, left=left, right=right):
            return _comparison(op, left, right, semantics)
        case ir.InList(operand=operand, values=values):
            simple, type_ = _operand(operand, semantics)
            return inverted_list(ir.InList(simple, values), type_) or ir.InList(simple, values)
        case ir.IsNull(operand=operand):
            return ir.IsNull(_operand(operand, semantics)[0])
        case ir.Like():
            return _like(node, semantics)
        case ir.BooleanOperand(operand=ir.Condition(predicate=inner)):
            return _predicate(inner, semantics)
        case ir.BooleanOperand(operand=operand):
            return ir.BooleanOperand(_operand(operand, semantics)[0])
        case _:
            return node


def _comparison(
    op: ir.ComparisonOp, left: ir.Operand, right: ir.Operand, semantics: Semantics
) -> ir.Predicate:
    left, right = _operand(left, semantics)[0], _operand(right, semantics)[0]
    if isinstance(left, ir.BoundColumn) and isinstance(right, ir.Literal):
        return ir.Comparison(op, left, right)  # without a function to invert
    if isinstance(left, ir.Literal) and not isinstance(right, ir.Literal):
        op, left, right = op.mirrored, right, left
    plain = ir.Comparison(op, left, right)
    if not isinstance(right, ir.Literal) or isinstance(left, ir.Literal) or right.value is None:
        return plain
    simplified: ir.Predicate = plain
    for _ in range(_MAX_STEPS):
        step = _one_step(simplified, semantics)
        if step is None:
            return simplified
        simplified = step
    return simplified


def _one_step(predicate: ir.Predicate, semantics: Semantics) -> ir.Predicate | None:
    """Invert the outermost function of each comparison that the previous step produced.

    An AND inside an OR marks a call that is kept because it may fail.
    """
    match predicate:
        case ir.Comparison(op=op, left=left, right=ir.Literal() as constant):
            return inverted_comparison(op, left, type_of(left), constant, semantics)
        case ir.And(terms=terms) | ir.Or(terms=terms):
            in_or = isinstance(predicate, ir.Or)
            steps = [
                None if in_or and isinstance(term, ir.And) else _one_step(term, semantics)
                for term in terms
            ]
            if all(step is None for step in steps):
                return None
            simplified = tuple(step or term for step, term in zip(steps, terms, strict=True))
            return ir.Or(simplified) if in_or else ir.And(simplified)
        case _:
            return None


def _like(node: ir.Like, semantics: Semantics) -> ir.Predicate:
    operand, _ = _operand(node.operand, semantics)
    pattern = parse_pattern(node.pattern, node.escape)
    if pattern.is_exact and not node.ignore_case:
        return _comparison(
            ir.ComparisonOp.EQ, operand, ir.Literal(pattern.prefix, String()), semantics
        )
    return ir.Like(operand, node.pattern, node.escape, node.ignore_case)


def _operand(node: ir.Operand, semantics: Semantics) -> tuple[ir.Operand, LogicalType]:
    """Return the operand with its constants computed, and its type."""
    match node:
        case ir.BoundColumn(type=type_):
            read = read_as_text(node)
            return read, type_ if read is node else String()
        case ir.Literal(type=type_):
            assert type_ is not None
            read = read_as_text(node)
            return read, type_ if read is node else String()
        case ir.Call(function=function, arguments=arguments):
            pairs = [_operand(argument, semantics) for argument in arguments]
            return _call(function, pairs, semantics)
        case ir.Cast(operand=operand, type=type_, try_=try_):
            simple, source = _operand(operand, semantics)
            if source == type_ == String() and isinstance(type_of(operand), Enum):
                return simple, type_
            return _cast(ir.Cast(simple, type_, try_), source, semantics), type_
        case ir.FieldAccess(operand=operand, name=name):
            simple, type_ = _operand(operand, semantics)
            assert isinstance(type_, Struct)
            member = next(field for field in type_.fields if field.name == name)
            return ir.FieldAccess(simple, name), member.type
        case ir.Case(branches=branches, otherwise=otherwise):
            last, type_ = _operand(otherwise, semantics)
            simple_branches = tuple(
                (_predicate(when, semantics), _operand(then, semantics)[0])
                for when, then in branches
            )
            return ir.Case(simple_branches, last), type_
        case ir.Condition(predicate=predicate):
            return ir.Condition(_predicate(predicate, semantics)), Bool()
        case ir.Now():
            return node, Timestamp(utc=True)
        case _:
            raise AssertionError(f"{node!r} is not bound")


def _call(
    function: str, pairs: Sequence[tuple[ir.Operand, LogicalType]], semantics: Semantics
) -> tuple[ir.Operand, LogicalType]:
    arguments = tuple(operand for operand, _ in pairs)
    row, signature = resolve(function, known_of(arguments, [type_ for _, type_ in pairs]))
    node = ir.Call(function, arguments)
    constants = [argument for argument in arguments if isinstance(argument, ir.Literal)]
    if len(constants) < len(arguments) or not _has_constants(signature.result):
        return node, signature.result
    columns = [pa.repeat(scalar(constant), 1) for constant in constants]
    computed = row.evaluate(columns, signature, semantics)
    if computed.failed is not None and computed.failed[0]:
        return node, signature.result
    return from_scalar(computed.values[0], signature.result), signature.result


def _has_constants(type_: LogicalType) -> bool:
    """Whether a computed value of the type can become a literal."""
    return not isinstance(type_, Json | Map)


def _cast(node: ir.Cast, source: LogicalType, semantics: Semantics) -> ir.Operand:
    if not isinstance(node.operand, ir.Literal) or not _has_constants(node.type):
        return node
    constant = pa.repeat(scalar(node.operand), 1)
    computed = cast_as_written(constant, source, node.type, semantics, try_=node.try_)
    if computed.failed is not None and computed.failed[0]:
        quiet = gives_null(node.type, semantics, try_=node.try_)
        return ir.Literal(None, node.type) if quiet else node
    return from_scalar(computed.values[0], node.type)
