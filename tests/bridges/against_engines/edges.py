"""Values at the edges of each type, and tables of all pairs of them in columns `a` and `b`.

A table of one column also has values that are drawn at random.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from functools import cache
from typing import Any

import pyarrow as pa

from tests.bridges.against_engines.drawn_values import drawn_values

D = decimal.Decimal
_WHOLE = (None, 0, 1, -1, 7, 100, 2**53, 2**53 + 1, -(2**53) - 1, -(2**31), 2**31 - 1)
_FLOATS = (
    *(None, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 0.1, 1e15, 2.0**53, 1e300, -5e-324),
    *(float("nan"), float("inf"), float("-inf")),
)
_DAYS = (
    *(None, date(1, 1, 1), date(1899, 12, 31), date(1900, 1, 1), date(1969, 12, 31)),
    *(date(1970, 1, 1), date(2000, 2, 29), date(2013, 3, 10), date(2024, 12, 30)),
    *(date(2100, 3, 1), date(9999, 12, 31)),
)
_TIMES = (
    *(None, datetime(1, 1, 1), datetime(1899, 12, 31, 23, 59, 59, 999_999)),
    *(datetime(1900, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 500_000), datetime(1970, 1, 1)),
    *(datetime(2013, 3, 10, 2, 30), datetime(2013, 3, 10, 7), datetime(2013, 11, 3, 5, 30)),
    *(datetime(2000, 2, 29, 12), datetime(2024, 12, 30, 1, 2, 3, 4)),
    *(datetime(2100, 3, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)),
)
# Of the years -1, 0, -8 and 10000, which Python does not have.
_FAR_TIMES = (
    *(None, -62_198_755_200_000_000, -62_135_596_800_000_001, -62_404_041_600_000_000),
    253_402_300_800_000_000,
)
_TEXTS = (
    *(None, "", "a", "A", " a ", "abcabc", "Éa b", "a\u00a0", "\t", "0", "-1.5", "1e3", "true"),
    *("2013-03-10", "2013-03-10 02:30:00", "x" * 300, "日本"),
)
TYPES: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "bool": (pa.bool_(), (None, True, False)),
    "i8": (pa.int8(), (None, 0, 1, -1, 7, 127, -128)),
    "i16": (pa.int16(), (None, 0, 1, -1, 7, 2**15 - 1, -(2**15))),
    "i32": (pa.int32(), (None, 0, 1, -1, 7, 100, 2**24 + 1, 2**31 - 1, -(2**31))),
    "i64": (pa.int64(), (*_WHOLE, 2**63 - 1, -(2**63))),
    "u8": (pa.uint8(), (None, 0, 1, 7, 255)),
    "u16": (pa.uint16(), (None, 0, 1, 7, 2**16 - 1)),
    "u32": (pa.uint32(), (None, 0, 1, 7, 2**32 - 1)),
    "u64": (pa.uint64(), (None, 0, 1, 7, 2**53 + 1, 2**63, 2**64 - 1)),
    "f32": (pa.float32(), (*_FLOATS[:10], 3.4e38, *_FLOATS[-3:])),
    "f64": (pa.float64(), _FLOATS),
    "d10": (
        pa.decimal128(10, 2),
        [None, *map(D, ("0", "1", "-1", "2.50", "-2.55", "0.01", "3", "99999999.99"))],
    ),
    "d38": (
        pa.decimal128(38, 10),
        [None, *map(D, ("0", "1", "-2.5", "0.0000000001", "9007199254740993", "9" * 28))],
    ),
    "text": (pa.string(), _TEXTS),
    "date": (pa.date32(), _DAYS),
    "ts": (pa.timestamp("us"), _TIMES),
    "tz": (pa.timestamp("us", "UTC"), _TIMES),
    "time": (pa.time64("us"), (None, time(0), time(12, 30, 1, 500_000), time(23, 59, 59, 999_999))),
}

# Of the siblings alone, which have one column.
MORE_TYPES: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "era": (pa.timestamp("us"), _FAR_TIMES),
    "era_tz": (pa.timestamp("us", "UTC"), _FAR_TIMES),
    "wholes": (
        pa.list_(pa.int32()),
        (None, [], [1], [None], [1, 2, 3], [3, None, 1], [1, 1, 2, 2], [-1, 0, 2**31 - 1]),
    ),
    "texts": (
        pa.list_(pa.string()),
        (None, [], ["a"], [None], ["a", "b", "A"], ["", "a", None], ["b", "a"]),
    ),
    "floats": (
        pa.list_(pa.float64()),
        (None, [], [1.5], [None], [0.0, -0.0], [float("nan"), 1.0]),
    ),
    "bytes": (pa.binary(), (None, b"", b"a", b"\x00", b"\xff\xfe", b"abc", b"\xc3\xa9")),
}


def decoded(names: str) -> tuple[str, ...]:
    """The names of types in a case's name, such as `i64,f64`."""
    return tuple(names.split(",")) if names else ()


@cache
def rows(names: tuple[str, ...]) -> pa.Table:
    """All combinations of the values of these types, in columns `a`, `b`."""
    if not names:
        return pa.table({"a": pa.array([1], pa.int64())})
    first, values = (MORE_TYPES if names[0] in MORE_TYPES else TYPES)[names[0]]
    if len(names) == 1:
        edges, drawn = pa.array(values, first), pa.array(drawn_values(names[0]), first)
        return pa.table({"a": pa.chunked_array([edges, drawn])}).combine_chunks()
    second, others = TYPES[names[1]]
    pairs = [(one, other) for one in values for other in others]
    return pa.table(
        {
            "a": pa.array([one for one, _ in pairs], first),
            "b": pa.array([other for _, other in pairs], second),
        }
    )
