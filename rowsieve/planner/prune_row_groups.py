"""Prune row groups of a file: by statistics, then by Bloom filters.

Uses a footer and filters, not a table. Soundness: statistics refute a group (`NONE`) as `interpret`
does. A Bloom filter refutes a group only through a top-level conjunct `column = constant` or
`column IN (constants)`. Such a conjunct cannot fail. If the group has none of its values, it is
FALSE or NULL on every row, and then no other conjunct may raise (invariant 27).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.parquet.bloom import BloomFilter, Probes, probes_of
from rowsieve.parquet.leaf_columns import FileColumn
from rowsieve.parquet.statistics.row_groups import RowGroupStatistics, joined_row_groups
from rowsieve.predicate import ir
from rowsieve.predicate.arrays import Mask, as_mask, compare, filled
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.interpretation.abstract import from_column
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.semantics import NanOrder
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Bool, Int
from rowsieve.types.schema import Schema

Verdicts = npt.NDArray[np.int8]
Values = TypeVar("Values", npt.NDArray[np.int8], npt.NDArray[np.bool_], list[bool])

MAX_VALUES: Final = 1_000  # a longer list matches in most groups anyway
HASHED_AT_ONCE: Final = 128  # longer lists: hash only the values within a row group's bounds
MAX_PROBES: Final = 32  # at 3% false positives, 32 absent values refute a group 4 times in 10
_NONE: Final = int(Verdict.NONE)  # numpy compares with an int faster than with an enum
_SOME: Final = int(Verdict.SOME)
_FILTERS_AT_ONCE: Final = 64  # 4 MiB of them
PROBED_FROM: Final = 5
"""Filters that cost a round trip are read if there are so many of them.

For fewer row groups, their pages of the column are read at once instead: these are about as large
as the filters, and say exactly what they have.
"""


class Blooms(Protocol):
    """Bloom filters by column and row group, as in `rowsieve.parquet.bloom_reader.BloomReader`."""

    def filters(self, column: FileColumn, row_groups: Sequence[int]) -> list[BloomFilter | None]:
        """Return the filter of each row group, None if it has none."""

    def expect(self, column: FileColumn, row_groups: Sequence[int]) -> None:
        """Announce that these filters will be requested next."""

    def far(self, column: FileColumn, row_groups: Sequence[int]) -> list[int]:
        """Return those of the row groups whose filter costs a round trip."""


@dataclass(frozen=True, slots=True)
class PrunedGroups:
    """(g,) `Verdict` values of a file's row groups, and how many only a Bloom filter refuted.

    `any_remaining`: whether any row group is not refuted.
    """

    verdicts: Verdicts
    by_bloom: int
    any_remaining: bool


def prune_row_groups(
    predicate: BoundPredicate,
    files: Sequence[tuple[pq.FileMetaData, Blooms | None]],
    schema: Schema,
    *,
    only: frozenset[int] | None = None,
) -> list[PrunedGroups]:
    """Return the verdicts on the row groups of each file; all files are interpreted together.

    `only` are the field ids that may prune: those of the key if other parts may hold newer
    versions of a row (trap T1).
    """
    together, statistics = joined_row_groups([metadata for metadata, _ in files], schema, only)
    verdicts, counts = interpret(predicate, together), together.part_counts
    undecided = [
        [group for group, some in enumerate(of_part) if some]
        for of_part in cut_by((verdicts == _SOME).tolist(), counts)
    ]
    filters = [blooms for _, blooms in files]
    refuted = _refuted_by_filters(predicate, statistics, undecided, filters)
    starts = accumulate(counts, initial=0)
    verdicts = _without(
        verdicts,
        [
            first + group
            for first, of_part in zip(starts, refuted, strict=False)
            for group in of_part
        ],
    )
    remaining = cut_by((verdicts != _NONE).tolist(), counts)
    return [
        PrunedGroups(of_part, len(groups), any_remaining=True in group_mask)
        for of_part, groups, group_mask in zip(
            cut_by(verdicts, counts), refuted, remaining, strict=True
        )
    ]


def _refuted_by_filters(
    predicate: BoundPredicate,
    statistics: Sequence[RowGroupStatistics],
    undecided: list[list[int]],
    filters: Sequence[Blooms | None],
) -> list[set[int]]:
    """The undecided row groups of each file whose Bloom filters have no value that is asked for."""
    refuted: list[set[int]] = [set() for _ in filters]
    points = _points(predicate) if any(undecided) else ()
    asked = [
        (place, blooms)
        for place, blooms in enumerate(filters)
        if points and undecided[place] and blooms is not None
    ]
    _drop_few_far(points, statistics, undecided, asked)
    for place, blooms in asked:
        _expect_filters(points, statistics[place], undecided[place], blooms)
    for place, blooms in asked:
        refuted[place] = _refuted_by_blooms(points, statistics[place], undecided[place], blooms)
    return refuted


def cut_by(values: Values, counts: Sequence[int]) -> list[Values]:
    """Cut an array or a list into runs of these lengths."""
    ends = list(accumulate(counts))
    return [values[end - count : end] for count, end in zip(counts, ends, strict=True)]


def _drop_few_far(
    points: Sequence[Point],
    statistics: Sequence[RowGroupStatistics],
    groups: list[list[int]],
    asked: Sequence[tuple[int, Blooms]],
) -> None:
    """Drop the row groups whose filters cost a round trip, if these are few in all files."""
    far = {
        place: {
            group
            for point in points
            if (column := _hashed_column(point, statistics[place])) is not None
            for group in blooms.far(column, groups[place])
        }
        for place, blooms in asked
    }
    if sum(map(len, far.values())) < PROBED_FROM:
        for place, some in far.items():
            groups[place] = [group for group in groups[place] if group not in some]


def _expect_filters(
    points: Sequence[Point],
    statistics: RowGroupStatistics,
    groups: Sequence[int],
    blooms: Blooms,
) -> None:
    """Announce the filters that are requested first, for points with one value."""
    for point in points:
        if len(point.values) == 1:
            column = _hashed_column(point, statistics)
            if column is not None:
                blooms.expect(column, groups[:_FILTERS_AT_ONCE])


def probe_blooms(
    predicate: BoundPredicate, statistics: RowGroupStatistics, verdicts: Verdicts, blooms: Blooms
) -> Verdicts:
    """Return the verdicts, changed to NONE where Bloom filters refute a group with `SOME`."""
    groups = (verdicts == _SOME).nonzero()[0].tolist()
    return _without(verdicts, _refuted_by_blooms(_points(predicate), statistics, groups, blooms))


def _refuted_by_blooms(
    points: Sequence[Point], statistics: RowGroupStatistics, groups: Sequence[int], blooms: Blooms
) -> set[int]:
    """Return the groups whose filter has none of a point's values."""
    refuted: set[int] = set()
    for point in points:
        column = _hashed_column(point, statistics)
        if column is None:
            continue
        remaining = [group for group in groups if group not in refuted] if refuted else groups
        if len(point.values) == 1:
            refuted.update(_without_value(blooms, column, remaining, point.probes(column)))
            continue
        candidates = _candidates(point, column, statistics, remaining)
        while batch := list(islice(candidates, _FILTERS_AT_ONCE)):
            filters = blooms.filters(column, [group for group, _ in batch])
            for (group, probes), bloom in zip(batch, filters, strict=True):
                if bloom is not None and not bloom.may_contain_any(probes):
                    refuted.add(group)
    return refuted


def _hashed_column(point: Point, statistics: RowGroupStatistics) -> FileColumn | None:
    """The column in the file; None for floats, because equal ones may differ in their bits."""
    column = statistics.file_column(point.column.field_id)
    return None if column is None or pa.types.is_floating(column.type) else column


def _without_value(
    blooms: Blooms, column: FileColumn, groups: Sequence[int], probes: Probes | None
) -> Iterator[int]:
    """Return the groups whose filter has none of these probes."""
    for start in range(0, len(groups), _FILTERS_AT_ONCE):
        some = groups[start : start + _FILTERS_AT_ONCE]
        for group, bloom in zip(some, blooms.filters(column, some), strict=True):
            if bloom is not None and not bloom.may_contain_any(probes):
                yield group


def _without(verdicts: Verdicts, refuted: Collection[int]) -> Verdicts:
    if not refuted:
        return verdicts
    verdicts = verdicts.copy()
    verdicts[list(refuted)] = _NONE
    return verdicts


@dataclass(frozen=True, slots=True)
class Point:
    """A conjunct that is TRUE only if the column has one of these values."""

    column: ir.BoundColumn
    values: pa.Array
    _probes: list[tuple[FileColumn, Probes | None]] = field(
        default_factory=list, compare=False, repr=False
    )

    def probes(self, column: FileColumn) -> Probes | None:
        """Return the hashes of all values for a stored column; equal in all files."""
        for known, probes in self._probes:  # columns are shared, and hashing one takes longer
            if known is column or known == column:
                return probes
        hashes = probes_of(self.values, column)
        self._probes.append((column, hashes))
        return hashes


def _points(predicate: BoundPredicate) -> tuple[Point, ...]:
    points = (_point(term) for term in ir.root_conjuncts(predicate.root))
    return tuple(point for point in points if point is not None)


def _point(term: ir.Predicate) -> Point | None:
    match term:
        case (
            ir.Comparison(
                op=ir.ComparisonOp.EQ | ir.ComparisonOp.NOT_DISTINCT,
                left=ir.BoundColumn() as column,
                right=ir.Literal() as constant,
            )
            | ir.Comparison(
                op=ir.ComparisonOp.EQ | ir.ComparisonOp.NOT_DISTINCT,
                left=ir.Literal() as constant,
                right=ir.BoundColumn() as column,
            )
        ):
            if constant.value is None or constant.type != column.type:
                return None
            if isinstance(column.type, Int):
                values = pa.array([constant.value], arrow_type(column.type))
            else:
                value = scalar(constant)
                values = pa.array([value], value.type)  # untyped, pyarrow looks for packages
        case ir.InList(operand=ir.BoundColumn() as column, values=members):
            if len(members) > MAX_VALUES or members.type != column.type:
                return None
            values = members.array.drop_null()
        case _:
            return None
    if isinstance(column.type, Bool) or values.type != arrow_type(column.type):
        return None
    return Point(column, values)


def _candidates(
    point: Point,
    column: FileColumn,
    statistics: RowGroupStatistics,
    groups: Sequence[int],
) -> Iterator[tuple[int, Probes | None]]:
    """Yield the groups worth probing, with the values within their bounds."""
    probes = point.probes(column) if len(point.values) <= HASHED_AT_ONCE else None
    for group, inside in _within_bounds(point, statistics, groups):
        if np.count_nonzero(inside) <= MAX_PROBES:
            if probes is None:
                yield group, probes_of(point.values.filter(pa.array(inside)), column)
            else:
                yield group, [probes[i] for i in np.flatnonzero(inside).tolist()]


def _within_bounds(
    point: Point, statistics: RowGroupStatistics, groups: Sequence[int]
) -> Iterator[tuple[int, Mask]]:
    """Each group, and which of the point's values are within its bounds."""
    column = statistics.column(point.column)
    numbers = None if column is None else column.number_bounds
    if numbers is not None and numbers.type == point.values.type:
        values = filled(point.values)
        for group in groups:
            yield group, (values >= numbers.lower[group]) & (values <= numbers.upper[group])
        return
    known = from_column(point.column, column, statistics.part_count)
    for group in groups:
        yield group, _within(point.values, known.lower[group], known.upper[group])


def _within(values: pa.Array, lower: pa.Scalar, upper: pa.Scalar) -> Mask:
    """(n,) whether the value is between the bounds; an invalid scalar means no bound."""
    inside = np.ones(len(values), dtype=np.bool_)
    if lower.is_valid:
        inside &= as_mask(compare(ir.ComparisonOp.GE, values, lower, NanOrder.GREATEST))
    if upper.is_valid:
        inside &= as_mask(compare(ir.ComparisonOp.LE, values, upper, NanOrder.GREATEST))
    return inside
