"""The property `late_horizon`: how long the deletes of an event order are remembered.

It is an interval since the commit of a delete, as `7 days`, or of event time, as `7 days of event
time`. The event time of a change is the first column of its sequence, which must be a date or a
timestamp then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.errors import InvalidInput
from rowsieve.types.logical import Date, Field, Nanos, Timestamp, type_name

LATE_HORIZON: Final = "late_horizon"
_DEFAULT: Final = "7 days"
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_INTERVAL: Final = re.compile(r"(\d{1,9}) (second|minute|hour|day)s?( of event time)?", re.ASCII)
_DAY_US: Final = 86_400_000_000


@dataclass(frozen=True, slots=True)
class LateHorizon:
    """An interval in microseconds, of event time or since the commit."""

    interval_us: int
    by_event_time: bool


def horizon_of(properties: Mapping[str, str]) -> LateHorizon | None:
    """Read the property; None for "forever"."""
    interval = _INTERVAL.fullmatch(properties.get(LATE_HORIZON, _DEFAULT))
    if interval is None:
        return None
    return LateHorizon(int(interval[1]) * _SECONDS[interval[2]] * 1_000_000, bool(interval[3]))


def check_horizon(properties: Mapping[str, str], sequence: Sequence[Field]) -> None:
    """Raise InvalidInput for an interval of event time if no event of the table has a time."""
    horizon = horizon_of(properties)
    if horizon is None or not horizon.by_event_time:
        return
    if not sequence or not isinstance(sequence[0].type, Date | Timestamp | Nanos):
        first = "no event order"
        if sequence:
            first = f"an event order by {sequence[0].name!r} of type {type_name(sequence[0].type)}"
        raise InvalidInput(
            f"table property {LATE_HORIZON!r} is {properties[LATE_HORIZON]!r}, and the table has "
            f"{first}; the first column of sequence= must be a date or a timestamp. Give an "
            "interval since the commit, as '7 days'"
        )


def event_us(times: Any, field: Field) -> npt.NDArray[np.int64]:
    """(n,) the event times of sequences without NULL, in microseconds since 1970, rounded up."""
    if isinstance(field.type, Date):
        return np.asarray(times.cast(pa.int32()).to_numpy(), dtype=np.int64) * _DAY_US
    numbers = np.asarray(times.cast(pa.int64()).to_numpy(), dtype=np.int64)
    return -(-numbers // 1000) if isinstance(field.type, Nanos) else numbers
