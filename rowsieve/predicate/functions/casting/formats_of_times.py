"""Dates and times as text by the rules of DuckDB, DataFusion and Trino: one table of formats.

A text in a format of a row is the time that it names; it has no value if there is no such time. A
text in no format may have rules of the engine that no row describes if it matches `unread`: it
raises `UnreadText`. Any other text is none of the engine's times.

Soundness: `unread` matches every text in no format that the engine may take for a time.
Source: DuckDB 2.0 and DataFusion 55 on random texts (`tests/predicate/functions/
test_engine_texts.py`), `arrow-cast/src/parse.rs` of arrow-rs, and `DateTimes`, `DateTimeUtils` and
`VarcharToTimestampCast` of trino-main, which is not run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask
from rowsieve.predicate.functions.casting import text_casts
from rowsieve.predicate.functions.casting.text_casts import SPACE, Micros
from rowsieve.predicate.functions.casting.text_shapes import matches, refuse
from rowsieve.predicate.semantics import Semantics, TextReading
from rowsieve.types.logical import Date, LogicalType, Time, Timestamp

NANOSECONDS: Final = (2**63 - 1) // 1000 - 1  # in microseconds


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """The texts of a type in an engine; patterns have groups named as in `text_casts`.

    `trimmed`: characters around a text that are left out. `rejects`: a text in a format without
    such a time, as of February 30, has no value; otherwise that is not known. `in_session`: an
    instant without an offset is a local time of the session, otherwise of UTC. `last_us`: other
    times than those within so many microseconds of 1970 are not known.
    """

    patterns: tuple[str, ...]
    unread: str
    trimmed: str = ""
    rejects: bool = True
    in_session: bool = False
    last_us: int | None = None


_PARTS: Final = (
    *("year", "month", "day", "hour", "minute", "second", "fraction"),
    *("zone", "sign", "zone_hour", "zone_minute"),
)
_YEAR: Final = "(?P<year>000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_DAY: Final = f"{_YEAR}-(?P<month>[0-9]{{2}})-(?P<day>[0-9]{{2}})"
_HOUR: Final = "(?P<hour>[01][0-9]|2[0-3])"
_FRACTION: Final = r"(?:\.(?P<fraction>[0-9]{1,6}))?"
_CLOCK: Final = rf"{_HOUR}:(?P<minute>[0-9]{{2}})(?::(?P<second>[0-9]{{2}}){_FRACTION})?"


def _zone(hours: str, separator: str = ":?") -> str:
    minutes = f"(?:{separator}(?P<zone_minute>[0-5][0-9]))"
    return rf"(?P<sign>[+-])(?P<zone_hour>{hours}){minutes}{'' if separator == ':' else '?'}"


_DUCKDB_NAMED: Final = r"^\s*[+-]?(?i:inf|epoch)"
_DUCKDB_DAY: Final = rf"[0-9][-/\\ ][0-9]|{_DUCKDB_NAMED}"
_DUCKDB_SPACED: Final = r"^\s.*[0-9]|[0-9]\s+$"  # valid at the end of a time, but not of a date
_DUCKDB_ZONE: Final = f"(?P<zone>Z|{_zone('0[0-9]|1[0-5]')})?"

_CALENDAR_DAY: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_BEGUN: Final = rf"^{_CALENDAR_DAY}[Tt ](?:[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}|[0-9]{{6}})"
_YEAR_ZERO: Final = "^0000-[0-9]{2}-[0-9]{2}$"
_WHOLE_SECOND: Final = r"(?P<second>[0-5][0-9])(?:\.(?P<fraction>[0-9]{1,6})0{0,6})?"
_DATAFUSION_ZONE: Final = f"(?P<zone>[Zz]| *{_zone('[01][0-9]|2[0-3]')})?"
_DATAFUSION_MOMENT: Final = (
    rf"^{_DAY}(?:[Tt ](?P<hour>[0-9]{{2}}):(?P<minute>[0-9]{{2}}):{_WHOLE_SECOND}"
    rf"{_DATAFUSION_ZONE})?$"
)
_DATAFUSION_TIMES: Final = TimeFormat(
    (_DATAFUSION_MOMENT,), f"{_BEGUN}|{_YEAR_ZERO}", last_us=NANOSECONDS
)

_TRINO_CLOCK: Final = (
    "(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})" + rf"(?::(?P<second>[0-9]{{1,2}}){_FRACTION})?"
)
_LIKE_A_TIME: Final = r"[0-9]|[^\x00-\x7f]"
_TRINO_ZONE: Final = f"(?P<zone> ?{_zone('0[0-9]|1[0-3]', ':')})"

FORMATS: Final[Mapping[TextReading, Mapping[LogicalType, TimeFormat]]] = {
    TextReading.DUCKDB: {
        Date(): TimeFormat((f"^{_DAY}$",), _DUCKDB_DAY, SPACE),
        Timestamp(): TimeFormat(
            (rf"^{_DAY}(?:[ T]{_CLOCK})?$",), f"{_DUCKDB_DAY}|{_DUCKDB_SPACED}"
        ),
        Timestamp(utc=True): TimeFormat(
            (rf"^{_DAY}(?:[ T]{_CLOCK}{_DUCKDB_ZONE})?$",),
            f"{_DUCKDB_DAY}|{_DUCKDB_SPACED}",
            in_session=True,
        ),
        Time(): TimeFormat((f"^{_CLOCK}$",), f"{_DUCKDB_DAY}|:|{_DUCKDB_SPACED}"),
    },
    TextReading.DATAFUSION: {
        Date(): TimeFormat(
            (
                _DATAFUSION_MOMENT,  # its day in UTC
                f"^{_YEAR}-(?P<month>[0-9]{{1,2}})-(?P<day>[0-9]{{1,2}})$",
                f"^{_YEAR}(?P<month>[0-9]{{2}})(?P<day>[0-9]{{2}})$",
            ),
            rf"{_BEGUN}|^0000(?:-[0-9]{{1,2}}-[0-9]{{1,2}}|[0-9]{{4}})$|^[+-][0-9]{{4,}}-",
        ),
        Timestamp(): _DATAFUSION_TIMES,  # an offset moves a local time to UTC, too
        Timestamp(utc=True): _DATAFUSION_TIMES,
        Time(): TimeFormat(
            (rf"^(?P<hour>[0-9]{{1,2}}):(?P<minute>[0-9]{{2}})(?::{_WHOLE_SECOND})?$",),
            "^[0-9]{1,2}:[0-9]{2}|^[+-]?[0-9]+$",
        ),
    },
    TextReading.TRINO: {
        Date(): TimeFormat((f"^{_DAY}$",), _LIKE_A_TIME, " ", rejects=False),
        Timestamp(): TimeFormat(
            (f"^{_DAY}(?: {_TRINO_CLOCK})?$",), _LIKE_A_TIME, " ", rejects=False
        ),
        Timestamp(utc=True): TimeFormat(
            (f"^{_DAY} {_TRINO_CLOCK}{_TRINO_ZONE}$",), _LIKE_A_TIME, " ", rejects=False
        ),
    },
}


def times_of(reading: TextReading) -> text_casts.Reader:
    """The reader of the formats of an engine."""

    def read(
        values: pa.Array, _: LogicalType, target: LogicalType, semantics: Semantics
    ) -> Computed:
        form = FORMATS[reading][target]
        text = text_casts.trimmed(values, form.trimmed) if form.trimmed else values
        micros, matched, good, bare = _parsed(text, form, has_day=not isinstance(target, Time))
        odd = ~(matched if form.rejects else good) & matches(text, form.unread)
        if form.last_us is not None:
            odd |= good & (np.abs(micros) > form.last_us)
        refuse(values, odd, target, reading)
        if form.in_session:
            micros, good = text_casts.in_session(micros, good, bare & good, semantics)
        if isinstance(target, Date):
            return text_casts.days_of(micros, good, values, target)
        return text_casts.moments(micros, good, values, target)

    return read


def _parsed(text: pa.Array, form: TimeFormat, *, has_day: bool) -> tuple[Micros, Mask, Mask, Mask]:
    """Microseconds in UTC; which texts are in a format, name a time, and have no offset."""
    micros = np.zeros(len(text), np.int64)
    matched, good, bare = (np.zeros(len(text), np.bool_) for _ in range(3))
    for pattern in form.patterns:
        parts = text_casts.with_parts(pc.extract_regex(text, pattern=pattern), _PARTS)
        here = ~null_mask(parts) & ~matched
        local, exists = (text_casts.local_micros if has_day else text_casts.clock_micros)(parts)
        offset, there = text_casts.offset_micros(parts, hours=24)
        micros = np.where(here, local - offset, micros)
        good = np.where(here, exists & there, good)
        bare |= here & as_mask(pc.equal(parts.field("zone"), ""))
        matched |= here
        if matched.all():
            break
    return micros, matched, good, bare
