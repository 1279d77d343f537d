"""Reading the rows of a part that match: the predicate's columns first, the others where it pays.

Of each row group the columns that the predicate names are decoded, cut down to the wanted rows, and
asked; a row that is not wanted is never asked, so it cannot fail. The other columns are decoded
only where a row matches (late materialisation).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rowsieve.executor.row_groups import RowGroup
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.evaluate import matching
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class RowReader:
    """What is read of each row group: `columns` of the wanted rows that match."""

    columns: Schema
    target: pa.Schema
    asked: Schema
    predicate: BoundPredicate | None

    @classmethod
    def of(cls, columns: Schema, predicate: BoundPredicate | None, asked: Schema) -> RowReader:
        """A reader of `columns`; `asked` are those that the predicate names."""
        return cls(columns, arrow_schema(columns), asked, predicate)

    def read(self, group: RowGroup) -> pa.RecordBatch | None:
        """The rows, None if there are none. EvaluationError where the predicate fails on one."""
        wanted = group.mask()
        if self.predicate is None:
            return group.read_only(self.columns, self.target, wanted)
        rows = group.read_only(self.asked, arrow_schema(self.asked), wanted)
        matches = matching(self.predicate, rows)
        if not matches.any():
            return None
        kept = rows if matches.all() else rows.filter(pa.array(matches))
        names = self.columns.names
        if rest := tuple(name for name in names if name not in self.asked.names):
            both = _both(group.row_count, wanted, matches)
            others = self.columns.select(rest)
            kept = _beside(kept, group.read_only(others, arrow_schema(others), both))
        return kept.select(list(names))

    def count(self, group: RowGroup) -> int:
        """How many rows there are."""
        wanted = group.mask()
        if self.predicate is None:
            return group.row_count if wanted is None else int(wanted.true_count)
        rows = group.read_only(self.asked, arrow_schema(self.asked), wanted)
        return int(matching(self.predicate, rows).sum())


def _both(row_count: int, wanted: pa.Array | None, matches: Mask) -> pa.Array | None:
    """Which rows of the group are wanted and match; `matches` speaks of the wanted ones."""
    if wanted is None:
        return None if matches.all() else pa.array(matches)
    both = np.zeros(row_count, dtype=bool)
    both[np.flatnonzero(wanted.to_numpy(zero_copy_only=False))] = matches
    return pa.array(both)


def _beside(left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
    fields = [*left.schema, *right.schema]
    return pa.RecordBatch.from_arrays([*left.columns, *right.columns], schema=pa.schema(fields))
