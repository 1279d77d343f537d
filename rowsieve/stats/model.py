"""What is known about the values of one column in one part.

Statistics speak of a subject: a field, by its id (a member of a struct, list or map has one of its
own), or something derived from a field's values, such as the length of its lists.

Soundness: bounds are inclusive and may be too wide, never too narrow; None says nothing is known.
Absent is not empty: a subject without a `ColumnStatistics` may hold anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa


@dataclass(frozen=True, slots=True, order=True)
class Derived:
    """Values computed from those of a field; `what` says how, see `rowsieve.stats.subjects`."""

    field_id: int
    what: str

    def __str__(self) -> str:
        return f"{self.field_id}.{self.what}"


Subject: TypeAlias = int | Derived


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Counts and bounds of one subject; NaN counts in `nan_count` and in no bound.

    `lower` and `upper` are scalars of the subject's storage type; `lower_exact` says that a row
    holds exactly this value, so it was neither truncated nor widened. `nan_count` is None for types
    without NaN. `value_count` is how many values there are, NULLs among them, where that is not the
    number of rows: inside lists and maps. `kinds` says of a path in JSON what stands there, as bits
    of `rowsieve.stats.json_kinds.Kind`.

    A member of a struct is NULL wherever the struct is; the members of lists and maps are those of
    all rows together.
    """

    null_count: int | None = None
    nan_count: int | None = None
    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None
    lower_exact: bool = False
    upper_exact: bool = False
    value_count: int | None = None
    kinds: int | None = None


UNKNOWN = ColumnStatistics()
