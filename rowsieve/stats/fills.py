"""Statistics of columns that were added after a part was written: those of their fill default.

Soundness (trap T20): rows that are older than a column have its fill default, all of them, so the
statistics are exact. Members of an added struct are NULL there. Nothing is known of values that are
derived from the column, such as the lengths of its lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from rowsieve.predicate.abstract import AbstractColumn
from rowsieve.stats.model import Subject
from rowsieve.stats.subjects import describe
from rowsieve.types.logical import Float, LogicalType
from rowsieve.types.schema import Schema
from rowsieve.types.stored_defaults import constant, is_nan


@dataclass(frozen=True, slots=True)
class Fill:
    """The value of a column, or member of one, in files of schemas older than `added`."""

    added: int
    type: LogicalType
    value: pa.Scalar

    @property
    def is_null(self) -> bool:
        """Whether the value is NULL."""
        return not self.value.is_valid

    @property
    def is_nan(self) -> bool:
        """Whether the value is NaN."""
        return is_nan(self.value)

    @property
    def bound(self) -> pa.Scalar:
        """The lower and upper bound; NULL for NaN."""
        return pa.scalar(None, self.value.type) if self.is_nan else self.value

    def repeated(self, count: int) -> AbstractColumn:
        """The statistics of `count` row groups or pages in which all rows have the value."""
        yes, no = np.ones(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        null = yes if self.is_null else no
        nan = (yes if self.is_nan else no) if isinstance(self.type, Float) else None
        bounds = pa.repeat(self.bound, count)
        return AbstractColumn(bounds, bounds, empty=null, may_be_null=null, may_be_nan=nan)


@lru_cache(maxsize=64)
def fills_of(schema: Schema) -> Mapping[Subject, Fill]:
    """Return the fill of each column that was added, and of the members of added structs."""
    return dict(_fills(schema))


def _fills(schema: Schema) -> Iterator[tuple[Subject, Fill]]:
    for field in schema:
        if not field.added:
            continue
        for each in describe([field]):
            if not each.repeated and isinstance(each.subject, int):
                text = field.fill if each.subject == field.id else None
                yield each.subject, Fill(field.added, each.type, constant(text, each.type))
