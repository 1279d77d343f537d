"""Reads the matching rows of a row group in two phases (late materialisation).

The first phase decodes the predicate's columns, drops rows that are not wanted, and evaluates the
predicate; it never evaluates a row that is not wanted, so such a row cannot fail. The second phase
decodes the other columns, only if a row matches. If one read of all columns is cheaper, the first
phase decodes them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rowsieve.executor.decode_row_group import (
    FewPages,
    RowGroup,
    as_stored,
    read_few_pages,
    selection,
)
from rowsieve.executor.repeats import Rows
from rowsieve.executor.text_views import with_views
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads `columns` of the wanted rows that match `predicate`.

    `all_columns` are `predicate_columns` and `columns`; `target` and `predicate_target` are the
    Arrow schemas of `columns` and `predicate_columns`.
    """

    columns: Schema
    target: pa.Schema
    predicate_columns: Schema
    predicate_target: pa.Schema
    all_columns: Schema
    predicate: BoundPredicate | None

    @classmethod
    def of(
        cls,
        columns: Schema,
        predicate: BoundPredicate | None,
        predicate_columns: Schema,
        *,
        views: bool = False,
    ) -> RowReader:
        """Build a reader of `columns`, for a predicate over `predicate_columns`.

        With `views`, the rows have the view types of text and bytes.
        """
        names = frozenset(predicate_columns.names)
        more = tuple(field for field in columns if field.name not in names)
        all_columns = Schema(columns.id, (*predicate_columns, *more))
        return cls(
            columns,
            with_views(arrow_schema(columns)) if views else arrow_schema(columns),
            predicate_columns,
            arrow_schema(predicate_columns),
            all_columns,
            predicate,
        )

    def read(self, group: RowGroup) -> pa.RecordBatch | None:
        """The matching rows; None if there are none. EvaluationError if the predicate fails."""
        if self.predicate is None:
            return group.read_only(self.columns, self.target, group.wanted)
        first = self.first_of(group)
        rows = as_stored(group.read_only(first, None, group.wanted), self.predicate_target)
        matches = matching(self.predicate, rows)
        if (kept := _only(rows, matches)) is None:
            return None
        names, read = self.columns.names, frozenset(first.names)
        if rest := tuple(name for name in names if name not in read):
            both = _matching_rows(group, matches)
            kept = _join_columns(kept, group.read_only(self.columns.select(rest), None, both))
        return as_stored(kept.select(list(names)), self.target)

    def read_together(self, units: Sequence[FewPages]) -> pa.RecordBatch | None:
        """The matching rows of units that were joined for `all_columns`; None if there are none."""
        assert self.predicate is not None
        rows = as_stored(read_few_pages(units, self.all_columns), self.predicate_target)
        if (kept := _only(rows, matching(self.predicate, rows))) is None:
            return None
        return as_stored(kept.select(list(self.columns.names)), self.target)

    def first_of(self, group: RowGroup) -> Schema:
        """The columns that are decoded before the predicate is evaluated."""
        if self.predicate is None:
            return self.columns
        return (
            self.all_columns if group.is_cheap_at_once(self.all_columns) else self.predicate_columns
        )

    def count(self, group: RowGroup) -> int:
        """Count the matching rows."""
        if self.predicate is None:
            return group.row_count if group.wanted is None else len(group.wanted)
        rows = group.read_only(
            self.predicate_columns, arrow_schema(self.predicate_columns), group.wanted
        )
        return int(matching(self.predicate, rows).sum())


def _matching_rows(group: RowGroup, matches: Mask) -> Rows | RowSet | None:
    """The wanted rows of the group that match; `matches` has one entry per wanted row."""
    if matches.all():
        return group.wanted
    return np.flatnonzero(matches) if group.wanted is None else group.wanted.to_ids()[matches]


def _only(rows: pa.RecordBatch, matches: Mask) -> pa.RecordBatch | None:
    """The rows that match, None if there are none; text stays in its dictionary."""
    count = int(np.count_nonzero(matches))
    if not count:
        return None
    if count == rows.num_rows or not rows.num_columns:
        return rows.slice(0, count)
    keep = selection(matches.nonzero()[0], rows.num_rows)
    return pa.RecordBatch.from_arrays([keep(each) for each in rows.columns], rows.schema.names)


def _join_columns(left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
    fields = [*left.schema, *right.schema]
    return pa.RecordBatch.from_arrays([*left.columns, *right.columns], schema=pa.schema(fields))
