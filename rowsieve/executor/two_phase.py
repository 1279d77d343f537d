"""Reading the rows of a part that match: the predicate's columns first, the others where it pays.

Of each row group the columns that the predicate names are decoded, cut down to the wanted rows, and
asked; a row that is not wanted is never asked, so it cannot fail. The other columns are decoded
only where a row matches (late materialisation). Of one page all that may be needed is read at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rowsieve.executor.repeats import Rows
from rowsieve.executor.row_groups import RowGroup, as_stored, selection
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class RowReader:
    """What is read of each row group: `columns` of the wanted rows that match.

    `asked` are the columns that the predicate names, `everything` those and `columns`; `target` and
    `asked_target` are the Arrow schemas of `columns` and `asked`.
    """

    columns: Schema
    target: pa.Schema
    asked: Schema
    asked_target: pa.Schema
    everything: Schema
    predicate: BoundPredicate | None

    @classmethod
    def of(cls, columns: Schema, predicate: BoundPredicate | None, asked: Schema) -> RowReader:
        """A reader of `columns`; `asked` are those that the predicate names."""
        names = frozenset(asked.names)
        more = tuple(field for field in columns if field.name not in names)
        everything = Schema(columns.id, (*asked, *more))
        return cls(
            columns, arrow_schema(columns), asked, arrow_schema(asked), everything, predicate
        )

    def read(self, group: RowGroup) -> pa.RecordBatch | None:
        """The rows, None if there are none. EvaluationError where the predicate fails on one."""
        if self.predicate is None:
            return group.read_only(self.columns, self.target, group.wanted)
        first = self.first_of(group)
        rows = as_stored(group.read_only(first, None, group.wanted), self.asked_target)
        matches = matching(self.predicate, rows)
        if not matches.any():
            return None
        kept = _only(rows, matches)
        names, read = self.columns.names, frozenset(first.names)
        if rest := tuple(name for name in names if name not in read):
            both = _matching_rows(group, matches)
            kept = _beside(kept, group.read_only(self.columns.select(rest), None, both))
        return as_stored(kept.select(list(names)), self.target)

    def first_of(self, group: RowGroup) -> Schema:
        """The columns that are read before the predicate is asked."""
        if self.predicate is None:
            return self.columns
        return self.everything if group.is_cheap_at_once(self.everything) else self.asked

    def count(self, group: RowGroup) -> int:
        """How many rows there are."""
        if self.predicate is None:
            return group.row_count if group.wanted is None else len(group.wanted)
        rows = group.read_only(self.asked, arrow_schema(self.asked), group.wanted)
        return int(matching(self.predicate, rows).sum())


def _matching_rows(group: RowGroup, matches: Mask) -> Rows | RowSet | None:
    """Which rows of the group are wanted and match; `matches` speaks of the wanted ones."""
    if matches.all():
        return group.wanted
    return np.flatnonzero(matches) if group.wanted is None else group.wanted.to_ids()[matches]


def _only(rows: pa.RecordBatch, matches: Mask) -> pa.RecordBatch:
    """The rows that match. Text leaves its dictionary after that."""
    if matches.all() or not rows.num_columns:
        return rows.slice(0, int(matches.sum()))
    keep = selection(np.flatnonzero(matches), rows.num_rows)
    return pa.RecordBatch.from_arrays([keep(each) for each in rows.columns], rows.schema.names)


def _beside(left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
    fields = [*left.schema, *right.schema]
    return pa.RecordBatch.from_arrays([*left.columns, *right.columns], schema=pa.schema(fields))
