"""Bar: opening a foreign file of many row groups and columns, compared with its metadata alone.

The bar's peer is `pq.read_metadata`, for the open alone and with the first read. The same query by
`pq.read_table`, which parses the metadata as well, is printed beside it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Work, take_turns
from benchmarks.result import Bar, Case, expect
from rowsieve.byte_cache import PROCESS
from rowsieve.planner.cache import PLANS

MOST_TIMES = 5.0  # of the CPU of pq.read_metadata
SHAPES = ((20, 50), (20, 200), (200, 50), (200, 200))  # row groups, columns
GROUP_ROWS = 10


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Open files, and read two columns by a condition that their statistics answer."""
    cases: list[Case] = []
    ratios: list[str] = []
    met = True
    for groups, columns in SHAPES[: sizes.repeats]:  # a test of the harness takes the small ones
        for index in (False, True):
            path = _write(folder, groups, columns, index=index)
            works: dict[str, Work] = {
                "pyarrow": partial(_metadata, path),
                "pyarrow read": partial(_read_by_pyarrow, path),
                "opened": partial(_opened, path),
                "opened and read": partial(_read, path),
            }
            for name, expected in zip(works, (columns, 0, columns, 0), strict=True):
                expect(name, works[name](), expected)
            shape = f"{groups} x {columns}{' with page index' if index else ''}"
            case = Case(shape, take_turns(works, sizes.repeats))
            ours, both = (_least(case, each) for each in ("opened", "opened and read"))
            peer = _least(case, "pyarrow")
            same = both / _least(case, "pyarrow read")
            ratios.append(f"{shape}: {ours / peer:.1f} and {both / peer:.1f} ({same:.1f})")
            met = met and both <= MOST_TIMES * peer
            cases.append(case)
    return Bar(
        name="footers",
        promise=f"a foreign file is opened, and two of its columns are read, in {MOST_TIMES:.0f} "
        "times the CPU of pq.read_metadata; in brackets that of the same query by pq.read_table",
        found="; ".join(ratios),
        met=met,
        cases=cases,
    )


def _write(folder: Path, groups: int, columns: int, *, index: bool) -> str:
    count = groups * GROUP_ROWS
    values = np.arange(count, dtype=np.int64)
    rows = pa.table({f"c{place}": values + place for place in range(columns)})
    path = folder / f"{groups}-{columns}-{index}.parquet"
    pq.write_table(rows, path, row_group_size=GROUP_ROWS, write_page_index=index)
    return str(path)


def _least(case: Case, name: str) -> float:
    """The least CPU seconds: these works take milliseconds, and the machine may be busy."""
    return min(each.cpu_s for each in case.of(name).samples)


def _metadata(path: str) -> int:
    return int(pq.read_metadata(path).num_columns)


def _read_by_pyarrow(path: str) -> int:
    rows = pq.read_table(path, columns=["c0", "c1"], filters=pc.field("c1") < 0, use_threads=False)
    return int(rows.num_rows)


def _opened(path: str) -> int:
    return len(_fresh(path).schema)


def _fresh(path: str) -> rs.Table:
    for cache in PROCESS.caches:
        cache.clear()
    PLANS.clear()
    return rs.open_parquet(path)


def _read(path: str) -> int:
    scan = _fresh(path).scan("c1 < 0", columns=["c0", "c1"])
    return int(scan.to_arrow().num_rows)
