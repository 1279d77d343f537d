"""Statistics of whole shards, which can exclude a shard without reading those of its parts.

A shard is a run of neighbouring parts in a checkpoint. Its statistics are the union of those of its
parts: one row of columns `union.<subject>.<fact>`. The facts are `lower`, `upper`, `empty`, `null`
and `nan` of every subject, with the meanings of `AbstractColumn`, and `kinds` of JSON paths.

Soundness: a union holds for every part of its shard, so also for any subset of them. It is computed
from `PartStatistics`, which treat contradictory facts as unknown, not from the stored facts. A fact
that is NULL, absent or of another type is unknown. A union may prove that no row matches, never
that all rows match: a part has fewer rows than its shard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, as_mask
from rowsieve.predicate.interpretation.abstract import AbstractColumn, AbstractValue, nowhere
from rowsieve.predicate.ir import BoundColumn, Operand
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.expressions import value_of
from rowsieve.stats.json_kinds import EVERYTHING, JsonKind, path_of_subject
from rowsieve.stats.model import Derived, Subject
from rowsieve.stats.subjects import derived, describe
from rowsieve.types.encodings import arrow_type
from rowsieve.types.schema import Schema
from rowsieve.types.widening import holds_all_of, widened

_FLAGS = ("empty", "null", "nan")


def union_name(subject: Subject, fact: str) -> str:
    """The name of the column for one fact of one subject."""
    return f"union.{subject}.{fact}"


def unions_of(
    statistics: PartStatistics, subjects: Iterable[Subject], starts: npt.NDArray[np.int64]
) -> dict[str, pa.Array]:
    """The unions of the runs of parts that begin at `starts`; no run is empty."""
    columns: dict[str, pa.Array] = {}
    for subject in subjects:
        if isinstance(subject, Derived) and path_of_subject(subject) == subject:
            kinds = statistics.kinds(subject)
            if kinds is not None:
                joined = np.bitwise_or.reduceat(kinds, starts)
                columns[union_name(subject, "kinds")] = pa.array(joined)
        elif (known := statistics.subject(subject)) is not None:
            absent = known.empty | _other_kinds(subject, statistics)
            columns.update(_union(subject, known, absent, starts))
    return columns


def _other_kinds(subject: Subject, statistics: PartStatistics) -> Mask:
    """(n,) parts in which a JSON path has no value of the subject's kind."""
    path = path_of_subject(subject) if isinstance(subject, Derived) else None
    kinds = None if path is None else statistics.kinds(path)
    if kinds is None or not isinstance(subject, Derived):
        return nowhere(statistics.part_count)
    kind = JsonKind[subject.what.rpartition(":")[2].upper()]
    absent: Mask = kinds & int(kind | JsonKind.OTHER) == 0
    return absent


def _union(
    subject: Subject, known: AbstractColumn, absent: Mask, starts: npt.NDArray[np.int64]
) -> dict[str, pa.Array]:
    maybe_nan = np.ones_like(absent) if known.may_be_nan is None else known.may_be_nan
    columns = {
        union_name(subject, "empty"): pa.array(np.logical_and.reduceat(known.empty, starts)),
        union_name(subject, "null"): pa.array(np.logical_or.reduceat(known.may_be_null, starts)),
        union_name(subject, "nan"): pa.array(np.logical_or.reduceat(maybe_nan, starts)),
    }
    stops = np.append(starts[1:], len(absent))
    for fact, bounds, which in (("lower", known.lower, "min"), ("upper", known.upper, "max")):
        if bounds.null_count == len(bounds):
            continue
        shard_bounds = [
            _outermost(bounds[start:stop].filter(pa.array(~absent[start:stop])), which)
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
        columns[union_name(subject, fact)] = pa.concat_arrays(shard_bounds)
    return columns


def _outermost(bounds: pa.Array, which: str) -> pa.Array:
    """The least or greatest bound, as an array of length one; NULL if any bound is unknown."""
    if not len(bounds) or bounds.null_count:
        return pa.nulls(1, bounds.type)
    order = pc.sort_indices(bounds) if pa.types.is_fixed_size_binary(bounds.type) else None
    if order is not None:  # `min_max` has no kernel for fixed-size binary
        return bounds.take(order[:1] if which == "min" else order[-1:])
    best = pc.min_max(bounds)[which]
    if pa.types.is_floating(bounds.type) and best.as_py() == 0:  # both zeros are equal
        best = pa.scalar(-0.0 if which == "min" else 0.0, bounds.type)
    return pa.repeat(best, 1)


class ShardUnions:
    """`AbstractColumns` over the shards of a checkpoint, from a table of unions."""

    def __init__(
        self, table: pa.Table, schema: Schema, field_ids: Collection[int] | None = None
    ) -> None:
        self._table = table
        self._subjects = {described.subject: described for described in describe(schema)}
        self._field_ids = None if field_ids is None else frozenset(field_ids)
        self.part_count = int(table.num_rows)

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """The statistics of a column in every shard; None if no shard has any."""
        return self.subject(column.field_id)

    def expression(self, operand: Operand) -> AbstractValue | None:
        """The value of an expression in every shard; None if no unions describe it."""
        return value_of(operand, self)

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """The statistics of a subject in every shard; None if no shard has any."""
        if not self._may_be_known(subject):
            return None
        described = self._subjects.get(subject)
        if described is None and isinstance(subject, Derived):
            described = derived(subject)
        flags = [self._column(subject, fact, pa.bool_()) for fact in _FLAGS]
        if described is None or None in flags:
            return None
        empty, null, nan = (as_mask(flag) for flag in flags)
        type_ = arrow_type(described.type)
        lower, upper = (
            pa.nulls(self.part_count, type_) if bound is None else bound
            for bound in (self._column(subject, fact, type_) for fact in ("lower", "upper"))
        )
        return AbstractColumn(lower, upper, empty=empty, may_be_null=null, may_be_nan=nan)

    def kinds(self, subject: Derived) -> npt.NDArray[np.int64] | None:
        """(n,) bits of `JsonKind`: what a JSON path may hold; None if no shard knows."""
        if not self._may_be_known(subject):
            return None
        column = self._column(subject, "kinds", pa.int64())
        return None if column is None else np.asarray(column.fill_null(EVERYTHING).to_numpy())

    def _may_be_known(self, subject: Subject) -> bool:
        field_id = subject if isinstance(subject, int) else subject.field_id
        return self._field_ids is None or field_id in self._field_ids

    def _column(self, subject: Subject, fact: str, type_: pa.DataType) -> pa.Array | None:
        index = self._table.schema.get_field_index(union_name(subject, fact))
        if index < 0 or not holds_all_of(type_, self._table.schema.field(index).type):
            return None
        column = widened(self._table.column(index), type_)
        if pa.types.is_boolean(type_) and column.null_count:
            return None
        return pa.concat_arrays([*column.chunks, pa.nulls(0, type_)])
