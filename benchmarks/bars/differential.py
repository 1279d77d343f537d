"""Bar: a read of a differential table at a time, of which half of the updates cancel.

Compared with DuckDB's GROUP BY over the same files, and with decoding the files alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import take_turns
from benchmarks.result import Bar, Case, WrongAnswer

LEAST_RATIO = 5
LEAST_SHARE = 0.5
COMMITS = 4
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("carrier", pa.string()),
        pa.field("delay", pa.int32()),
        pa.field("price", pa.float64()),
    ]
)


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Read the sums in turn with DuckDB and the decoder; each returns the number of its rows."""
    import duckdb

    table, at = _table(folder / "updates", sizes.collected)
    files = [str(path) for path in sorted((folder / "updates" / "data").glob("*.parquet"))]
    session = duckdb.connect()
    query = (
        f"SELECT id, carrier, delay, price, sum(_rowsieve_diff) FROM read_parquet({files}) "
        f"WHERE _rowsieve_time <= {at} GROUP BY ALL HAVING sum(_rowsieve_diff) <> 0"
    )
    works: dict[str, Callable[[], object]] = {
        "rowsieve": lambda: sum(b.num_rows for b in table.scan(at=at, threads=1).to_batches()),
        "DuckDB": lambda: session.sql(query).to_arrow_table().num_rows,
        "decoding": partial(_decode, files),
    }
    expected = sizes.collected // 2
    for name in ("rowsieve", "DuckDB"):
        if (count := works[name]()) != expected:
            raise WrongAnswer(f"differential: {name} has {count} rows instead of {expected}")
    case = Case("differential", take_turns(works, sizes.repeats))
    ours, theirs, limit = (case.of(name).cpu_s() for name in works)
    return Bar(
        name="differential",
        promise=f"sums of {sizes.collected:,} updates, half of which cancel: {LEAST_RATIO}x "
        f"DuckDB's GROUP BY of the same files (CPU), {LEAST_SHARE} of the speed of decoding",
        found=f"{ours:.2f} s, {theirs / ours:.1f}x, and {limit / ours:.2f} of decoding",
        met=theirs / ours >= LEAST_RATIO and limit / ours >= LEAST_SHARE,
        cases=[case],
    )


def _decode(files: list[str]) -> int:
    return sum(pq.read_table(file, use_threads=False).num_rows for file in files)


def _table(folder: Path, updates: int) -> tuple[rs.Table, int]:
    """Three quarters of the updates add a row, one quarter removes a third of these again."""
    table = rs.create_table(str(folder), SCHEMA, mode="differential")
    added = np.arange(updates - updates // 4)
    removed = np.sort(np.random.default_rng(7).permutation(added)[: updates // 4])
    time = 0
    for ids, difference in ((added, 1), (removed, -1)):
        for part in np.array_split(ids, COMMITS):
            table.append_updates(_rows(part, time, difference), upper=time + 1)
            time += 1
    return table, time - 1


def _rows(ids: np.ndarray[tuple[int], np.dtype[np.int64]], time: int, difference: int) -> pa.Table:
    mixed = (ids * 2_654_435_761) % 2**31
    carriers = pa.array([f"C{i:02d}" for i in range(40)])
    return pa.table(
        {
            "id": ids,
            "carrier": carriers.take(pa.array(mixed % 40)),
            "delay": (mixed % 300).astype(np.int32),
            "price": (mixed % 100_000) / 100,
            "time": np.full(len(ids), time, dtype=np.uint64),
            "diff": np.full(len(ids), difference, dtype=np.int64),
        }
    )
