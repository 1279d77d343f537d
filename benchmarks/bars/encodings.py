"""Bars: what rows of a codec cost beside columns, to write, to keep and to read.

The rows have a key, a time, a text of a thousand values, one of many, and numbers. All reads return
the same rows, which is checked first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import take_turns
from benchmarks.result import Bar, Case, WrongAnswer
from rowsieve.encodings.file_encoding import ReadEncoding

MOST_BYTES = 1.6
MOST_CPU = 1.5
MOST_SHADOW = 1.3
LEAST_DECODE = 5
CODECS = ("msgpack", "json", "avro")
FORMS = ("columns", "both")
READS: tuple[ReadEncoding, ...] = ("columns", "codec", "shadow")


def measure(sizes: Sizes, folder: Path) -> list[Bar]:
    """Write and read rows of each codec, in turns with columns."""
    rows = _rows(sizes.changed * 10)
    return [bar for codec in CODECS for bar in _bars(codec, rows, sizes.repeats, folder / codec)]


def _bars(codec: str, rows: pa.Table, repeats: int, folder: Path) -> list[Bar]:
    numbers = iter(range(1 << 30))
    writes: dict[str, Callable[[], object]] = {
        form: partial(_create, folder, numbers, rows, codec, form) for form in FORMS
    }
    written = Case(f"{codec}: write", take_turns(writes, repeats))
    tables = {form: _create(folder, numbers, rows, codec, form) for form in FORMS}
    columns, both = (tables[form].detail()["size_bytes"] for form in FORMS)
    table = tables["both"]
    reads: dict[str, Callable[[], object]] = {read: partial(_read, table, read) for read in READS}
    for read in READS:
        answer = _answer(table, read).cast(rows.schema)
        if reads[read]() != rows.num_rows or not answer.equals(rows):
            raise WrongAnswer(f"encodings: {read} of {codec} returns other rows")
    read_case = Case(f"{codec}: read", take_turns(reads, repeats))
    plain_s, both_s = (written.of(form).cpu_s() for form in FORMS)
    decode_s, codec_s, shadow_s = (read_case.of(read).cpu_s() for read in READS)
    growth, cost = both / columns, both_s / plain_s
    ratio, share = codec_s / decode_s, shadow_s / max(codec_s, decode_s)
    return [
        Bar(
            name=f"encodings: {codec}, write",
            promise=f"both forms of {rows.num_rows:,} rows: at most {MOST_BYTES} times the bytes "
            f"and {MOST_CPU} times the CPU of columns",
            found=f"{growth:.2f} times the bytes, {cost:.2f} times the CPU",
            met=growth <= MOST_BYTES and cost <= MOST_CPU,
            cases=[written],
        ),
        Bar(
            name=f"encodings: {codec}, read",
            promise=f"columns decode {LEAST_DECODE} times as fast as the codec, and a shadow read "
            f"takes at most {MOST_SHADOW} times the slower of the two (CPU)",
            found=f"{ratio:.1f} times, and {share:.2f} times the slower",
            met=ratio >= LEAST_DECODE and share <= MOST_SHADOW,
            cases=[read_case],
        ),
    ]


def _create(
    folder: Path, numbers: Iterator[int], rows: pa.Table, codec: str, form: str
) -> rs.Table:
    place = folder / f"{form}-{next(numbers)}"
    properties = {"row_codec": codec, "write_encoding": form}
    return rs.create_table(str(place), rows, key=["id"], properties=properties)


def _read(table: rs.Table, read: ReadEncoding) -> int:
    scan = table.scan(read_encoding=read, threads=1)
    return sum(batch.num_rows for batch in scan.to_batches())


def _answer(table: rs.Table, read: ReadEncoding) -> pa.Table:
    scan = table.scan(read_encoding=read, order_by_key=True)
    return scan.to_arrow()


def _rows(count: int) -> pa.Table:
    draws = np.random.default_rng(1)
    cities = np.array([f"city {n}" for n in range(1_000)])
    started = 1_700_000_000_000_000 + np.cumsum(draws.integers(0, 10**6, count))
    return pa.table(
        {
            "id": np.arange(count),
            "at": pa.array(started, pa.timestamp("us", "UTC")),
            "city": cities[draws.integers(0, 1_000, count)],
            "n": draws.integers(0, 10_000, count),
            "price": np.round(draws.random(count) * 1_000, 2),
            "user": np.char.add("user-", draws.integers(0, 10**9, count).astype(str)),
            "flag": draws.random(count) < 0.5,
        }
    )
