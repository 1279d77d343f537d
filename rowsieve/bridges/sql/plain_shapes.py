"""Reads conditions of the plainest shapes without the grammar: a name compared with whole numbers.

The shapes are `name op number`, `name BETWEEN number AND number` and `name IN (number, …)`. Names
may be keywords of a dialect, so each shape with its name is first read by the grammar. Only if the
tree is the one that is expected here are later texts of that shape read here; they differ in their
numbers alone. Soundness: numbers have at most nine digits and no leading zero, so every dialect
reads them as the same integer literal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.types.logical import Int

MAX_SHAPES: Final = 1_024
MAX_MEMBERS: Final = 100
_INT: Final = Int(64)

_NUMBER = "(?:0|[1-9][0-9]{0,8})"
_COMPARED = re.compile(rf"([A-Za-z_][A-Za-z0-9_]*) (=|<>|<=|>=|<|>) ({_NUMBER})")
_BETWEEN = re.compile(rf"([A-Za-z_][A-Za-z0-9_]*) (BETWEEN) ({_NUMBER}) AND ({_NUMBER})")
_LISTED = re.compile(rf"([A-Za-z_][A-Za-z0-9_]*) (IN) \(({_NUMBER}(?:, ?{_NUMBER})*)\)")

Read: TypeAlias = Callable[[str, str], ir.Predicate]
_Shape: TypeAlias = tuple[str, str, str, int]

_plain: dict[_Shape, bool] = {}
"""Whether the grammar reads the shape as expected, by dialect, name, operator and number count."""


def read_plain(text: str, dialect: str, read: Read) -> ir.Predicate:
    """Read a condition as `read` does; `read` is not called for a plain shape that it has read."""
    match = _COMPARED.fullmatch(text) or _BETWEEN.fullmatch(text) or _LISTED.fullmatch(text)
    if match is None:
        return read(text, dialect)
    name, operator, *numbers = match.groups()
    values = [int(each) for number in numbers for each in number.split(",")]
    shape = dialect, name, operator, len(values)
    known = _plain.get(shape)
    if len(values) > MAX_MEMBERS or known is False:
        return read(text, dialect)
    expected = _tree(name, operator, values)
    if known:
        return expected
    tree = read(text, dialect)
    if len(_plain) >= MAX_SHAPES:
        _plain.clear()
    _plain[shape] = _same(tree, expected)
    return tree


def between(value: ir.Operand, low: ir.Operand, high: ir.Operand) -> ir.And:
    """Return BETWEEN, ends included."""
    least = ir.Comparison(ir.ComparisonOp.GE, value, low)
    return ir.And((least, ir.Comparison(ir.ComparisonOp.LE, value, high)))


def _tree(name: str, operator: str, values: list[int]) -> ir.Predicate:
    column = ir.Column(name)
    if operator == "IN":
        return ir.InList(column, ir.ValueSet(pa.array(values, pa.int64()), _INT))
    if operator == "BETWEEN":
        low, high = (ir.Literal(value, _INT) for value in values)
        return between(column, low, high)
    return ir.Comparison(ir.ComparisonOp(operator), column, ir.Literal(values[0], _INT))


def _same(tree: ir.Predicate, expected: ir.Predicate) -> bool:
    """Whether the trees are equal, member types included, which a set does not compare."""
    if not isinstance(tree, ir.InList) or not isinstance(expected, ir.InList):
        return tree == expected
    one, other = tree.values, expected.values
    types = one.type == other.type and one.array.type == other.array.type
    return types and tree == expected and bool(one.array.equals(other.array))
