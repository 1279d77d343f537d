"""Evaluate an OR of many alternatives that compare columns with constants, all at once.

`a = 1 AND b < 2 OR a = 3 AND b < 4 OR …`: each alternative is a box, with a range of each column.
Alternatives of the same columns form a group, which is searched (`box_search`) instead of evaluated
one by one. Values are replaced by ranks: how many ends of ranges are not above the value.

Soundness: the outcome is the one of the evaluator. An alternative is TRUE if the row lies in the
box. It is NULL if a column is NULL and the row lies in the box of the other columns. It cannot
fail. The evaluator handles alternatives of other kinds: of NULL, NaN or infinite constants,
floats that are unequal under IEEE, IN lists of floats (which may compare bits), text in an order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, product
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate import ir
from rowsieve.predicate.arrays import Mask, filled, null_mask
from rowsieve.predicate.evaluation.box_search import RankBoxes, Ranks
from rowsieve.predicate.interpretation.facts import DISCRETE, whole_range
from rowsieve.predicate.remembered_terms import derived_once
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Binary, Float, LogicalType, String

FEWEST: Final = 64  # alternatives; fewer are evaluated one by one
_MOST_PIECES: Final = 32  # of one alternative, by its IN lists and <>
_MOST_COLUMNS: Final = 6  # of one alternative: a search is kept for each set of columns

_Value: TypeAlias = int | float | str | bytes
_Range: TypeAlias = tuple[_Value | None, _Value | None]
"""A half-open range, None for unbounded; of text and bytes, the value and None."""
_Box: TypeAlias = dict[ir.BoundColumn, list[_Range]]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The terms of an OR: groups of boxes, and the terms that are evaluated one by one."""

    groups: tuple[BoxGroup, ...]
    others: tuple[ir.Predicate, ...]


def alternatives(
    terms: tuple[ir.Predicate, ...], semantics: Semantics, known: dict[Hashable, Any]
) -> Alternatives | None:
    """Group the terms of an OR; None if there is no group."""
    if len(terms) < FEWEST:
        return None
    return derived_once(terms, "alternatives", known, partial(_grouped, semantics=semantics))


def _grouped(terms: tuple[ir.Predicate, ...], semantics: Semantics) -> Alternatives | None:
    boxes: dict[frozenset[ir.BoundColumn], list[tuple[ir.Predicate, _Box]]] = {}
    others: list[ir.Predicate] = []
    for term in terms:
        box = _box(term, semantics)
        if box is None:
            others.append(term)
        else:
            boxes.setdefault(frozenset(box), []).append((term, box))
    groups = []
    for each in boxes.values():
        group = BoxGroup.of([box for _, box in each], semantics) if len(each) >= FEWEST else None
        if group is None:
            others += [term for term, _ in each]
        else:
            groups.append(group)
    return Alternatives(tuple(groups), tuple(others)) if groups else None


def _box(term: ir.Predicate, semantics: Semantics) -> _Box | None:
    """Return the ranges of each column that make the term TRUE; None for a term of another kind."""
    found: _Box = {}
    for part in term.terms if isinstance(term, ir.And) else (term,):
        asked = _ranges_of(part, semantics)
        if asked is None:
            return None
        column, ranges = asked
        if column in found:
            if not isinstance(column.type, DISCRETE | Float):
                return None
            ranges = _intersection(found[column], ranges)
        found[column] = ranges
        if len(found) > _MOST_COLUMNS:
            return None
    count = 1
    for ranges in found.values():
        count *= len(ranges)
    return found if 0 < count <= _MOST_PIECES else None


def _ranges_of(
    part: ir.Predicate, semantics: Semantics
) -> tuple[ir.BoundColumn, list[_Range]] | None:
    match part:
        case ir.Comparison(
            op=op, left=ir.BoundColumn(type=type_) as column, right=ir.Literal(value, constant)
        ) if type_ == constant:
            ranges = _compared(op, value, type_, semantics)
            return None if ranges is None else (column, ranges)
        case ir.InList(operand=ir.BoundColumn(type=type_) as column, values=values) if (
            values.type == type_ and len(values) <= _MOST_PIECES and not values.array.null_count
        ):
            if isinstance(type_, String | Binary):
                return column, [(value, None) for value in values.array.to_pylist()]
            if isinstance(type_, DISCRETE):
                whole = filled(values.array).tolist()
                return column, [
                    each
                    for value in whole
                    for each in _discrete_ranges(ir.ComparisonOp.EQ, value, type_)
                ]
    return None


def _compared(
    op: ir.ComparisonOp, value: object, type_: LogicalType, semantics: Semantics
) -> list[_Range] | None:
    if isinstance(type_, String | Binary) and isinstance(value, str | bytes):
        return [(value, None)] if op is ir.ComparisonOp.EQ else None
    if op not in _ORDERED:
        return None
    if isinstance(type_, DISCRETE) and isinstance(value, int):
        return _discrete_ranges(op, value, type_)
    if isinstance(type_, Float) and isinstance(value, float):
        if op is ir.ComparisonOp.NE and semantics.nan is NanOrder.IEEE:
            return None
        width = np.float32 if type_.bits == 32 else np.float64
        with np.errstate(over="ignore"):
            number = width(value)
            after = np.nextafter(number, width(np.inf))
        if not np.isfinite(number):
            return None
        return _ranges(op, float(number), float(after))
    return None


def _discrete_ranges(op: ir.ComparisonOp, value: int, type_: LogicalType) -> list[_Range]:
    assert isinstance(type_, DISCRETE)
    after = value + 1 if value < whole_range(type_)[1] else None
    return _ranges(op, value, after)


def _ranges(op: ir.ComparisonOp, value: _Value, after: _Value | None) -> list[_Range]:
    """Return the ranges of a comparison; `after` is the next value, None after the greatest."""
    above: _Range = (value, value) if after is None else (after, None)
    match op:
        case ir.ComparisonOp.EQ:
            return [(value, after)]
        case ir.ComparisonOp.NE:
            return [(None, value), above]
        case ir.ComparisonOp.LT:
            return [(None, value)]
        case ir.ComparisonOp.LE:
            return [(None, after)]
        case ir.ComparisonOp.GT:
            return [above]
        case _:
            return [(value, None)]


_ORDERED: Final = frozenset(
    getattr(ir.ComparisonOp, name) for name in ("EQ", "NE", "LT", "LE", "GT", "GE")
)


def _intersection(some: list[_Range], others: list[_Range]) -> list[_Range]:
    """Return the ranges in both; empty ones stay, because they count where the column is NULL."""
    return [
        (_tighter_end(max, a[0], b[0]), _tighter_end(min, a[1], b[1]))
        for a, b in product(some, others)
    ]


def _tighter_end(choose: Any, a: _Value | None, b: _Value | None) -> _Value | None:
    """Return the tighter end; None is unbounded."""
    if a is None or b is None:
        return b if a is None else a
    found: _Value = choose(a, b)
    return found


@dataclass(frozen=True, slots=True)
class _Axis:
    """A column's values as ranks; `limits` ascend: ends of ranges, or the constants of text."""

    column: ir.BoundColumn
    limits: pa.Array | npt.NDArray[Any]
    starts: Ranks
    stops: Ranks

    @property
    def size(self) -> int:
        """An upper bound of the ranks: those of all values, and of a NaN that equals nothing."""
        return len(self.limits) + 2

    @classmethod
    def of(cls, column: ir.BoundColumn, ranges: Sequence[_Range]) -> _Axis:
        """Rank the ranges of the boxes."""
        if isinstance(column.type, String | Binary):
            given = pa.array([start for start, _ in ranges], arrow_type(column.type))
            texts = pc.unique(given)
            codes = pc.index_in(given, value_set=texts).to_numpy().astype(np.int64)
            return cls(column, texts, codes, codes + 1)
        dtype = filled(pa.array([], arrow_type(column.type))).dtype
        ends = [
            np.array([0 if each is None else each for each in side], dtype)
            for side in zip(*ranges, strict=True)
        ]
        open_ = [
            np.array([each is None for each in side], np.bool_)
            for side in zip(*ranges, strict=True)
        ]
        limits = np.unique(np.concatenate([ends[0][~open_[0]], ends[1][~open_[1]]]))
        starts, stops = (np.searchsorted(limits, each, side="left") + 1 for each in ends)
        return cls(
            column,
            limits,
            np.where(open_[0], 0, starts),
            np.where(open_[1], len(limits) + 1, stops),
        )

    def ranks(self, values: pa.Array, nan: NanOrder) -> Ranks:
        """Return the rank of each value; any rank for NULL."""
        if isinstance(self.limits, pa.Array):
            codes = pc.fill_null(pc.index_in(values, value_set=self.limits), len(self.limits))
            found: Ranks = codes.to_numpy(zero_copy_only=False).astype(np.int64)
            return found
        numbers = filled(values)
        ranks: Ranks = np.searchsorted(self.limits, numbers, side="right")
        if isinstance(self.column.type, Float):
            is_nan = np.isnan(numbers)
            ranks[is_nan] = len(self.limits) + (nan is NanOrder.IEEE)
            if nan is NanOrder.SIGNED:
                ranks[is_nan & np.signbit(numbers)] = 0
        return ranks


@dataclass(frozen=True, slots=True)
class BoxGroup:
    """Boxes of the same columns."""

    axes: tuple[_Axis, ...]
    nan: NanOrder
    searches: dict[tuple[int, ...], RankBoxes] = field(default_factory=dict)

    @classmethod
    def of(cls, boxes: Sequence[_Box], semantics: Semantics) -> BoxGroup | None:
        """Index the boxes; None if evaluating them one by one is better."""
        columns = sorted(boxes[0], key=lambda column: column.field_id)
        ranges = [one for box in boxes for one in product(*(box[column] for column in columns))]
        axes = [
            _Axis.of(c, side) for c, side in zip(columns, zip(*ranges, strict=True), strict=True)
        ]
        group = cls(tuple(axes), semantics.nan)
        whole = tuple(range(len(axes)))
        for count in range(len(axes), 0, -1):
            for some in combinations(whole, count):
                search = group._index(some)
                if search is None:
                    return None
                group.searches[some] = search
        return group

    def _index(self, some: Sequence[int]) -> RankBoxes | None:
        axes = [self.axes[place] for place in some]
        return RankBoxes.of(
            [axis.starts for axis in axes],
            [axis.stops for axis in axes],
            [axis.size for axis in axes],
        )

    def outcome(self, columns: Sequence[pa.Array]) -> tuple[Mask, Mask]:
        """Return the rows on which a box is TRUE, and those without on which one is NULL."""
        nulls = [null_mask(column) for column in columns]
        ranks = [
            axis.ranks(column, self.nan) for axis, column in zip(self.axes, columns, strict=True)
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
