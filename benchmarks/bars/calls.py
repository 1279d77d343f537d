"""Bar: the number of calls of our own functions in a first and a repeated scan of a small table.

`sys.setprofile` counts every call of a function of the package, and every resumption of a
generator, so the figures are stable. One table has two disjoint parts, the other two overlapping
parts.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.data import FILES
from benchmarks.result import Bar, expect

MOST_FIRST, MOST_AGAIN = 1_828, 674
WHERE = "id = 5 AND v < 30"
PACKAGE = str(Path(rs.__file__).parent)


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Calls of a first scan and of the same scan again, over two kinds of tables."""
    del sizes
    counts: dict[str, tuple[int, int, int]] = {}
    for name, second in (("disjoint", (100, 101)), ("overlapping", (5, 100))):
        table = rs.create_table(str(folder / name), _rows(range(10)), ["id"], properties=FILES)
        table.upsert(_rows(second))
        counts[name] = _scanned(table)
    first, again, _ = counts["disjoint"]
    return Bar(
        name="calls of a scan",
        promise=f"scanning a table of two parts by {WHERE!r}: at most {MOST_FIRST:,} calls of our "
        f"functions the first time, {MOST_AGAIN:,} the second",
        found="; ".join(
            f"{name}: first {one:,} calls in {files} files, again {two:,}"
            for name, (one, two, files) in counts.items()
        ),
        met=first <= MOST_FIRST and again <= MOST_AGAIN,
        facts={"calls": counts},
    )


def counted(work: Callable[[], Any]) -> tuple[Any, Counter[tuple[str, str]]]:
    """What the work gives, and the calls of our functions by file and name."""
    calls: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            calls[code.co_filename, code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return work(), calls
    finally:
        sys.setprofile(before)


def _scanned(table: rs.Table) -> tuple[int, int, int]:
    """(calls of a first scan, calls of the same scan again, files of the first)."""
    found = []
    for _ in range(2):
        rows, calls = counted(lambda: table.scan(WHERE).to_arrow().num_rows)
        expect(f"rows where {WHERE}", rows, 1)
        found.append(calls)
    first, again = found
    return first.total(), again.total(), len({file for file, _ in first})


def _rows(ids: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [float(id_) for id_ in ids]})
