"""Bar: upserts of one row, in their log entry, compared with the same upserts as files.

Bytes and objects are those of the table's folder, checkpoints included.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, WrongAnswer

LEAST_BYTES_RATIO = 3
MOST_CPU_SHARE = 0.5
UPSERTS = 40
AROUND = 5  # upserts before the first measured one: imports and caches


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Upsert row by row into both tables in turn; compare the rows at the end."""
    tables = {
        "in the log": _table(folder / "inline", 16_384),
        "in files": _table(folder / "files", 0),
    }
    series = {name: Series(name) for name in tables}
    before = {}
    for turn in range(sizes.repeats + 1):
        for name, table in tables.items():
            count = UPSERTS if turn else AROUND
            with sampled() as sample:
                for i in range(count):
                    table.upsert(_row(turn * UPSERTS + i))
            if turn:
                series[name].samples.append(sample)
            else:
                before[name] = _stored(folder, table)
    if len({_shown(table) for table in tables.values()}) > 1:
        raise WrongAnswer("small changes: the two tables have different rows")
    return _bar(sizes, folder, tables, before, Case("small changes", [*series.values()]))


def _bar(
    sizes: Sizes,
    folder: Path,
    tables: dict[str, rs.Table],
    before: dict[str, tuple[int, int]],
    case: Case,
) -> Bar:
    commits = UPSERTS * sizes.repeats
    size: dict[str, float] = {}
    objects: dict[str, float] = {}
    for name, table in tables.items():
        after = _stored(folder, table)
        size[name] = (after[0] - before[name][0]) / commits
        objects[name] = (after[1] - before[name][1]) / commits
    fewer = size["in files"] / size["in the log"]
    ours, theirs = case.of("in the log").cpu_s(), case.of("in files").cpu_s()
    share = ours / theirs
    return Bar(
        name="small changes",
        promise=f"upserts of one row of 7 columns with inline_bytes: {LEAST_BYTES_RATIO}x fewer "
        f"bytes, and at most {MOST_CPU_SHARE:.0%} of the CPU",
        found=f"{size['in the log']:,.0f} bytes and {objects['in the log']:.2f} objects instead of "
        f"{size['in files']:,.0f} and {objects['in files']:.2f}, {fewer:.1f}x; CPU {share:.0%} of "
        f"{theirs / UPSERTS * 1000:.1f} ms",
        met=fewer >= LEAST_BYTES_RATIO and share <= MOST_CPU_SHARE,
        cases=[case],
    )


def _table(folder: Path, inline_bytes: int) -> rs.Table:
    properties = {"inline_bytes": inline_bytes}
    return rs.create_table(str(folder), _row(0), key=["id"], properties=properties)


def _row(i: int) -> pa.Table:
    return pa.table(
        {
            "id": [i],
            "carrier": ["AA"],
            "delay": [i * 1.5],
            "ts": pa.array([1_700_000_000_000_000 + i], pa.timestamp("us", "UTC")),
            "origin": ["JFK"],
            "dest": ["LAX"],
            "n": [i],
        }
    )


def _shown(table: rs.Table) -> str:
    return str(table.scan().to_arrow().sort_by("id").to_pylist())


def _stored(folder: Path, table: rs.Table) -> tuple[int, int]:
    """Bytes and files of a table."""
    root = folder / Path(table.uri).name
    files = [each.stat().st_size for each in root.rglob("*") if each.is_file()]
    return sum(files), len(files)
