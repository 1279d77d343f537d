"""Reads the matching rows of row groups in two phases (late materialisation).

The first phase decodes the predicate's columns, drops rows that are not wanted, and evaluates the
predicate; it never evaluates a row that is not wanted, so such a row cannot fail. The second phase
decodes the other columns, only if a row matches. If one read of all columns is cheaper, the first
phase decodes them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rowsieve.executor.decode_row_group import (
    RowGroup,
    as_stored,
    is_cheap_at_once,
    read_rows,
    selection,
)
from rowsieve.executor.merging.repeats import Rows
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

    `rest` are those of `columns` that the predicate does not read, and `all_columns`, which are
    read, those of the predicate and `rest`. `target` and `predicate_target` are the Arrow schemas
    of `columns` and `predicate_columns`; a target of None is the types of the decoder. Without a
    predicate, there are no predicate columns.
    """

    columns: Schema
    target: pa.Schema | None
    predicate_columns: Schema
    predicate_target: pa.Schema
    rest: Schema
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
        rest = tuple(field for field in columns if field.name not in names)
        return cls(
            columns,
            with_views(arrow_schema(columns)) if views else arrow_schema(columns),
            predicate_columns,
            arrow_schema(predicate_columns),
            Schema(columns.id, rest),
            Schema(columns.id, (*predicate_columns, *rest)),
            predicate,
        )

    def read(self, groups: Sequence[RowGroup]) -> pa.RecordBatch | None:
        """The matching rows of a row group, or of several of one form; None if there are none.

        EvaluationError if the predicate fails.
        """
        wanted = [group.wanted for group in groups]
        if self.predicate is None:
            return read_rows(groups, wanted, self.columns, self.target)
        first = self.first_of(groups)
        rows = as_stored(read_rows(groups, wanted, first, None), self.predicate_target)
        matches = matching(self.predicate, rows)
        if (matching_batch := _only(rows, matches)) is None:
            return None
        if self.rest.fields and first is not self.all_columns:
            both = list(_matching_rows(groups, matches))
            others = read_rows(groups, both, self.rest, None)
            schema = pa.schema([*matching_batch.schema, *others.schema])
            matching_batch = pa.RecordBatch.from_arrays(
                [*matching_batch.columns, *others.columns], schema=schema
            )
        result = matching_batch.select(list(self.columns.names))
        return result if self.target is None else as_stored(result, self.target)

    def first_of(self, groups: Sequence[RowGroup]) -> Schema:
        """The columns that are decoded before the predicate is evaluated."""
        if self.predicate is None:
            return self.columns
        at_once = is_cheap_at_once(groups, self.all_columns)
        return self.all_columns if at_once else self.predicate_columns

    def count(self, groups: Sequence[RowGroup]) -> int:
        """Count the rows that match the predicate, which there must be."""
        assert self.predicate is not None
        wanted = [group.wanted for group in groups]
        rows = read_rows(groups, wanted, self.predicate_columns, self.predicate_target)
        return int(matching(self.predicate, rows).sum())


def _matching_rows(groups: Sequence[RowGroup], matches: Mask) -> Iterator[Rows | RowSet | None]:
    """The wanted rows of each group that match; `matches` has one entry per wanted row."""
    start = 0
    for group in groups:
        wanted = group.wanted
        count = group.row_count if wanted is None else len(wanted)
        batch_matches = matches[start : start + count]
        start += count
        if batch_matches.all():
            yield wanted
        else:
            yield (
                np.flatnonzero(batch_matches) if wanted is None else wanted.to_ids()[batch_matches]
            )


def _only(rows: pa.RecordBatch, matches: Mask) -> pa.RecordBatch | None:
    """The rows that match, None if there are none; text stays in its dictionary."""
    count = int(np.count_nonzero(matches))
    if not count:
        return None
    if count == rows.num_rows or not rows.num_columns:
        return rows.slice(0, count)
    keep = selection(matches.nonzero()[0], rows.num_rows)
    return pa.RecordBatch.from_arrays(list(map(keep, rows.columns)), rows.schema.names)
