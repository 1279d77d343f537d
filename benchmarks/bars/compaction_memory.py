"""Bar: a compaction in a fresh process grows memory by the same small amount at any size.

`python -m benchmarks.bars.compaction_memory TABLE` compacts one table and prints the growth of the
process's peak resident memory in bytes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import sampled
from benchmarks.result import Bar, expect

MOST_GROWTH_BYTES = 256 * 2**20
STEP = 10  # between the two sizes
COMMITS = 12
NO_DATA = -1


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Compact overlapping parts of two tables, one with ten times the rows of the other."""
    growth = {
        rows: _growth(folder / str(rows), rows)
        for rows in (sizes.compacted_rows // STEP, sizes.compacted_rows)
    }
    return Bar(
        name="memory of a compaction",
        promise=f"compacting {sizes.compacted_rows:,} rows of {COMMITS} commits that overlap one "
        f"more: resident memory of a fresh process grows by less than "
        f"{MOST_GROWTH_BYTES // 2**20} MB",
        found="; ".join(f"{rows:,} rows {size / 2**20:.0f} MB" for rows, size in growth.items()),
        met=max(growth.values()) < MOST_GROWTH_BYTES if NO_DATA not in growth.values() else None,
        facts={"growth_bytes": {str(rows): size for rows, size in growth.items()}},
    )


def _growth(folder: Path, rows: int) -> int:
    """Write a table and compact it in a process of its own; -1 if the system does not tell."""
    table = rs.create_table(str(folder), data.rows(1).schema, key=[data.KEY])
    for keys in np.array_split(np.arange(rows, dtype=np.int64) * 2, COMMITS):
        table.upsert(data.rows_of(keys, seed=int(keys[0])))
    table.upsert(data.changes(rows, max(1, rows // 100), seed=1))
    command = [sys.executable, "-m", "benchmarks.bars.compaction_memory", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    expect("rows", rs.open_table(str(folder)).count(), rows)
    return int(done.stdout)


def main() -> None:
    """Compact the table that the command line names."""
    table = rs.open_table(sys.argv[1])
    with sampled() as sample:
        table.compact()
    print(NO_DATA if sample.growth_bytes is None else sample.growth_bytes)


if __name__ == "__main__":
    main()
