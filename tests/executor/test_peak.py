"""The peak memory of a read, measured in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs

ROWS = 1_000_000
WIDTH = 4  # columns of eight bytes

CHILD = """
import sys
import pyarrow as pa
import rowsieve as rs

table = rs.open_table(sys.argv[1])
options = {} if sys.argv[3] == "-" else {"memory_bytes": int(sys.argv[3])}
where = "v0 <> 5" if sys.argv[2] == "filtered" else None
scan = table.scan(where, order_by_key=sys.argv[2] == "ordered", **options)
rows = sum(batch.num_rows for batch in scan.to_batches())
print(rows, pa.default_memory_pool().max_memory())
"""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A million rows, 32 MB decoded, and four upserts of random keys all over them."""
    rng = np.random.default_rng(4)

    def rows(keys: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
        values = {f"v{i}": rng.integers(0, 2**62, len(keys)) for i in range(WIDTH - 1)}
        return pa.table({"k": keys, **values})

    path = str(tmp_path_factory.mktemp("peak"))
    table = rs.create_table(path, rows(np.arange(ROWS)), key=["k"])
    for _ in range(4):
        table.upsert(rows(rng.choice(ROWS, ROWS // 8, replace=False)))
    return path


def peak(uri: str, order: str, memory: str) -> int:
    """The most bytes that Arrow held."""
    command = [sys.executable, "-c", CHILD, uri, order, memory]
    root = Path(rs.__file__).parents[1]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    rows, held = map(int, done.stdout.split())
    assert rows == ROWS
    return held


@pytest.mark.parametrize("order", ["ordered", "unordered", "filtered"])
def test_a_stream_holds_a_few_batches_whatever_the_table(uri: str, order: str) -> None:
    batch = 65_536 * 8 * WIDTH
    assert peak(uri, order, "-") < 18 * batch  # nine streams; all of it is 24 batches
    assert peak(uri, order, str(4 * batch)) < 12 * batch


def test_slices_of_row_groups_leave_no_stream_behind(uri: str) -> None:
    """Threads that read slices out of their order begin further streams of a row group."""
    table = rs.open_table(uri)
    scan = table.scan(memory_bytes=2 * 1024 * 1024, threads=4)
    before = pa.total_allocated_bytes()
    batches = scan.to_batches()
    most = 0
    for batch in batches:
        del batch
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 24 * 1024 * 1024  # all streams that a read began held 58 MB
