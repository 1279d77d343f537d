"""Bar: after thousands of upserts of one row, maintain leaves what the rows need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.data import FILES
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, expect

MAX_FILES = 20
MOST_RATIO = 1.3
MOST_CPU_S = 10.0
MAX_PARTS = 1.2  # that a read of one key looks at
READS = 100
BASE_ROWS = 20  # per upsert


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Upsert one row again and again, maintain; compare with the same rows written once."""
    rows = _rows(np.arange(sizes.one_row_upserts * BASE_ROWS))
    table = rs.create_table(str(folder / "table"), rows, key=["id"], properties=FILES)
    changed = np.random.default_rng(1).permutation(rows.num_rows)[: sizes.one_row_upserts]
    for key in changed.tolist():
        table.upsert(_rows(np.array([key]), value=1))
    before = _usage(folder / "table")
    with sampled() as sample:
        table.maintain(retain_last=1)
    found = rs.open_table(table.uri)
    expect("rows", found.count(), rows.num_rows)
    expect("changed rows", found.count("value = 1"), len(changed))
    whole = found.scan(order_by_key=True).to_arrow()
    rs.create_table(str(folder / "fresh"), whole, key=["id"], properties=FILES)
    after, once = _usage(folder / "table"), _usage(folder / "fresh")
    ratio = after[1] / once[1]
    looked_at = _parts_of_a_key(found, changed[:: max(1, len(changed) // READS)])
    return Bar(
        name="retention",
        promise=f"{rows.num_rows:,} rows and {len(changed):,} upserts of one row: maintain "
        f"leaves at most {MAX_FILES} files and {MOST_RATIO} times the bytes of a table "
        f"written once, in under {MOST_CPU_S:.0f} s of CPU, and a read of one key looks at at most "
        f"{MAX_PARTS} parts",
        found=f"{_shown(before)} -> {_shown(after)}; written once {_shown(once)}: {ratio:.2f}x; "
        f"{sample.cpu_s:.1f} s CPU; {looked_at:.2f} parts",
        met=after[0] <= MAX_FILES
        and ratio <= MOST_RATIO
        and sample.cpu_s < MOST_CPU_S
        and looked_at <= MAX_PARTS,
        cases=[Case("maintain", [Series("rowsieve", samples=[sample])])],
        facts={
            "before": before,
            "after": after,
            "written once": once,
            "ratio": ratio,
            "parts of a key": looked_at,
        },
    )


def _parts_of_a_key(table: rs.Table, keys: np.typing.NDArray[np.int64]) -> float:
    """The parts that a read of one key looks at, on average."""
    found = [table.scan(f"id = {key}").explain().parts_read for key in keys.tolist()]
    return sum(found) / len(found)


def _rows(keys: np.typing.NDArray[np.int64], value: int = 0) -> pa.Table:
    names = [f"name {key}" for key in keys.tolist()]
    return pa.table({"id": keys, "name": names, "value": np.full(len(keys), value)})


def _usage(folder: Path) -> tuple[int, int]:
    """Return the number of files and their bytes."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def _shown(usage: tuple[int, int]) -> str:
    return f"{usage[0]:,} files, {usage[1]:,} bytes"
