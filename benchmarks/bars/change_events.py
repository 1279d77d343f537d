"""Bar: applying events of Debezium, compared with a loop over them in Python."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, expect

LEAST_PER_SECOND = 250_000
LEAST_RATIO = 5
OURS, LOOP = "apply_events", "a Python loop"
SCHEMA = pa.schema(
    [("id", pa.int64()), ("owner", pa.string()), ("cents", pa.int64()), ("at", pa.timestamp("us"))]
)
_EVENT = (
    '{"before":null,"after":{"id":%d,"owner":"owner-%d","cents":%d,"at":%d},"source":{"lsn":%d,'
    '"ts_ms":1800000000000,"schema":"bank","table":"accounts"},"op":"%s","ts_ms":1800000000007}'
)
_DELETE = (
    '{"before":{"id":%d,"owner":"owner-%d","cents":%d,"at":%d},"after":null,"source":{"lsn":%d,'
    '"ts_ms":1800000000000,"schema":"bank","table":"accounts"},"op":"%s","ts_ms":1800000000007}'
)


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Apply the same events by both; each commits once, to a table of its own in each round."""
    count = sizes.expression_rows
    values = events(count)
    length = sum(map(len, values)) / count
    column = pa.table({"value": pa.array(values, pa.binary())})
    series = {name: Series(name) for name in (OURS, LOOP)}
    for turn in range(min(sizes.repeats, 3) + 1):
        tables = {
            name: rs.create_table(str(folder / f"{place}-{turn}"), SCHEMA, key=["id"])
            for place, name in enumerate(series)
        }
        gc.collect()  # the loop's free lists scatter new objects over the heap: 1.5x for either
        with sampled() as ours:
            tables[OURS].apply_events(column, format="debezium", times="us")
        gc.collect()
        with sampled() as loop:
            _by_row(tables[LOOP], values)
        expect(
            "change events: rows", _rows(tables[OURS]).equals(_rows(tables[LOOP])), expected=True
        )
        if turn:
            series[OURS].samples.append(ours)
            series[LOOP].samples.append(loop)
    case = Case("events", list(series.values()))
    wall_s, cpu_s = case.of(OURS).wall_s(), case.of(OURS).cpu_s()
    ratio = case.of(LOOP).cpu_s() / cpu_s
    return Bar(
        name="change events",
        promise=f"{count:,} events of Debezium as JSON, {length:.0f} bytes each: at least "
        f"{LEAST_PER_SECOND:,} a second, and {LEAST_RATIO}x less CPU than a loop in one thread",
        found=f"{count / wall_s:,.0f} a second, {count / cpu_s:,.0f} a second of CPU; the loop "
        f"{case.of(LOOP).cpu_s():.2f} s CPU, {ratio:.1f}x",
        met=count / wall_s >= LEAST_PER_SECOND and ratio >= LEAST_RATIO,
        cases=[case],
        facts={"events_per_second": count / wall_s, "ratio": ratio},
    )


def events(count: int) -> list[bytes]:
    """Events of a third as many accounts; one in ten deletes its account."""
    drawn = np.random.default_rng(5)
    ids = drawn.integers(0, max(1, count // 3), count).tolist()
    deletes = (drawn.random(count) < 0.1).tolist()
    texts = []
    for at, (id_, gone) in enumerate(zip(ids, deletes, strict=True)):
        row = (id_, id_, at % 99_991, 1_800_000_000_000_000 + at, 9_000_000 + at)
        texts.append((_DELETE % (*row, "d") if gone else _EVENT % (*row, "u")).encode())
    return texts


def _by_row(table: rs.Table, values: list[bytes]) -> None:
    newest: dict[int, tuple[int, dict[str, Any] | None]] = {}
    for value in values:
        event = json.loads(value)
        row, lsn = event["after"], event["source"]["lsn"]
        key = (event["before"] if row is None else row)["id"]
        if key not in newest or newest[key][0] < lsn:
            newest[key] = lsn, row
    rows = [row for _, row in newest.values() if row is not None]
    data = pa.Table.from_pylist(rows, pa.schema([*list(SCHEMA)[:3], ("at", pa.int64())]))
    table.upsert(data.set_column(3, "at", data.column("at").cast(pa.timestamp("us"))))


def _rows(table: rs.Table) -> pa.Table:
    return table.scan(order_by_key=True).to_arrow().combine_chunks()
