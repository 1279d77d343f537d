"""Reads times in INT96: 8 bytes of nanoseconds within a day, then 4 bytes of the Julian day.

Impala, Hive and Spark up to version 3 write them. pyarrow converts them to 64 bits without a check,
so that a time beyond them wraps around. So adapted footers declare such leaves as 12 fixed bytes,
whose encodings are the same, and we convert these.

Soundness: a time that the target cannot hold is an error, never another time. Digits below the
target's unit are cut off toward the past, as in Spark. A writer's nanoseconds may exceed a day.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from rowsieve.predicate.arrays import null_mask
from rowsieve.types.days import DAY_US

WIDTH: Final = 12
STORED: Final = pa.binary(WIDTH)
"""The Arrow type in which such leaves are decoded."""

_EPOCH: Final = 2_440_588  # the Julian day of 1970-01-01
_PER_DAY: Final = {"us": DAY_US, "ns": DAY_US * 1_000}
_NANOSECONDS: Final = {"us": 1_000, "ns": 1}


def is_int96(type_: pa.DataType) -> bool:
    """Return whether values of this type may be those of an INT96 leaf."""
    return bool(type_ == STORED)


def timestamps_of(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert 12 bytes each to a timestamp type in us or ns; ValueError for a time beyond it."""
    words = np.frombuffer(values.buffers()[1], dtype="<i4") if len(values) else np.empty(0, "<i4")
    words = words.reshape(-1, 3)[values.offset : values.offset + len(values)]
    nulls = null_mask(values)
    days = np.where(nulls, _EPOCH, words[:, 2]).astype(np.int64) - _EPOCH
    within = np.ascontiguousarray(words[:, :2]).view("<i8")[:, 0]
    within = np.where(nulls, 0, within) // _NANOSECONDS[target.unit]
    ticks = days * _PER_DAY[target.unit] + within  # wraps around where `about` is beyond 64 bits
    about = days.astype(np.float64) * _PER_DAY[target.unit] + within.astype(np.float64)
    beyond = np.abs(about - ticks.astype(np.float64)) > 2.0**62
    if beyond.any():
        place = int(np.argmax(beyond))
        raise ValueError(
            f"the INT96 of day {days[place]:,} since 1970-01-01 is beyond {target}, which holds "
            f"{-(2**63) // _PER_DAY[target.unit]:,} to {2**63 // _PER_DAY[target.unit]:,}"
        )
    times = pa.array(ticks, mask=nulls) if nulls.any() else pa.array(ticks)
    return times.view(pa.timestamp(target.unit)).cast(target)
