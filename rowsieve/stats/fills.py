"""Statistics of columns that were added after a part was written: those of their fill default.

Soundness (trap T20): rows that are older than a column have its fill default, all of them, so the
statistics are exact. Fields of an added struct are NULL there. A field that was added to a struct
has its fill default or, where the struct is NULL, NULL. Nothing is known of values that are derived
from the column, such as the lengths of its lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from rowsieve.predicate.abstract import AbstractColumn
from rowsieve.stats.model import Subject
from rowsieve.types.logical import Field, Float, LogicalType, Struct
from rowsieve.types.schema import Schema
from rowsieve.types.stored_defaults import constant, is_nan


@dataclass(frozen=True, slots=True)
class Fill:
    """The value of a column, or field of a struct, in files of schemas older than `added`.

    `maybe_null`: rows may also have NULL, because a struct around the field may be NULL.
    """

    added: int
    type: LogicalType
    value: pa.Scalar
    maybe_null: bool = False

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
        maybe = yes if self.maybe_null else null
        nan = (yes if self.is_nan else no) if isinstance(self.type, Float) else None
        bounds = pa.repeat(self.bound, count)
        return AbstractColumn(bounds, bounds, empty=null, may_be_null=maybe, may_be_nan=nan)


Fills: TypeAlias = tuple[Fill, ...]
"""What older files have for one subject, oldest first: the first one that applies is the value."""


def fill_for(fills: Fills, written_with: int) -> Fill | None:
    """Return what a file of this schema has; None if the file has the column itself."""
    return next((fill for fill in fills if written_with < fill.added), None)


@lru_cache(maxsize=64)
def fills_of(schema: Schema) -> Mapping[Subject, Fills]:
    """Return the fills of each column and field of a struct that was added, or is inside one."""
    return {subject: fills for field in schema for subject, fills in _fills(field, ())}


def _fills(field: Field, around: Fills, *, inside: bool = False) -> Iterator[tuple[Subject, Fills]]:
    """`around`: the fills of the struct that the field is in."""
    fills = tuple(Fill(each.added, field.type, constant(None, field.type)) for each in around)
    if field.added > (around[-1].added if around else 0):
        value = constant(field.fill, field.type)
        fills = (*fills, Fill(field.added, field.type, value, maybe_null=inside))
    if fills:
        yield field.id, fills
    if isinstance(field.type, Struct):
        for member in field.type.fields:
            yield from _fills(member, fills, inside=True)
