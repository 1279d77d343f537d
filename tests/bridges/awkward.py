"""Awkward rows of every column of `tests.strategies.SCHEMA`, by a seed."""

from __future__ import annotations

import decimal
import math
import random
from typing import Any

import pyarrow as pa

from rowsieve.types.encodings import arrow_type
from tests.strategies import COLUMN_TYPES, DAY_US, PAIR, arrow_array

D = decimal.Decimal
_DAYS = (-719_162, -25_567, -1, 0, 1, 15_706, 15_765, 19_782)
_TEXTS = ("", "a", "ab", "abc", "b", "B", "Ab%", "a_c", "é", "\ud7ff", "\ue000", "\U0010ffff", "\n")
POOLS: dict[str, tuple[Any, ...]] = {
    "b": (True, False),
    "i8": (0, 1, -1, 7, 127, -128),
    "i32": (0, 1, -1, 7, 100, 2**31 - 1, -(2**31)),
    "i64": (0, 1, -7, 100, 2**53 + 1, 2**63 - 1, -(2**63)),
    "u8": (0, 1, 7, 254, 255),
    "u64": (0, 1, 7, 2**63, 2**64 - 1),
    "f32": (0.0, -0.0, 1.0, 1.5, -2.5, 0.1, 3e38, math.nan, math.inf, -math.inf),
    "f64": (0.0, -0.0, 1.0, 1.5, -2.5, 0.1, 1e300, math.nan, math.inf, -math.inf),
    "d": (D("0.00"), D("1.50"), D("-2.50"), D("7.00"), D("9999.99"), D("-9999.99")),
    "wide": (D("1.5"), D("0"), D("-1e-10"), D("9" * 28)),
    "s": _TEXTS,
    "t": ("0", "7", " -12 ", "007", "2.5", "nan", "true", "2013-01-01", "2013-02-30"),
    "bin": (b"", b"\x00", b"a", b"ab", b"\xff", b"\xff\xff"),
    "day": (*_DAYS, 2_932_896),
    "time": (0, 1, 37_800_000_000, DAY_US - 1),
    "ts": tuple(day * DAY_US + off for day in _DAYS[1:] for off in (0, 1, 37_800_000_000)),
    "tz": tuple(day * DAY_US + off for day in _DAYS[1:] for off in (0, -1, 37_800_500_000)),
    "uid": (bytes(16), b"\x01" * 16, b"a" * 16, b"\xff" * 16),
}


def rows(seed: int, row_count: int) -> pa.RecordBatch:
    """The rows; about one cell in eight is NULL."""
    chosen = random.Random(seed)

    def cells(pool: tuple[Any, ...]) -> list[Any]:
        return [None if chosen.random() < 0.12 else chosen.choice(pool) for _ in range(row_count)]

    columns = {name: arrow_array(cells(POOLS[name]), type_) for name, type_ in COLUMN_TYPES.items()}
    pairs = tuple({"x": x, "y": y} for x in (None, -1, 0, 2) for y in (None, "", "a"))
    columns["pair"] = pa.array(cells(pairs), arrow_type(PAIR))
    return pa.record_batch(columns)
