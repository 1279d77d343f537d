"""Parquet files with times in INT96 of any day, which pyarrow cannot write."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

EPOCH: Final = 2_440_588  # the Julian day of 1970-01-01
AT: Final = pa.timestamp("us")
SHAPES: Final[dict[str, tuple[pa.DataType, Any]]] = {
    "flat": (AT, lambda time: time),
    "struct": (pa.struct([("at", AT), ("n", pa.int64())]), lambda time: {"at": time, "n": 1}),
    "list": (pa.list_(AT), lambda time: [time]),
    "map": (pa.map_(pa.string(), AT), lambda time: [("k", time)]),
    "list of structs": (pa.list_(pa.struct([("at", AT)])), lambda time: [{"at": time}]),
}
"""Columns with one time in each value: the type, and a value of it."""

Time = tuple[int, int]
"""Days since 1970-01-01, and nanoseconds within the day."""


def write_times(path: Path, times: Sequence[Time | None], shape: str = "flat") -> None:
    """Write the columns `n`, from 0 on, and `c`, with these times; None is a NULL in the value."""
    type_, value = SHAPES[shape]
    marks = [None if time is None else i + 1 for i, time in enumerate(times)]
    rows = pa.table({"n": range(len(times)), "c": pa.array([value(mark) for mark in marks], type_)})
    pq.write_table(
        rows, path, use_deprecated_int96_timestamps=True, use_dictionary=False, compression="none",
        store_schema=False,
    )  # fmt: skip
    data = path.read_bytes()
    stored = [_bytes_of(0, mark * 1_000) for mark in marks if mark is not None]
    if not stored:
        return
    assert data.count(b"".join(stored)) == 1
    wanted = b"".join(_bytes_of(*time) for time in times if time is not None)
    path.write_bytes(data.replace(b"".join(stored), wanted))


def _bytes_of(day: int, nanoseconds: int) -> bytes:
    return struct.pack("<qi", nanoseconds, day + EPOCH)
