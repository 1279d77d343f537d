"""Read the conditions of sqlglot's tree: comparisons, lists, tests and patterns.

Soundness: a form that dialects interpret differently is read in those alone whose meaning is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from rowsieve.bridges.sql.constructs.bins import difference
from rowsieve.bridges.sql.constructs.pattern_calls import PREDICATES as PATTERNS
from rowsieve.bridges.sql.constructs.pattern_calls import null_match, similar
from rowsieve.bridges.sql.constructs.sql_literals import value_set
from rowsieve.bridges.sql.grammars import is_safe_equality
from rowsieve.bridges.sql.plain_shapes import between
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.reading.list_calls import always, compare_with_items, patterns
from rowsieve.bridges.sql.reading.row_values import compare_rows, row_among
from rowsieve.bridges.sql.spark.types.numbers_and_times import AMONG, text_of_bytes
from rowsieve.predicate import ir
from rowsieve.types.logical import Bool

_COMPARISONS: Mapping[type[Any], ir.ComparisonOp] = {
    exp.EQ: ir.ComparisonOp.EQ,
    exp.NEQ: ir.ComparisonOp.NE,
    exp.LT: ir.ComparisonOp.LT,
    exp.LTE: ir.ComparisonOp.LE,
    exp.GT: ir.ComparisonOp.GT,
    exp.GTE: ir.ComparisonOp.GE,
    exp.NullSafeEQ: ir.ComparisonOp.NOT_DISTINCT,
    exp.NullSafeNEQ: ir.ComparisonOp.DISTINCT,
}
# Sides with which a comparison is of rows, of the items of a list, or of a difference of times.
_COMPOUND = (exp.Paren, exp.Sub, exp.Any, exp.All, exp.Anonymous, exp.Tuple)
TRUTH = {True: ir.Literal(value=True, type=Bool()), False: ir.Literal(value=False, type=Bool())}


def _comparison(reader: Reads, node: Any) -> ir.Predicate:
    reader.only(node, "this", "expression")
    op = _COMPARISONS[type(node)]
    if isinstance(node.this, _COMPOUND) or isinstance(node.expression, _COMPOUND):
        if (sides := difference(reader, node)) is not None:
            return ir.Comparison(op, *sides)
        comparison = compare_with_items(reader, op, node) or compare_rows(reader, op, node)
        if comparison is not None:
            return comparison
    return ir.Comparison(op, reader.compared(node.this), reader.compared(node.expression))


def _not_distinct(reader: Reads, node: Any) -> ir.Predicate:
    if is_safe_equality(node) and not reader.dialect.safe_equality:
        raise reader.source.refusal(
            node, "<=> is read in spark and datafusion; write IS NOT DISTINCT FROM"
        )
    return _comparison(reader, node)


def _not(reader: Reads, node: Any) -> ir.Predicate:
    reader.only(node, "this")
    return ir.Not(reader.predicate(node.this))


def _between(reader: Reads, node: Any) -> ir.Predicate:
    reader.only(node, "this", "low", "high", "negate", "symmetric")
    if node.args.get("symmetric") and not reader.dialect.symmetric_between:
        raise reader.source.refusal(node, "BETWEEN SYMMETRIC is read in postgres only")
    value = reader.side(node.this)
    low, high = reader.compared(node.args["low"]), reader.compared(node.args["high"])
    inside: ir.Predicate = between(value, low, high)
    if node.args.get("symmetric"):
        inside = ir.Or((inside, between(value, high, low)))
    return ir.Not(inside) if node.args.get("negate") else inside


def _in(reader: Reads, node: Any) -> ir.Predicate:
    if (query := node.args.get("query") or node.args.get("unnest")) is not None:
        raise reader.source.refusal(query, "IN takes a list of values, not a query; run it first")
    if node.args.get("field") is not None and reader.dialect.lists.in_list_column:
        reader.only(node, "this", "field")
        values, sought = reader.operand(node.args["field"]), reader.side(node.this)
        return ir.BooleanOperand(ir.Call("list_contains", (values, sought)))
    reader.only(node, "this", "expressions", "negate")
    if (rows := row_among(reader, node)) is not None:
        return ir.Not(rows) if node.args.get("negate") else rows
    operand = reader.side(node.this)
    membership = _members(reader, operand, node.expressions)
    return ir.Not(membership) if node.args.get("negate") else membership


def _members(reader: Reads, operand: ir.Operand, nodes: list[Any]) -> ir.Predicate:
    lists = reader.source.lifted.lists
    if len(nodes) == 1 and isinstance(nodes[0], exp.Column) and nodes[0].name in lists:
        return ir.InList(operand, lists[nodes[0].name])
    members = [reader.compared(item) for item in nodes]
    constants = [member for member in members if isinstance(member, ir.Literal)]
    if len(constants) == len(members) and (values := value_set(constants)) is not None:
        return ir.InList(operand, values)
    if reader.dialect.gives_types:
        return ir.BooleanOperand(ir.Call(AMONG, (operand, *members)))
    terms = tuple(ir.Comparison(ir.ComparisonOp.EQ, operand, member) for member in members)
    return terms[0] if len(terms) == 1 else ir.Or(terms)


def _is(reader: Reads, node: Any) -> ir.Predicate:
    reader.only(node, "this", "expression", "negate")
    operand = reader.side(node.this)
    negate = bool(node.args.get("negate"))
    if isinstance(node.expression, exp.Null):
        return ir.Not(ir.IsNull(operand)) if negate else ir.IsNull(operand)
    if isinstance(node.expression, exp.Boolean):
        return ir.Comparison(
            ir.ComparisonOp.DISTINCT if negate else ir.ComparisonOp.NOT_DISTINCT,
            operand,
            TRUTH[bool(node.expression.this)],
        )
    raise reader.source.refusal(node, "IS takes NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")


def _negated_is(reader: Reads, node: Any) -> ir.Predicate:
    """Read NOT; `a IS NOT TRUE`, which arrives as NOT of IS, keeps its form."""
    inner = node.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Boolean):
        reader.only(node, "this")
        truth = _is(reader, inner)
        if isinstance(truth, ir.Comparison) and truth.op is ir.ComparisonOp.NOT_DISTINCT:
            return ir.Comparison(ir.ComparisonOp.DISTINCT, truth.left, truth.right)
    return _not(reader, node)


def _like(reader: Reads, node: Any) -> ir.Predicate:
    return _matched(reader, node, reader.dialect.texts.like_escape)


def _escape(reader: Reads, node: Any) -> ir.Predicate:
    if isinstance(node.this, exp.SimilarTo):
        return similar(reader, node)
    reader.only(node, "this", "expression")
    like, escape = node.this, node.expression
    if type(like) not in (exp.Like, exp.ILike) or not _is_text(escape):
        raise reader.source.refusal(node, "ESCAPE follows a LIKE and takes one quoted character")
    if len(escape.this) > 1 or not (escape.this or reader.dialect.texts.empty_escape):
        raise reader.source.refusal(escape, "an escape is one character")
    return _matched(reader, like, escape.this or None)


def _matched(reader: Reads, node: Any, escape: str | None) -> ir.Predicate:
    """Read LIKE; NOT LIKE ANY is an OR of NOT LIKE, NOT LIKE ALL an AND."""
    reader.only(node, "this", "expression", "negate")
    operand = reader.side(node.this)
    listed = patterns(reader, node)
    if listed is not None and not listed[0]:
        return always(operand) if listed[1] else ir.Not(always(operand))
    likes: list[ir.Predicate] = []
    for item in [node.expression] if listed is None else listed[0]:
        is_constant = isinstance(item, exp.Null | exp.Cast)
        if is_constant and (null := null_match(reader, node.this, item)) is not None:
            likes.append(null)
            continue
        pattern, used = _pattern(reader, item, escape)
        if isinstance(node, exp.ILike) and used and used.isalpha() and reader.dialect.gives_types:
            raise reader.source.refusal(node, "Spark lowers the pattern of ILIKE, not its escape")
        like = ir.Like(operand, pattern, used, isinstance(node, exp.ILike))
        likes.append(ir.Not(like) if node.args.get("negate") else like)
    if len(likes) == 1 or listed is None:
        return likes[0]
    return ir.And(tuple(likes)) if listed[1] else ir.Or(tuple(likes))


def _pattern(reader: Reads, node: Any, escape: str | None) -> tuple[str, str | None]:
    """Return a constant pattern, and its escape character or None."""
    pattern = reader.operand(node)
    if reader.dialect.gives_types and isinstance(pattern, ir.Cast):
        pattern = text_of_bytes(pattern) or pattern
    if not (isinstance(pattern, ir.Literal) and isinstance(pattern.value, str)):
        raise reader.source.refusal(node, "the pattern of LIKE must be a quoted constant")
    if escape is None or escape not in pattern.value:
        return pattern.value, None
    if _dangles(pattern.value, escape):
        raise reader.source.refusal(node, "the pattern ends with its escape character")
    if reader.dialect.gives_types and _escapes_others(pattern.value, escape):
        raise reader.source.refusal(node, "Spark fails on an escape that escapes nothing")
    return pattern.value, escape


def _escapes_others(pattern: str, escape: str) -> bool:
    """Whether the escape stands before another character than a wildcard and itself."""
    characters = iter(pattern)
    return any(
        character == escape and next(characters, escape) not in ("%", "_", escape)
        for character in characters
    )


def _glob(reader: Reads, node: Any) -> ir.Predicate:
    """Read DuckDB's GLOB with `*` only: its `?` matches a byte, where `_` matches a character."""
    reader.only(node, "this", "expression")
    text, _ = _pattern(reader, node.expression, None)
    if not reader.dialect.texts.glob or set(text) & set("?[\\"):
        raise reader.source.refusal(
            node, "GLOB is read in duckdb, with '*' only ('?' matches one byte there); write LIKE"
        )
    literal = re.sub(r"([%_!])", r"!\1", text)
    escape = "!" if literal != text else None
    return ir.Like(reader.side(node.this), literal.replace("*", "%"), escape)


def _dangles(pattern: str, escape: str) -> bool:
    return (len(pattern) - len(pattern.rstrip(escape))) % 2 == 1


def _is_text(node: Any) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


PREDICATES: Mapping[type[Any], Callable[[Reads, Any], ir.Predicate]] = {
    **dict.fromkeys(_COMPARISONS, _comparison),
    exp.NullSafeEQ: _not_distinct,
    exp.Not: _negated_is,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Glob: _glob,
    **PATTERNS,
}
