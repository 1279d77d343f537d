"""Files of several writers with damaged footers and page headers, read in a process of their own.

`python -m tests.foreign.mutated_files COUNT [FIRST]` reads so many and prints what went wrong.
A file must be read, or refused with an error of ours; whatever else happens is a fault: another
error, a stopped process, or memory out of proportion.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import rowsieve as rs
from rowsieve.errors import RowsieveError
from rowsieve.parquet.thrift import MalformedThrift, raw_fields, read_list_head
from tests import processes

MAX_BYTES = 1_500_000_000
"""What the process may allocate beyond its start: more is an error there."""

ROWS = pa.table(
    {
        "i": pa.array([5, None, 3, 7, 2, 9], pa.int64()),
        "s": ["a", "b", None, "a long text of more than sixteen bytes", "é", "a"],
        "d": pa.array([Decimal(1), None, Decimal(-2), Decimal(3), Decimal(0), Decimal(9)]).cast(
            pa.decimal128(20, 2)
        ),
    }
)
NESTED = pa.table(
    {
        "l": pa.array([[1, 2], None, [], [3]], pa.list_(pa.int32())),
        "r": [{"x": 1, "y": "u"}, None, {"x": None, "y": "v"}, {"x": 4, "y": None}],
        "m": pa.array([[("k", 1.5)], [], None, [("l", None)]], pa.map_(pa.string(), pa.float64())),
    }
)
TIMES = pa.table(
    {
        "t": pa.array([1, None, 3], pa.timestamp("us")),
        "b": [True, None, False],
        "f": pa.array([1.5, float("nan"), None], pa.float32()),
        "x": pa.array([b"ab", b"cd", None], pa.binary(2)),
    }
)
BASES: Sequence[tuple[pa.Table, dict[str, Any]]] = (
    (ROWS, {"row_group_size": 3, "write_page_index": True, "compression": "none"}),
    (ROWS, {"data_page_version": "2.0", "bloom_filter_options": {"s": {"ndv": 9, "fpp": 0.1}}}),
    (ROWS, {"use_dictionary": False, "compression": "zstd", "row_group_size": 2}),
    (ROWS, {"use_dictionary": False, "data_page_size": 1, "write_batch_size": 1}),
    (NESTED, {"compression": "snappy"}),
    (NESTED, {"data_page_version": "2.0", "use_dictionary": False, "compression": "none"}),
    (TIMES, {"use_deprecated_int96_timestamps": True, "compression": "none"}),
    (TIMES, {"compression": "gzip", "write_page_checksum": True}),
)


def base_files(folder: Path) -> list[bytes]:
    """The whole files that are damaged."""
    path = folder / "base.parquet"
    found = []
    for rows, options in BASES:
        pq.write_table(rows, path, **options)
        found.append(path.read_bytes())
    query = "SELECT i AS i, 'v' || i % 3 AS s, i * 1.5 AS f FROM range(50) r(i)"
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return [*found, path.read_bytes()]


def mutated(files: Sequence[bytes], seed: int) -> bytes:
    """A damaged file: its footer, or in every third one the headers of its pages."""
    chance = random.Random(seed)
    data = chance.choice(files)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    body, footer = data[:start], data[start:-8]
    if seed % 3 == 0:
        places = [place for place in _page_headers(body) if place < len(body)]
        at = chance.choice(places) if places else 4
        body = body[:at] + _damaged(body[at : at + 24], chance, keep_length=True) + body[at + 24 :]
    elif seed % 3 == 1:
        footer = _damaged(footer, chance)
    else:
        footer = _with_another_value(footer, chance)
    return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _page_headers(body: bytes) -> Iterator[int]:
    """Where page headers lie: each begins with its type, a small number of 32 bits."""
    at = body.find(b"\x15", 4)
    while at >= 0:
        if body[at + 1 : at + 2] in (b"\0", b"\4", b"\6") and body[at + 2 : at + 3] == b"\x15":
            yield at
        at = body.find(b"\x15", at + 1)


def _damaged(data: bytes, chance: random.Random, *, keep_length: bool = False) -> bytes:
    """Change, remove or repeat some bytes."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(max(1, len(found)))
        kind = 0 if keep_length or len(found) < 9 else chance.randrange(5)
        if kind <= 1 and found:
            found[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        elif kind == 2:
            found[at] ^= 1 << chance.randrange(8)
        elif kind == 3:
            del found[at : at + chance.randint(1, 8)]
        else:
            found[at:at] = found[at : at + chance.randint(1, 8)]
    return bytes(found)


def _with_another_value(footer: bytes, chance: random.Random) -> bytes:
    """Replace the value of a field by another of its kind, at any depth."""
    fields = list(_all_fields(footer, 0))
    start, stop, kind = chance.choice(fields)
    if kind in (4, 5, 6):
        value = bytes(chance.choice((b"\0", b"\1", b"\2", b"\x0e", b"\xff\xff\xff\xff\x0f",
                      b"\xff" * 9 + b"\x01", bytes([chance.randrange(128)]))))  # fmt: skip
    elif kind == 8:
        text = chance.choice((b"", b"\0", b"\xff" * 9, footer[start + 1 : stop][::-1]))[:100]
        value = bytes([len(text)]) + text
    else:
        value = _damaged(footer[start:stop], chance)
    return footer[:start] + value + footer[stop:]


def _all_fields(data: bytes, position: int) -> Iterator[tuple[int, int, int]]:
    try:
        fields, _ = raw_fields(data, position)
        for _, kind, start, stop in fields:
            yield start, stop, kind
            if kind == 12:
                yield from _all_fields(data, start)
            elif kind == 9 and data[start] & 15 == 12:
                count, at = read_list_head(data, start)
                for _ in range(count):
                    yield from _all_fields(data, at)
                    at = raw_fields(data, at)[1]
    except MalformedThrift:
        return


def read(path: Path) -> str:
    """What became of a file: read, or the name of our error; another error is raised."""
    try:
        table = rs.open_parquet(path)
        name = table.schema.names[0]
        table.scan(f'"{name}" IS NOT NULL').to_arrow()
    except RowsieveError as error:
        if path.name not in str(error):
            return f"{type(error).__name__} without the name of the file"
        return type(error).__name__
    return "read"


def read_many(first: int, count: int, folder: str) -> None:
    """Read damaged files; `at` has the number of the last, `report` a line for each fault."""
    place = Path(folder)
    files, path = base_files(place), place / "damaged.parquet"
    limit = _data_bytes() + MAX_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    found: Counter[str] = Counter()
    with (place / "report").open("a") as report:
        for seed in range(first, first + count):
            (place / "at").write_text(str(seed))
            path.write_bytes(mutated(files, seed))
            try:
                found[read(path)] += 1
            except BaseException as error:  # each is a fault
                report.write(f"{seed}: {type(error).__name__}: {str(error)[:200]!r}\n")
                report.flush()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        (place / "counts").write_text(f"{dict(found)}, {memory // 1024} MB")


def _data_bytes() -> int:
    """The memory that this process has for data, which is more than it uses."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmData")))


def faults(first: int, count: int, folder: Path, told: Callable[[str], object] = str) -> list[str]:
    """Read damaged files in processes; returns what was neither read nor refused by us."""
    stop, stopped = first + count, []
    (folder / "report").write_text("")
    while first < stop:
        process = processes.start(read_many, first, stop - first, str(folder))
        process.join()
        if not process.exitcode:
            told((folder / "counts").read_text())
            break
        at = int((folder / "at").read_text())
        stopped.append(f"{at}: the process ended with {process.exitcode}")
        first = at + 1
    return [*stopped, *(folder / "report").read_text().splitlines()]


if __name__ == "__main__":
    number, begin = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as temporary:
        for line in faults(begin, number, Path(temporary), sys.stdout.write):
            sys.stdout.write(f"{line}\n")
