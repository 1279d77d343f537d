"""Evaluate an OR of many alike terms at once, by search instead of one by one.

`a = 1 AND b < 2 OR a = 3 AND b < 4 OR …`: each term is a box, with a range of each column. The
boxes of terms of one shape form a group, which is searched (`box_search`). Values are replaced by
ranks: with n constants of a column in order, constant i has the rank 2i + 1, and the values between
its neighbours have even ranks.

Soundness: the outcome is the one of the evaluator. A term is TRUE if the row lies in the box. It is
NULL if a column is NULL and the row lies in the box of the other columns. It cannot fail. The
evaluator handles terms of other kinds: text in an order, decimals, booleans.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate import ir
from rowsieve.predicate.alike_terms import MAX_KEPT, AlikeTerms, Grouped, Terms, grouped
from rowsieve.predicate.arrays import Mask, filled, null_mask
from rowsieve.predicate.evaluation.box_search import RankBoxes, Ranks
from rowsieve.predicate.interpretation.facts import DISCRETE
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.logical import Binary, Float, String

_MAX_UNEQUAL: Final = 5  # comparisons by <> of one term: each doubles its boxes
_MAX_COLUMNS: Final = 6  # of one term: a search is kept for each set of columns

_Range: TypeAlias = tuple[Ranks, Ranks]
"""Half-open ranges of ranks: starts and stops."""


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The terms of an OR: groups of boxes, and the terms that are evaluated one by one."""

    groups: tuple[BoxGroup, ...]
    others: Terms


def alternatives(
    terms: Terms, semantics: Semantics, known: dict[Hashable, Any]
) -> Alternatives | None:
    """Index the alike terms of an OR, once for each predicate; None if there are none.

    `known` is the predicate's cache.
    """
    alike = grouped(terms, known)
    if not alike.alike:
        return None
    entries: dict[int, tuple[Grouped, Alternatives | None]] = known.setdefault("alternatives", {})
    entry = entries.get(id(alike))
    if entry is None or entry[0] is not alike:
        entry = alike, _indexed(alike, semantics)
        if len(entries) < MAX_KEPT:
            entries[id(alike)] = entry
    return entry[1]


def _indexed(alike: Grouped, semantics: Semantics) -> Alternatives | None:
    groups, others = [], alike.others
    of_columns: dict[frozenset[ir.BoundColumn], list[AlikeTerms]] = {}
    for each in alike.alike:
        of_columns.setdefault(frozenset([column for column, _ in each.shape]), []).append(each)
    for same in of_columns.values():
        group = BoxGroup.of(same, semantics)
        if group is None:
            others += tuple([term for each in same for term in each.terms])
        else:
            groups.append(group)
    return Alternatives(tuple(groups), others) if groups else None


@dataclass(frozen=True, slots=True)
class _Axis:
    """A column's values as ranks; `limits` are its constants, which ascend unless they are text."""

    column: ir.BoundColumn
    limits: pa.Array | npt.NDArray[Any]
    nan: NanOrder

    @property
    def end(self) -> int:
        """The rank after those of all values, which a NaN that equals nothing has."""
        return 2 * len(self.limits) + 1

    @classmethod
    def of(cls, column: ir.BoundColumn, constants: Sequence[pa.Array], nan: NanOrder) -> _Axis:
        """Rank the constants of a column."""
        if isinstance(column.type, String | Binary):
            return cls(column, pc.unique(pa.concat_arrays(constants)), nan)
        return cls(column, np.unique(np.concatenate([filled(each) for each in constants])), nan)

    def ranks(self, values: pa.Array) -> Ranks:
        """Return the rank of each value; any rank for NULL."""
        if isinstance(self.limits, pa.Array):
            codes = pc.fill_null(pc.index_in(values, value_set=self.limits), -1)
            places = codes.to_numpy(zero_copy_only=False).astype(np.int64)
            of_texts: Ranks = np.maximum(2 * places + 1, 0)
            return of_texts
        numbers = filled(values)
        places = np.searchsorted(self.limits, numbers)
        ranks: Ranks = 2 * places
        ranks += self.limits[np.minimum(places, len(self.limits) - 1)] == numbers
        if isinstance(self.column.type, Float):
            is_nan = np.isnan(numbers)
            ranks[is_nan] = self.end if self.nan is NanOrder.IEEE else self.end - 1
            if self.nan is NanOrder.SIGNED:
                ranks[is_nan & np.signbit(numbers)] = 0
        return ranks

    def ranges(self, op: ir.ComparisonOp, constants: pa.Array) -> list[_Range]:
        """Return the ranges on which a comparison is TRUE, for each constant."""
        at = self.ranks(constants)
        first, end = np.zeros_like(at), np.full_like(at, self.end)
        match op:
            case ir.ComparisonOp.EQ:
                return [(at, at + 1)]
            case ir.ComparisonOp.NE:
                return [(first, at), (at + 1, end + 1)]
            case ir.ComparisonOp.LT:
                return [(first, at)]
            case ir.ComparisonOp.LE:
                return [(first, at + 1)]
            case ir.ComparisonOp.GT:
                return [(at + 1, end)]
            case _:
                return [(at, end)]


@dataclass(frozen=True, slots=True)
class BoxGroup:
    """Boxes of the same columns."""

    axes: tuple[_Axis, ...]
    cells: tuple[Ranks, ...]
    """For each axis, by rank: the number of ends of ranges that are not above it."""

    starts: tuple[Ranks, ...]
    stops: tuple[Ranks, ...]
    """For each axis, the cells of each box."""

    searches: dict[tuple[int, ...], RankBoxes] = field(default_factory=dict)

    @classmethod
    def of(cls, alike: Sequence[AlikeTerms], semantics: Semantics) -> BoxGroup | None:
        """Index terms of the same columns; None if evaluating them one by one is better."""
        compared: dict[ir.BoundColumn, list[pa.Array]] = {}
        for (column, op), constants in chain.from_iterable(each.compared for each in alike):
            if not _is_searched(column, op):
                return None
            compared.setdefault(column, []).append(constants)
        unequal = [sum(op is ir.ComparisonOp.NE for _, op in each.shape) for each in alike]
        if len(compared) > _MAX_COLUMNS or max(unequal) > _MAX_UNEQUAL:
            return None
        axes = [_Axis.of(column, each, semantics.nan) for column, each in compared.items()]
        boxes = [box for each in alike for box in _boxes(each, axes)]
        starts, stops = (
            tuple(
                np.concatenate(sides) for sides in zip(*[box[side] for box in boxes], strict=True)
            )
            for side in (0, 1)
        )
        cells = tuple(map(_cells, axes, starts, stops))
        starts, stops = (
            tuple(of[at] for of, at in zip(cells, side, strict=True)) for side in (starts, stops)
        )
        group = cls(tuple(axes), cells, starts, stops)
        whole = tuple(range(len(axes)))
        for count in range(len(axes), 0, -1):
            for some in combinations(whole, count):
                search = group._index(some)
                if search is None:
                    return None
                group.searches[some] = search
        return group

    def _index(self, some: Sequence[int]) -> RankBoxes | None:
        return RankBoxes.of(
            [self.starts[place] for place in some],
            [self.stops[place] for place in some],
            [int(self.cells[place][-1]) + 1 for place in some],
        )

    def outcome(self, columns: Sequence[pa.Array]) -> tuple[Mask, Mask]:
        """Return the rows on which a box is TRUE, and those without on which one is NULL."""
        nulls = [null_mask(column) for column in columns]
        ranks = [
            cells[axis.ranks(column)]
            for axis, cells, column in zip(self.axes, self.cells, columns, strict=True)
        ]
        whole = tuple(range(len(self.axes)))
        if not any(mask.any() for mask in nulls):
            return self.searches[whole].contain(ranks), np.zeros_like(nulls[0])
        patterns = np.zeros(len(nulls[0]), dtype=np.int64)
        for place, mask in enumerate(nulls):
            patterns |= mask.astype(np.int64) << place
        true, null = np.zeros_like(nulls[0]), np.zeros_like(nulls[0])
        for pattern in np.unique(patterns).tolist():
            rows = np.flatnonzero(patterns == pattern)
            some = tuple(place for place in whole if not pattern >> place & 1)
            inside = (
                self.searches[some].contain([ranks[place][rows] for place in some])
                if some
                else np.ones(len(rows), dtype=np.bool_)
            )
            (null if pattern else true)[rows] = inside
        return true, null


def _is_searched(column: ir.BoundColumn, op: ir.ComparisonOp) -> bool:
    if isinstance(column.type, String | Binary):
        return not op.is_order and not op.is_null_safe
    return isinstance(column.type, DISCRETE | Float)


def _cells(axis: _Axis, starts: Ranks, stops: Ranks) -> Ranks:
    ends = np.unique(np.concatenate([starts, stops]))
    cells: Ranks = np.searchsorted(ends, np.arange(axis.end + 2), side="right")
    return cells


def _boxes(alike: AlikeTerms, axes: Sequence[_Axis]) -> Iterator[tuple[list[Ranks], list[Ranks]]]:
    """The starts and stops of the terms on each axis, for each combination of their ranges."""
    compared: dict[ir.BoundColumn, list[list[_Range]]] = {axis.column: [] for axis in axes}
    by_column = {axis.column: axis for axis in axes}
    for (column, op), constants in alike.compared:
        compared[column].append(by_column[column].ranges(op, constants))
    of_axes = [
        [_intersection(ranges) for ranges in product(*axis_ranges)]
        for axis_ranges in compared.values()
    ]
    for box in product(*of_axes):
        yield [starts for starts, _ in box], [stops for _, stops in box]


def _intersection(ranges: Sequence[_Range]) -> _Range:
    """Return the ranges in all; empty ones stay, because they count where the column is NULL."""
    return (
        np.maximum.reduce([starts for starts, _ in ranges]),
        np.minimum.reduce([stops for _, stops in ranges]),
    )
