"""Filters in disjunctive normal form, as accepted by deltalake and pyarrow, and predicates.

A list of tuples `(column, operator, value)` is their AND, a list of such lists is their OR. Filters
mean what `pyarrow.parquet.filters_to_expression` makes of them, and are read with the same reader.
A filter keeps the rows on which it is TRUE, so writing preserves only those (`leaves`).

Soundness: no operator matches NaN of every kind, so a condition that matches NaN is rejected.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.leaves import KeptRows, Leaf, Members, zeros_apart
from rowsieve.bridges.pyarrow_exprs import comparison_of_column, from_pyarrow, list_of_column
from rowsieve.bridges.rows import both, reads
from rowsieve.bridges.translation import Row, Translation, reason_of, translated
from rowsieve.errors import InvalidPredicate, UnsupportedOperation, repr_of
from rowsieve.predicate import ir
from rowsieve.predicate.like import after_prefix
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import (
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Uuid,
    is_nested,
    type_name,
)
from rowsieve.types.schema import Schema

Filter: TypeAlias = tuple[str, str, Any]
Filters: TypeAlias = list[Filter] | list[list[Filter]]

MAX_FILTERS = 100_000  # limit of tuples written, because ANDs of ORs multiply

_FLOATS = "floats by IEEE 754"
_ABOVE = f"{_FLOATS}: NaN is never above"
_COMPARISONS: Mapping[str, ir.ComparisonOp] = {
    "=": ir.ComparisonOp.EQ,
    "!=": ir.ComparisonOp.NE,
    "<": ir.ComparisonOp.LT,
    "<=": ir.ComparisonOp.LE,
    ">": ir.ComparisonOp.GT,
    ">=": ir.ComparisonOp.GE,
}
_READ = {**_COMPARISONS, "==": ir.ComparisonOp.EQ}
_WRITTEN: Mapping[str, str] = {op.value: text for text, op in _COMPARISONS.items()}
_NOTES = {"!=": f"{_FLOATS}: TRUE of NaN", ">": _ABOVE, ">=": _ABOVE}
OPERATORS: tuple[Row, ...] = (
    *(both(text, op.value, _NOTES.get(text, "")) for text, op in _COMPARISONS.items()),
    reads("==", "=", "written as ="),
    both("in", "InList", "compares bits, NULL with NULL; [None] is IS NULL"),
    both("not in", "Not(InList)", "TRUE for NULL; written with None in the list"),
)
_PLAIN = (bool, int, float, str, bytes, decimal.Decimal, datetime.date, datetime.datetime)


def is_dnf_filters(value: object) -> bool:
    """Whether this is a list of tuples `(column, operator, value)`, or a list of such lists."""
    if not isinstance(value, list) or not value:
        return False
    listed = value if isinstance(value[0], list) else [value]
    return all(
        isinstance(group, list)
        and bool(group)
        and all(
            isinstance(item, tuple)
            and len(item) == 3
            and isinstance(item[0], str)
            and isinstance(item[1], str)
            for item in group
        )
        for group in listed
    )


def from_dnf_filters(
    filters: Filters, schema: Schema, *, strict: bool = False
) -> Translation[ir.Predicate, Filters]:
    """Read filters over columns of the schema, under `Semantics.PYARROW`.

    The residual contains the filters that are not supported. With `strict`, such a filter is
    `UnsupportedOperation`.
    """
    if not is_dnf_filters(filters):
        raise InvalidPredicate(
            "filters are a list of tuples (column, operator, value), or a list of such lists; "
            "none may be empty"
        )
    groups: list[Any] = filters if isinstance(filters[0], list) else [filters]
    conditions: list[list[list[Filter]]] = [groups]
    if len(groups) == 1:
        conditions = [[[item]] for item in groups[0]]

    def join(left: list[list[list[Filter]]]) -> Filters:
        return filters if len(groups) > 1 else [group[0][0] for group in left]

    return read_conditions(
        conditions,
        lambda condition: _read(condition, schema),
        join,
        schema,
        Semantics.PYARROW,
        shown=_shown,
        strict=strict,
    )


def to_dnf_filters(
    predicate: ir.Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.PYARROW,
    *,
    strict: bool = False,
) -> Translation[Filters, ir.Predicate]:
    """Write a predicate with the given semantics as filters over the schema."""
    writer = _Writer(semantics)
    try:
        return write_conditions(
            predicate,
            writer.condition,
            lambda terms: _finished(writer.junction(terms, all_of=True), schema),
            schema,
            semantics,
            strict=strict,
        )
    except _NoFlatColumnError as error:
        return translated(None, predicate, [str(error)], strict=strict)


# Reading


def _read(groups: list[list[Filter]], schema: Schema) -> ir.Predicate:
    read = tuple(ir.conjoin([_one(item, schema) for item in group]) for group in groups)
    return read[0] if len(read) == 1 else ir.Or(read)


def _one(item: Filter, schema: Schema) -> ir.Predicate:
    column, operator, value = item
    type_ = schema.field(column).type
    if operator not in _READ and operator not in ("in", "not in"):
        known = ", ".join(row.foreign for row in OPERATORS)
        raise UnsupportedOperation(f"the operator {operator!r} is unknown; known are {known}")
    try:
        if "in" in operator:
            if isinstance(type_, Float | Decimal):
                value = _as_column(value, arrow_type(type_))
            members = value if isinstance(value, pa.Array) else pa.array(value)
            return list_of_column(column, members, schema, negated=operator == "not in")
        if type(value) in _PLAIN:
            return comparison_of_column(_READ[operator], column, pa.scalar(value), schema)
        expression = pq.filters_to_expression([(column, operator, value)])
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UnsupportedOperation(f"pyarrow has no constant of the value: {error}") from error
    read = from_pyarrow(expression, schema)
    if read.expression is None:
        raise UnsupportedOperation(reason_of(read.notes[0]))
    return read.expression


def _as_column(members: Any, storage: pa.DataType) -> Any:
    """Cast members of a similar type to the column's type, as `is_in` does at run time."""
    array = members if isinstance(members, pa.Array) else pa.array(members)
    for kind in (pa.types.is_floating, pa.types.is_decimal):
        if kind(array.type) and kind(storage):
            return array.cast(storage)
    return members


def _shown(groups: list[list[Filter]]) -> str:
    column, operator, value = groups[0][0]
    listed = isinstance(value, list | tuple | set | pa.Array) and len(value) > 5
    first = f"({column!r}, {operator!r}, {f'{len(value)} values' if listed else repr_of(value)})"
    return first if len(groups) == 1 else f"{first} and {len(groups) - 1} more by OR"


# Writing

_Groups: TypeAlias = list[list[Filter]]


class _Writer(KeptRows[_Groups]):
    """Return the filters of all rows, one empty AND, or of no rows, an empty OR."""

    def __init__(self, semantics: Semantics) -> None:
        super().__init__(semantics)
        self._width = 1

    def condition(self, root: ir.Predicate) -> _Groups:
        """Write a condition of the top-level AND, which is multiplied out with the others."""
        groups = self.rows(root)
        width = self._width * max(1, len(groups))
        if len(groups) > 1 and width * 2 > MAX_FILTERS:
            raise UnsupportedOperation(f"an AND of ORs makes more than {MAX_FILTERS:,} filters")
        self._width = width
        return groups

    def always(self, *, value: bool) -> _Groups:
        """Return an empty AND, or an empty OR."""
        return [[]] if value else []

    def junction(self, terms: Sequence[_Groups], *, all_of: bool) -> _Groups:
        """Combine the groups of the terms; an AND of ORs is multiplied out."""
        if not all_of:
            return [group for term in terms for group in term]
        groups: _Groups = [[]]
        for term in terms:
            if len(groups) * len(term) * 2 > MAX_FILTERS and len(term) > 1:
                raise UnsupportedOperation(f"an AND of ORs makes more than {MAX_FILTERS:,} filters")
            groups = [[*group, *other] for group in groups for other in term]
        return groups

    def leaf(self, leaf: Leaf) -> _Groups:
        """Write a leaf, adjusted so that pyarrow keeps the right rows for NULL and NaN."""
        if not isinstance(leaf.operand, ir.BoundColumn):
            raise UnsupportedOperation("a filter compares a column, not an expression")
        name, type_ = leaf.operand.name, type_of(leaf.operand)
        if is_nested(type_):
            raise UnsupportedOperation(f"filters do not support the type {type_name(type_)}")
        not_nan: _Groups = [[]]
        if isinstance(type_, Float) and not leaf.on_nan:
            not_nan = [[(name, "<=", math.inf)]]
        if isinstance(leaf.others, tuple):
            groups = self._tested(name, type_, leaf, not_nan)
        elif leaf.others:
            groups = not_nan if not_nan != [[]] else [[(name, "not in", _listed(None, type_))]]
        else:
            self._refuse_nan(type_, leaf)
            groups = []
        null: _Groups = [[(name, "in", _listed(None, type_))]] if leaf.on_null else []
        return groups + null

    def _tested(self, name: str, type_: LogicalType, leaf: Leaf, not_nan: _Groups) -> _Groups:
        assert isinstance(leaf.others, tuple)
        test, constant = leaf.others
        if test not in ("<>", "NOT IN"):
            self._refuse_nan(type_, leaf)
        if isinstance(constant, Members):
            return self._in(name, test, constant, not_nan)
        if test in _WRITTEN:
            groups: _Groups = [[(name, _WRITTEN[test], _value(constant))]]
            return self.junction([groups, not_nan], all_of=True) if test == "<>" else groups
        prefix = str(constant.value)
        after = after_prefix(prefix)
        if test == "STARTS WITH":
            return [[(name, ">=", prefix)] + ([] if after is None else [(name, "<", after)])]
        return [[(name, "<", prefix)]] + ([] if after is None else [[(name, ">=", after)]])

    def _in(self, name: str, test: str, members: Members, not_nan: _Groups) -> _Groups:
        array, signs = zeros_apart(members)
        if members.bitwise:
            array, signs = members.array, frozenset()
        if test == "IN":
            listed: _Groups = [[(name, "in", _listed(array, members.type))]] if len(array) else []
            return listed + ([[(name, "=", 0.0)]] if signs else [])
        left = [(name, "not in", _listed(array, members.type, null=True))]
        return self.junction(
            [[left + ([(name, "!=", 0.0)] if signs else [])], not_nan], all_of=True
        )

    @staticmethod
    def _refuse_nan(type_: LogicalType, leaf: Leaf) -> None:
        if isinstance(type_, Float) and leaf.on_nan:
            raise UnsupportedOperation(
                "a comparison that is true of NaN, and no filter matches NaN of every kind; add a "
                "condition that excludes NaN"
            )


class _NoFlatColumnError(UnsupportedOperation):
    """No filter stands for all rows or for none."""


def _finished(groups: _Groups, schema: Schema) -> Filters:
    """Return the groups in the shape that pyarrow accepts, in which none may be empty."""
    if groups and all(groups):
        return groups[0] if len(groups) == 1 else groups
    for field in schema:
        if not is_nested(field.type):
            none = pa.array([], arrow_type(field.type))
            return [(field.name, "not in" if groups else "in", none)]
    raise _NoFlatColumnError("a filter of all rows or of none needs a column that is not nested")


def _value(literal: ir.Literal) -> Any:
    """Return the constant in Python, or in Arrow if pyarrow would infer another type."""
    value = scalar(literal)
    if literal.type in (Int(64, signed=False), Uuid()):
        return value
    try:
        return value.as_py()
    except (ValueError, OverflowError):  # a date or time that Python cannot represent
        return value


def _listed(array: pa.Array | None, type_: LogicalType, *, null: bool = False) -> Any:
    """Return the members as a Python list, or as an Arrow array if its type would change.

    A list of NULL alone has None as its array.
    """
    storage = arrow_type(type_)
    if array is None:
        return [None] if not isinstance(type_, String) else pa.nulls(1, storage)
    typed = pa.concat_arrays([array.cast(storage), pa.nulls(1 if null else 0, storage)])
    if type_ in (Int(64, signed=False), Uuid()) or not len(array):
        return typed
    try:
        return typed.to_pylist()
    except (ValueError, OverflowError):
        return typed
