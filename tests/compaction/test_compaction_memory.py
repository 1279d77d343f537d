"""The peak memory of a compaction, measured in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

import rowsieve as rs

ROWS = 1_000_000
WIDTH = 4  # columns of eight bytes
PART_BYTES = 2_000_000

CHILD = """
import sys, tracemalloc
import pyarrow as pa
import rowsieve as rs
from rowsieve.compaction import rewrite_passes

rewrite_passes.MEMORY_BYTES = int(sys.argv[2])
table = rs.open_table(sys.argv[1])
tracemalloc.start()
commit = table.compact()
held = tracemalloc.get_traced_memory()[1] + pa.default_memory_pool().max_memory()
print(commit.rows_written, commit.parts_added, held)
"""


def test_compaction_holds_its_budget_and_one_part_whatever_the_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)

    def rows(keys: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
        values = {f"v{i}": rng.integers(0, 2**62, len(keys)) for i in range(WIDTH - 1)}
        return pa.table({"k": keys, **values})

    table = rs.create_table(
        tmp_path / "t",
        rows(np.arange(ROWS)),
        key=["k"],
        properties={"target_part_bytes": PART_BYTES},
    )
    for _ in range(2):
        table.upsert(rows(rng.choice(ROWS, ROWS // 4, replace=False)))
    row_group = 65_536 * 8 * WIDTH
    command = [sys.executable, "-c", CHILD, table.uri, str(2 * row_group)]
    root = Path(rs.__file__).parents[1]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    written, parts, held = map(int, done.stdout.split())
    assert written == ROWS
    assert parts == 8
    assert held < 20 * row_group  # measured 15; inputs have 23, and outputs 16
