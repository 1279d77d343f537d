"""What is known about the values of one column in one part.

Soundness: bounds are inclusive and may be too wide, never too narrow; None says nothing is known.
Absent is not empty: a column without a `ColumnStatistics` may hold anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Counts and bounds of one column; NaN counts in `nan_count` and in no bound.

    `lower` and `upper` are scalars of the column's storage type; `lower_exact` says that a row
    holds exactly this value, so it was neither truncated nor widened. `nan_count` is None for types
    without NaN.
    """

    null_count: int | None = None
    nan_count: int | None = None
    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None
    lower_exact: bool = False
    upper_exact: bool = False


UNKNOWN = ColumnStatistics()
