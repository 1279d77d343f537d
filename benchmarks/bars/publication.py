"""Bar: publish a version after a commit of one row over many parts.

Objects are those that the publication creates; the hint to the newest metadata is replaced.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, WrongAnswer

MOST_CPU_MS = 150.0
MOST_OBJECTS = 4
ROWS = 10  # of a part


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Insert or replace one row and publish, by turns; compare the rows at the end."""
    table = _table(folder / "published", sizes.published_parts)
    table.publish("iceberg")
    series, objects = Series("publish"), 0
    new = range(10**9, 10**9 + sizes.repeats)
    for row in (row for pair in zip(new, range(sizes.repeats), strict=True) for row in pair):
        table.upsert(_rows(row, 1))
        before = _objects(folder)
        with sampled() as sample:
            published = table.publish("iceberg")
        series.samples.append(sample)
        objects = max(objects, _objects(folder) - before + 1)
    if rs.open_table(table.uri).count() != sizes.published_parts * ROWS + sizes.repeats:
        raise WrongAnswer("publication: rows are missing")
    if published.version != table.version:
        raise WrongAnswer("publication: another version was published")
    case = Case("publication", [series])
    cpu_ms = case.of("publish").cpu_s() * 1000
    return Bar(
        name="publication",
        promise=f"Iceberg metadata after a commit of one row over {sizes.published_parts:,} parts: "
        f"{MOST_CPU_MS:.0f} ms CPU, {MOST_OBJECTS} objects",
        found=f"{cpu_ms:.0f} ms CPU, {objects} objects",
        met=cpu_ms <= MOST_CPU_MS and objects <= MOST_OBJECTS,
        cases=[case],
    )


def _table(folder: Path, parts: int) -> rs.Table:
    properties = {"target_part_bytes": 1}
    table = rs.create_table(str(folder), _rows(0, ROWS), key=["id"], properties=properties)
    for part in range(1, parts):
        table.upsert(_rows(part * ROWS, ROWS))
    return table


def _rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table({"id": ids, "place": ["JFK"] * count, "delay": [i * 1.5 for i in ids]})


def _objects(folder: Path) -> int:
    return sum(each.is_file() for each in folder.rglob("*"))
