"""Random ranges of columns, one for each part, and rows between their ends.

Interior values and NULLs are among the rows.
"""

from __future__ import annotations

import decimal
import functools
import math
import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.literal_values import int_range
from rowsieve.types.encodings import arrow_type
from rowsieve.types.interval_bytes import encoded
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Field,
    Float,
    Int,
    Interval,
    Json,
    List,
    LogicalType,
    Map,
    Nanos,
    Numeric,
    String,
    Time,
    Timestamp,
    Uuid,
    is_ordered,
)
from rowsieve.types.schema import Schema
from tests.strategies import DAY_US, arrow_array

D = decimal.Decimal
_MOMENTS = (
    "2023-12-31 23:00",
    "2024-01-01",
    "2024-01-30 23:00",
    "2024-01-31 01:00",
    "2024-02-28 12:00",
    "2024-02-29 00:00",
    "2024-03-01",
    "2024-03-30 10:00",
    "2024-03-31",
    "1969-12-31 23:59:59.999999",
    "1970-01-01",
    "2000-02-29 00:00:00.5",
    "1900-03-01",
    "2024-12-29",
)
ZONE_EDGES = (  # of ZONES, as instants or as local times
    "1883-11-18 17:00:00",  # New York: to standard time
    "2011-12-30 09:59:59.999999",  # Apia: skips a day
    "2011-12-30 10:00",
    "2011-12-30 12:00",
    "2018-11-04 00:30",  # Sao Paulo: no midnight
    "2018-11-04 03:00",
    "2019-02-17 02:00",  # and the hour before it twice
    "2024-03-10 02:30",  # New York: no such time
    "2024-03-10 07:00",
    "2024-11-03 01:30",  # twice
    "2024-11-03 05:30",
    "2024-11-03 06:00",
    "2024-04-06 15:00",  # Lord Howe: half an hour
    "2024-04-07 01:45",
    "2024-10-06 02:15",
    "2150-07-01 04:00",
)
_WORDS = ("", " ", "a", "a b", "aB", "ab", "abA", "abc", "ac", "b", "B", "ba", "é", "éa", "z", "Σ")
_SPELT = ("0", "-1", "10", "9", "1.5", "2013-01-05", "2013-01-06", "10:30", "10:31", "t", "f")
_UUIDS = ("0" * 32, "0" * 31 + "1")
_RARE = ("\x7f", "\ud7ff", "\ue000", "\U0010ffff", "a\U0010ffff", "\U0010ffffb")


@functools.cache
def pool(type_: LogicalType) -> list[Any]:
    """Awkward values of a type, in order where it has one; every caller gets the same list."""
    match type_:
        case Bool():
            return [False, True]
        case Int():
            low, high = int_range(type_)
            near = [n for n in (-7, -3, -2, -1, 0, 1, 2, 3, 7, 9, 10, 11, 99, 100, 127) if n >= low]
            return sorted({*near, low, low + 1, high - 1, high} & set(_span(low, high, near)))
        case Float(bits=bits):
            big = 1e300 if bits == 64 else 3e38
            finite = [-big, -2.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 7.0, big]
            return [-math.inf, *finite, math.inf, math.nan]
        case Decimal(precision=precision, scale=scale):
            top = 10**precision - 1
            points = [-top, -250, -100, -50, -1, 0, 1, 49, 50, 99, 100, 150, 200, 300, 995, top]
            with decimal.localcontext(prec=60):
                return [D(point).scaleb(-scale) for point in points]
        case String():
            return sorted((*_WORDS, *_SPELT, *_UUIDS, *_RARE), key=str.encode)
        case Binary():
            shapes = (b"\1\1\0\0\0" + struct.pack("<dd", x, -x) for x in (1.0, -2.5, 2.0))
            return sorted([b"", b"\x00", *shapes, b"a", b"ab", b"\xff"])
        case Date():
            return sorted({_micros(text) // DAY_US for text in _MOMENTS} | {-(2**31), 2**31 - 1})
        case Time():
            return [0, 1, 37_800_000_000, 37_800_500_000, 37_859_999_999, DAY_US - 1]
        case Timestamp():
            edges = {*map(_micros, _MOMENTS), *map(_micros, ZONE_EDGES)}
            return sorted({*edges, -(2**63), 2**63 - 1})
        case Nanos():
            moments = {*map(_micros, _MOMENTS), *map(_micros, ZONE_EDGES)}
            fine = {1_000 * moment + rest for moment in moments for rest in (-1, 0, 500)}
            fine |= {end + step for end in (-(2**63), 2**63 - 1) for step in (-1, 0, 1)}
            return sorted(n for n in fine if -(2**63) <= n < 2**63)
        case Uuid():
            return [bytes(16), b"\x01" * 16, b"a" * 16, b"\xab" * 16, b"\xff" * 16]
        case Interval():
            ends = (-(2**31), -1, 0, 1, 2**31 - 1)
            return [encoded(part, -part // 2, part * 2**31) for part in ends]
        case Numeric():
            return ["-Infinity", "-1e400", "-0.5", "0", "0.1", "9" * 40, "1e400", "NaN"]
        case Json():
            return ['{"a": 1}', '{"a": [2]}', "[]", "{", '{"a": null}']
        case List():
            return [[], [1], [None, 2], [1, 2, 3]]
        case Map():
            return [[], [("a", 1)], [("a", None), ("b", 2)]]
    raise AssertionError(type_)


def _span(low: int, high: int, near: list[int]) -> set[int]:
    return {n for n in (*near, low, low + 1, high - 1, high) if low <= n <= high}


def _micros(text: str) -> int:
    return int(np.datetime64(text.replace(" ", "T"), "us").astype(np.int64))


def between(low: Any, high: Any, rng: random.Random, type_: LogicalType) -> Any:
    """A value of the range that is likely no end of it."""
    match type_:
        case Int() | Date() | Time() | Timestamp() | Nanos():
            near = rng.choice([low + rng.randint(0, 40), high - rng.randint(0, 40)])
            return near if low <= near <= high else rng.randint(low, high)
        case Decimal(scale=scale):
            with decimal.localcontext(prec=60):
                ends = [int(end.scaleb(scale)) for end in (low, high)]
                return D(rng.randint(*ends)).scaleb(-scale)
        case Float(bits=bits) if math.isfinite(low) and math.isfinite(high):
            value = low / 2 + high / 2 if abs(high) > 1e30 else rng.uniform(low, high)
            narrow = float(np.float32(value)) if bits == 32 else value
            return narrow if low <= narrow <= high else low
        case String():
            longer = low + rng.choice(["\0", "a", "B", "é", "\U0010ffff"])
            return longer if longer.encode() <= high.encode() else low
        case _:
            return low


@dataclass(frozen=True)
class Parts:
    """Rows of several parts in one batch, and what is known of each part."""

    batch: pa.RecordBatch
    part_of_row: Any
    known: dict[str, AbstractColumn]

    @property
    def part_count(self) -> int:
        return int(self.part_of_row[-1]) + 1

    def column(self, column: ir.BoundColumn) -> AbstractColumn | None:
        return self.known.get(column.name)


def schema_of(columns: Mapping[str, LogicalType]) -> Schema:
    """A schema of these columns."""
    fields = (Field(i, name, type_) for i, (name, type_) in enumerate(columns.items(), 1))
    return Schema(0, tuple(fields))


def draw_parts(
    columns: Mapping[str, LogicalType],
    rng: random.Random,
    part_count: int,
    *,
    nans: random.Random | None = None,
    texts: Sequence[str] = (),
) -> Parts:
    """Ranges of these columns, and rows within them; with `nans`, floats of NaN alone, too.

    `texts`: what columns of text draw from, in order, instead of the pool of all.
    """
    rows_per_part = 5
    arrays, known = {}, {}
    for name, type_ in columns.items():
        values, lowers, uppers, nulls, with_nan, empties = [], [], [], [], [], []
        all_nan = []
        for _ in range(part_count):
            cells, low, high = _cells(type_, rng, rows_per_part, texts)
            only_nan = isinstance(type_, Float) and nans is not None and nans.random() < 0.1
            if only_nan:
                cells = [None if cell is None else math.nan for cell in cells]
            all_nan.append(only_nan)
            values += cells
            present = [cell for cell in cells if cell is not None]
            with_nan.append(any(isinstance(cell, float) and math.isnan(cell) for cell in present))
            lowers.append(low if rng.random() > 0.1 else None)
            uppers.append(high if rng.random() > 0.1 else None)
            nulls.append(len(present) < len(cells) or rng.random() < 0.1)
            empties.append(not present)
        arrays[name] = arrow_array(values, type_)
        storage = arrow_type(type_)
        bounds = (
            [arrow_array(lowers, type_), arrow_array(uppers, type_)]
            if is_ordered(type_)
            else [pa.nulls(part_count, storage)] * 2
        )
        known[name] = AbstractColumn(
            *(bounds[0], bounds[1], np.array(empties), np.array(nulls), np.array(with_nan)),
            all_nan=np.array(all_nan),
        )
    batch = pa.record_batch(arrays)
    return Parts(batch, np.repeat(np.arange(part_count), rows_per_part), known)


def _cells(
    type_: LogicalType, rng: random.Random, count: int, texts: Sequence[str]
) -> tuple[list[Any], Any, Any]:
    """Cells of one part and the ends of a range that holds those that are not NaN."""
    everything = texts if texts and type_ == String() else pool(type_)
    if not is_ordered(type_):
        return [None if rng.random() < 0.2 else rng.choice(everything) for _ in range(count)], 0, 0
    ordered = [
        value for value in everything if not (isinstance(value, float) and math.isnan(value))
    ]
    first = rng.randrange(len(ordered))
    last = min(len(ordered) - 1, first + rng.choice([0, 1, 1, 2, 4, len(ordered)]))
    low, high = ordered[first], ordered[last]
    nullable = rng.random() < 0.4
    cells: list[Any] = []
    for place in range(count):
        if nullable and rng.random() < 0.4:
            cells.append(None)
        elif isinstance(type_, Float) and nullable and rng.random() < 0.3:
            cells.append(math.nan)
        elif place < 2:
            cells.append(low if place else high)
        elif rng.random() < 0.5:
            cells.append(rng.choice(ordered[first : last + 1]))
        else:
            cells.append(between(low, high, rng, type_))
    return cells, low, high
