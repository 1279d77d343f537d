"""Casts of texts of dates and local times outside the years 1 to 9999, by the rules of each engine.

DuckDB reads `10000-01-01`, `-0043-03-15` and `0044-03-15 (BC) 10:20`, PostgreSQL `10000-01-01` and
`0044-03-15 10:20 BC`, DataFusion the dates `+10000-01-01` and `-0043-03-15`. Soundness: a text has
the engine's value, has none, or raises `UnreadText`: local times at the ends of the 64-bit range
do.
Source: DuckDB 2.0, PostgreSQL 18, DataFusion 55, compared by
`tests/predicate/functions/test_engine_texts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, Mask, as_mask, null_mask, without
from rowsieve.predicate.functions.casting.spark_times import LAST_KNOWN_DAY, Numbers, days_of_parts
from rowsieve.predicate.functions.casting.text_casts import (
    Reader,
    checked,
    clock_micros,
    with_parts,
)
from rowsieve.predicate.functions.casting.text_shapes import matches, refuse
from rowsieve.predicate.semantics import Semantics, TextReading
from rowsieve.types.days import DAY_US
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, LogicalType, Timestamp

_CLOCK: Final = (
    r"(?:[ T](?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-5][0-9])(?:\.(?P<fraction>[0-9]{1,6}))?)?)?"
)
_DAY: Final = "-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_PARTS: Final = ("sign", "year", "month", "day", "era", "hour", "minute", "second", "fraction")


@dataclass(frozen=True, slots=True)
class _TextForm:
    """The far texts of an engine; `first` and `last` bound the days that the engine has."""

    date: str
    time: str | None
    far: str  # occurs in each far text of these forms, and in no near one
    first: int
    last: int
    bounded: bool = True  # other days have no value; otherwise they are not known


_FORMS: Final[Mapping[TextReading, _TextForm]] = {
    TextReading.DUCKDB: _TextForm(
        rf"^(?P<sign>-?)(?P<year>[0-9]{{4,6}}){_DAY}(?P<era> \((?i:bc)\))?$",
        rf"^(?P<sign>-?)(?P<year>[0-9]{{4,6}}){_DAY}(?P<era> \((?i:bc)\))?{_CLOCK}$",
        r"^-|^[0-9]{5}|^0000|\)",
        *(-(2**31) + 2, 2**31 - 2),
    ),
    TextReading.POSTGRES: _TextForm(
        rf"^(?P<year>[0-9]{{4}}|[1-9][0-9]{{4,6}}){_DAY}(?P<era> (?i:bc))?$",
        rf"^(?P<year>[0-9]{{4}}|[1-9][0-9]{{4,6}}){_DAY}{_CLOCK}(?P<era> (?i:bc))?$",
        r"^[0-9]{5}|(?i:bc)$",
        *(-2_440_588, 2_145_042_905),
    ),
    TextReading.DATAFUSION: _TextForm(
        rf"^(?P<sign>[+-])(?P<year>[0-9]{{4,6}}){_DAY}$",
        None,
        "",
        *(-96_465_292, 95_026_236),
        bounded=False,
    ),
}


def with_far_years(near: Reader, reading: TextReading) -> Reader:
    """Extend `near` by the far texts of an engine."""
    form = _FORMS[reading]

    def read(
        values: pa.Array, source: LogicalType, target: LogicalType, semantics: Semantics
    ) -> Computed:
        pattern = form.date if isinstance(target, Date) else form.time
        if pattern is None or (isinstance(target, Timestamp) and target.utc):
            return near(values, source, target, semantics)
        far = matches(values, pattern) & matches(values, form.far)
        if not far.any():
            return near(values, source, target, semantics)
        parsed = near(without(values, far), source, target, semantics)
        others = _read(values.filter(pa.array(far)), pattern, form, target, reading)
        failed = np.zeros(len(values), np.bool_) if parsed.failed is None else parsed.failed.copy()
        failed[far] = False if others.failed is None else others.failed
        merged = pc.replace_with_mask(parsed.values, pa.array(far), others.values)
        return Computed(merged, failed if failed.any() else None)

    return read


def far_constant(text: str, type_: LogicalType, reading: TextReading) -> int | None:
    """Return the day or the microseconds of a constant far text; None of any other text."""
    form = _FORMS.get(reading)
    pattern = None if form is None else form.date if isinstance(type_, Date) else form.time
    if form is None or pattern is None or type_ not in (Date(), Timestamp()):
        return None
    texts = pa.array([text], pa.string())
    if not (matches(texts, pattern) & matches(texts, form.far)).any():
        return None
    parsed = _read(texts, pattern, form, type_, reading)
    storage = pa.int32() if isinstance(type_, Date) else pa.int64()
    value: int | None = parsed.values.view(storage)[0].as_py()
    return value


def _read(
    texts: pa.Array, pattern: str, form: _TextForm, target: LogicalType, reading: TextReading
) -> Computed:
    parts = with_parts(pc.extract_regex(texts, pattern=pattern), _PARTS)
    days, good = _days(parts)
    within = (days >= form.first) & (days <= form.last)
    if not form.bounded:
        refuse(texts, good & ~within, target, reading)
    good &= within
    if isinstance(target, Date):
        array = pa.array(np.where(good, days, 0).astype(np.int32)).view(arrow_type(target))
        return checked(array, good, null_mask(texts))
    clock, there = clock_micros(parts)
    good &= there
    refuse(texts, good & (np.abs(days) > LAST_KNOWN_DAY), target, reading)
    micros = pa.array(np.where(good, days * DAY_US + clock, 0)).view(arrow_type(target))
    return checked(micros, good, null_mask(texts))


def _days(parts: pa.Array) -> tuple[Numbers, Mask]:
    """Return days since 1970 of matched dates, and the mask of those that exist."""
    before = as_mask(pc.not_equal(parts.field("era"), ""))
    year = np.asarray(parts.field("year").cast(pa.int64()))
    good = ~before | ((year > 0) & as_mask(pc.equal(parts.field("sign"), "")))
    counted = pa.array(np.where(before, np.maximum(year, 1) - 1, year)).cast(pa.string())
    signs = pc.if_else(pa.array(before), "-", parts.field("sign"))
    names = ("sign", "year", "month", "day")
    columns = [signs, counted, parts.field("month"), parts.field("day")]
    days, there = days_of_parts(pa.StructArray.from_arrays(columns, names))
    return days, good & there
