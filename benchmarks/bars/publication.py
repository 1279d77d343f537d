"""Bar: publish a version after a commit of one row over many parts.

Objects are those that the publication creates; the hint to the newest metadata is replaced. A
replaced row needs two more than a new one: Iceberg has vectors in a file, and a manifest of these.
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
    series, objects = Series("publish"), {"new": 0, "replaced": 0}
    for turn in range(sizes.repeats):
        for kind, row in (("new", 10**9 + turn), ("replaced", turn)):
            table.upsert(_rows(row, 1))
            before = _objects(folder)
            with sampled() as sample:
                published = table.publish("iceberg")
            series.samples.append(sample)
            objects[kind] = max(objects[kind], _objects(folder) - before + 1)
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
        found=f"{cpu_ms:.0f} ms CPU, {objects['new']} objects for a new row, "
        f"{objects['replaced']} for a replaced one",
        met=cpu_ms <= MOST_CPU_MS and max(objects.values()) <= MOST_OBJECTS,
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
