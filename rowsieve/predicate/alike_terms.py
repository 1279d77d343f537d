"""Terms of an OR that differ in their constants only, as arrays of constants.

`a = 1 AND b < 2 OR a = 3 AND b < 4 OR …`: terms of one *shape*, the same columns and operators, are
one array of constants per comparison. The interpreter compares the arrays with the bounds of parts
(`interpretation.alike_truths`), the evaluator searches the rows' values in them
(`evaluation.boxes`), instead of walking over each term. Short lists are several terms of `=`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, TypeAlias

import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.predicate.arrays import filled
from rowsieve.predicate.literal_values import array_of
from rowsieve.types.logical import (
    Binary,
    Date,
    Int,
    LogicalType,
    String,
    Timestamp,
    is_ordered,
)

MIN_ALIKE: Final = 32  # terms; fewer of one shape are walked over
_MAX_LISTED: Final = 32  # terms that the lists of one term become
MAX_KEPT: Final = 16  # ORs of one predicate

Terms: TypeAlias = tuple[ir.Predicate, ...]
Asked: TypeAlias = tuple[ir.BoundColumn, ir.ComparisonOp]
_Compared: TypeAlias = tuple[ir.BoundColumn, ir.ComparisonOp, tuple[ir.PhysicalValue, ...]]


@dataclass(frozen=True, slots=True)
class AlikeTerms:
    """Terms of one shape; `constants` has an array of the column's type for each comparison.

    The columns are compared with constants of their type, neither NULL nor NaN, so that no term can
    fail. `terms` has the nodes; with `has_lists`, these are fewer than the constants.
    """

    shape: tuple[Asked, ...]
    constants: tuple[pa.Array, ...]
    terms: Terms
    has_lists: bool

    @property
    def compared(self) -> Iterator[tuple[Asked, pa.Array]]:
        """Each comparison with its constants."""
        return zip(self.shape, self.constants, strict=True)

    @property
    def count(self) -> int:
        """The number of constants of each comparison."""
        return len(self.constants[0])


@dataclass(frozen=True, slots=True)
class Grouped:
    """The terms of an OR: groups of a frequent shape, and all other terms."""

    alike: tuple[AlikeTerms, ...]
    others: Terms


def grouped(terms: Terms, remembered: dict[Hashable, Any]) -> Grouped:
    """Group the terms of an OR by shape, once for this tuple object.

    `remembered` is the predicate's cache. Its entries hold the tuples, so that no other tuple gets
    the same `id`.
    """
    if len(terms) < MIN_ALIKE:
        return Grouped((), terms)
    entries: dict[int, tuple[Terms, Grouped]] = remembered.setdefault("alike terms", {})
    entry = entries.get(id(terms))
    if entry is None or entry[0] is not terms:
        entry = terms, _grouped(terms)
        if len(entries) < MAX_KEPT:
            entries[id(terms)] = entry
    return entry[1]


def _grouped(terms: Terms) -> Grouped:
    shapes: dict[Hashable, list[tuple[ir.Predicate, list[_Compared]]]] = {}
    columns: dict[int, ir.BoundColumn] = {}
    others: list[ir.Predicate] = []
    for term in terms:
        parts = _compared(term)
        if parts is None or any(columns.setdefault(c.field_id, c) != c for c, _, _ in parts):
            others.append(term)
            continue
        has_lists = any(len(values) > 1 for _, _, values in parts)
        shape = has_lists, tuple([(column.field_id, op) for column, op, _ in parts])
        shapes.setdefault(shape, []).append((term, parts))
    alike: list[AlikeTerms] = []
    for same in shapes.values():
        if len(same) < MIN_ALIKE:
            others += [term for term, _ in same]
        else:
            alike.append(_alike(same))
    return Grouped(tuple(alike), tuple(others))


def _alike(same: list[tuple[ir.Predicate, list[_Compared]]]) -> AlikeTerms:
    first = same[0][1]
    rows = [row for _, parts in same for row in product(*[values for _, _, values in parts])]
    return AlikeTerms(
        tuple([(column, op) for column, op, _ in first]),
        tuple(
            array_of(list(side), column.type)
            for side, (column, _, _) in zip(zip(*rows, strict=True), first, strict=True)
        ),
        tuple([term for term, _ in same]),
        len(rows) > len(same),
    )


def _compared(term: ir.Predicate) -> list[_Compared] | None:
    """Return the comparisons of a term, by column; None if it has a condition of another kind."""
    parts: list[_Compared] = []
    count = 1
    for node in term.terms if isinstance(term, ir.And) else (term,):
        part = _compared_once(node)
        if part is None:
            return None
        parts.append(part)
        count *= len(part[2])
    parts.sort(key=lambda part: (part[0].field_id, part[1].value))
    return parts if 0 < count <= _MAX_LISTED else None


def _compared_once(node: ir.Predicate) -> _Compared | None:
    match node:
        case ir.Comparison(
            op=op,
            left=ir.BoundColumn(type=type_) as column,
            right=ir.Literal(value=value, type=other),
        ) if value is not None and value == value and not op.is_null_safe and type_ == other:  # noqa: PLR0124 - NaN
            return (column, op, (value,)) if is_ordered(type_) else None
        case ir.InList(operand=ir.BoundColumn(type=type_) as column, values=values) if (
            values.type == type_ and len(values) <= _MAX_LISTED and not values.array.null_count
        ):
            listed = tuple(_listed(values.array, type_))
            return (column, ir.ComparisonOp.EQ, listed) if listed else None
    return None


def _listed(values: pa.Array, type_: LogicalType) -> Iterator[ir.PhysicalValue]:
    """The members of a list; none for floats, because a list may compare their bits."""
    if isinstance(type_, Int | Date | Timestamp):
        yield from filled(values).tolist()
    elif isinstance(type_, String | Binary):
        yield from values.to_pylist()
