"""Bar: import many Parquet files of another writer into a table, without copying their rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, expect

MOST_WALL_S = 10.0
ROWS_EACH = 10
PLAIN, KEYED, OPENED = "from_parquet", "from_parquet with a key", "open_parquet"


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Import the files, import them with a key, which reads it, and open them."""
    files = folder / "files"
    files.mkdir(parents=True)
    for number in range(sizes.files):
        pq.write_table(_rows(number), files / f"{number:06}.parquet")
    series = {name: Series(name) for name in (PLAIN, KEYED, OPENED)}
    for turn in range(sizes.long_repeats):
        for name, each in series.items():
            with sampled() as sample:
                table = _read(name, files, folder / f"{name} {turn}")
            each.samples.append(sample)
            expect(f"{name}: rows", table.count(), sizes.files * ROWS_EACH)
            last = (sizes.files - 1) * ROWS_EACH
            expect(f"{name}: one row", table.scan(f"id = {last}").to_arrow().num_rows, 1)
    return Bar(
        name="import of files",
        promise=f"{sizes.files:,} Parquet files imported in under {MOST_WALL_S:.0f} s, "
        "without a key and with one, whose column is read",
        found="; ".join(
            f"{each.system}: {each.wall_s():.1f} s ({each.cpu_s():.1f} s CPU)"
            for each in series.values()
        ),
        met=all(series[name].wall_s() < MOST_WALL_S for name in (PLAIN, KEYED)),
        cases=[Case("import of files", list(series.values()))],
        facts={"files": sizes.files, "rows each": ROWS_EACH},
    )


def _rows(number: int) -> pa.Table:
    first = number * ROWS_EACH
    return pa.table(
        {
            "id": range(first, first + ROWS_EACH),
            "place": [f"place {number % 97}"] * ROWS_EACH,
            "value": [number / 4] * ROWS_EACH,
            "at": pa.array([number] * ROWS_EACH, pa.timestamp("us")),
            "count": pa.array([number] * ROWS_EACH, pa.int32()),
        }
    )


def _read(name: str, files: Path, uri: Path) -> rs.Table:
    if name == OPENED:
        return rs.open_parquet(files)
    return rs.from_parquet(files, uri, key=["id"] if name == KEYED else None)
