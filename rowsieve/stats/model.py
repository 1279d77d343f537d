"""The statistics of one column in one part.

Statistics describe a subject: a field, by its id (a field of a struct, list or map has an id of its
own), or values derived from a field, such as the lengths of its lists.

Soundness: bounds are inclusive and may be too wide, never too narrow; None means "unknown". Absent
does not mean empty: a subject without a `ColumnStatistics` may have any values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa


@dataclass(frozen=True, slots=True, order=True)
class Derived:
    """Values derived from those of a field; `rowsieve.stats.subjects` lists each `what`."""

    field_id: int
    what: str

    def __str__(self) -> str:
        return f"{self.field_id}.{self.what}"


Subject: TypeAlias = int | Derived


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Counts and bounds of one subject; bounds ignore NaN, which `nan_count` counts.

    `lower` and `upper` are scalars of the subject's storage type. `lower_exact`: a row has exactly
    this value, so it was neither truncated nor widened; likewise `upper_exact`. `nan_count` is None
    for types without NaN. `value_count` is the number of values including NULLs, inside lists and
    maps, where it differs from the number of rows. `kinds` has bits of
    `rowsieve.stats.json_kinds.Kind` for a JSON path.

    A field of a struct is NULL where the struct is. Statistics inside lists and maps cover the
    values of all rows together.
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
