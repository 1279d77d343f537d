"""Bars: pruning a million parts by their statistics, and the cost of statistics for a write."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree

import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Work, take_turns
from benchmarks.result import Bar, Case, expect
from rowsieve.bridges.sql import parse_predicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.stats.columnar import PartStatistics
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.logical import Decimal, Field, Float, Int, String, Timestamp
from rowsieve.types.schema import Schema

TWO_WALL_S, TEN_WALL_S = 0.100, 0.500
MAX_SHARE = 0.10
MOST_PER_PATH = 2.0
ROWS_PER_PART = 1_000

TWO = "id = 5000 and ts >= timestamptz '2024-01-01 00:00:00Z'"
TEN = (
    f"{TWO} and s > 'user1' and x < 1.5 and d >= 0 and i < 500 and i is not null and "
    "date_trunc('day', ts) < timestamptz '2044-01-01 00:00:00Z' and id + 1 < 100000 and "
    "cast(ts as date) > date '2023-01-01'"
)
CALENDAR = {
    "month and day": "extract(month FROM ts) = 1 AND extract(day FROM ts) = 1",
    "a month later": "ts + INTERVAL '1 month' < timestamptz '2024-02-02 00:00:00Z'",
}
CALENDAR_WALL_S = 0.250
_PARTS_PER_DAY = 86_400  # a part spans a second
SCHEMA = Schema(
    0,
    (
        Field(1, "id", Int(), nullable=False),
        Field(2, "ts", Timestamp(utc=True)),
        Field(3, "s", String()),
        Field(4, "x", Float()),
        Field(5, "d", Decimal(10, 2)),
        Field(6, "i", Int(32)),
    ),
)


def planning(sizes: Sizes, _: Path) -> list[Bar]:
    """Compute verdicts over all parts, with statistics as a manifest stores them."""
    manifest = _manifest(sizes.parts)
    works = {"two": _judge(TWO, manifest), "ten": _judge(TEN, manifest)}
    for name, work in works.items():
        expect(f"parts kept by {name} conjuncts", work(), 1)
    case = Case("verdicts", take_turns(works, sizes.repeats))
    bars = []
    for name, most in (("two", TWO_WALL_S), ("ten", TEN_WALL_S)):
        series = case.of(name)
        bars.append(
            Bar(
                name=f"verdicts by {name} conjuncts",
                promise=f"over {sizes.parts:,} parts in under {most * 1000:.0f} ms",
                found=f"{series.wall_s() * 1000:.0f} ms, {series.cpu_s() * 1000:.0f} ms CPU",
                met=series.wall_s() < most,
                cases=[case] if name == "two" else [],
            )
        )
    return [*bars, *_calendar(manifest, sizes)]


def _calendar(manifest: PartTable, sizes: Sizes) -> list[Bar]:
    """Fields and months of the bounds of every part."""
    works = {name: _judge(text, manifest) for name, text in CALENDAR.items()}
    for name, work in works.items():
        expect(f"parts kept by {name}", work(), min(sizes.parts, _PARTS_PER_DAY))
    case = Case("verdicts by the calendar", take_turns(works, sizes.repeats))
    bars = []
    for name in works:
        wall_s, cpu_s = case.of(name).wall_s(), case.of(name).cpu_s()
        bars.append(
            Bar(
                name=f"verdicts by {name}",
                promise=f"over {sizes.parts:,} parts in under {CALENDAR_WALL_S * 1000:.0f} ms",
                found=f"{wall_s * 1000:.0f} ms, {cpu_s * 1000:.0f} ms CPU",
                met=wall_s < CALENDAR_WALL_S,
                cases=[],
            )
        )
    return bars


def collecting(sizes: Sizes, folder: Path) -> list[Bar]:
    """Create a table with statistics, without them, and with a JSON path."""
    rows = data.rows(sizes.collected)
    documents = _documents(sizes.collected // 4)
    works = {
        "off": _create(folder / "off", rows, {"statistics": "off"}),
        "on": _create(folder / "on", rows, {}),
        "JSON": _create(folder / "json", documents, {}),
        "JSON with a path": _create(folder / "path", documents, {"json_statistics": "payload.k"}),
    }
    for work in works.values():
        work()
    case = Case("collecting", take_turns(works, sizes.repeats))
    cpu = {name: case.of(name).cpu_s() for name in works}
    share = cpu["on"] / cpu["off"] - 1
    path = cpu["JSON with a path"] / cpu["JSON"] - 1
    return [
        Bar(
            name="statistics of a write",
            promise=f"under {MAX_SHARE:.0%} of the CPU of writing {rows.num_rows:,} rows",
            found=f"{share:.1%}",
            met=share < MAX_SHARE,
            cases=[case],
        ),
        Bar(
            name="statistics of a path in JSON",
            promise=f"at most {MOST_PER_PATH:.0f} times the CPU of writing "
            f"{documents.num_rows:,} short documents",
            found=f"{path:.1f} times",
            met=path <= MOST_PER_PATH,
            cases=[],
        ),
    ]


def _judge(text: str, manifest: PartTable) -> Work:
    predicate = bind(parse_predicate(text), SCHEMA)

    def judge() -> int:
        verdicts = interpret(predicate, PartStatistics(manifest, SCHEMA))
        return int(np.count_nonzero(verdicts != Verdict.NONE))

    return judge


def _manifest(count: int) -> PartTable:
    first = np.arange(count, dtype=np.int64) * ROWS_PER_PART
    last = first + ROWS_PER_PART - 1
    instant = pa.timestamp("us", tz="UTC")
    start = 1_704_067_200_000_000  # 2024-01-01
    random = np.random.default_rng(0).random(count)
    texts = pa.array([f"user{i:09d}" for i in range(1_000_000_000, 1_000_000_000 + count)])
    small = pa.array(first % 1_000 // 10, pa.int32())
    cents = small.cast(pa.decimal128(10, 0)).cast(pa.decimal128(12, 2)).cast(pa.decimal128(10, 2))
    bounds: dict[int, tuple[pa.Array, pa.Array]] = {
        1: (pa.array(first), pa.array(last)),
        2: (
            pa.array(start + first * 1000).view(instant),
            pa.array(start + last * 1000).view(instant),
        ),
        3: (texts, texts),
        4: (pa.array(random), pa.array(random + 0.5)),
        5: (cents, cents),
        6: (small, small),
    }
    nothing = pa.array(np.zeros(count, dtype=np.int64))
    columns = {"data.rows": pa.array(np.full(count, ROWS_PER_PART)), "deletes.rows": nothing}
    for field_id, (lower, upper) in bounds.items():
        columns[f"stats.{field_id}.null_count"] = nothing
        columns[f"stats.{field_id}.lower"] = lower
        columns[f"stats.{field_id}.upper"] = upper
    columns["stats.4.nan_count"] = nothing
    columns["key.1.lower"] = first
    return PartTable(pa.table(columns))


def _documents(count: int) -> pa.Table:
    payload = pa.field("payload", pa.string(), metadata={b"ARROW:extension:name": b"arrow.json"})
    texts = [
        json.dumps({"kind": "view", "user": {"id": i, "name": f"u{i}"}, "k": i * 2, "price": i / 7})
        for i in range(count)
    ]
    schema = pa.schema([pa.field(data.KEY, pa.int64()), payload])
    return pa.table([np.arange(count), texts], schema=schema)


def _create(folder: Path, rows: pa.Table, properties: dict[str, str]) -> Work:
    def create() -> int:
        rmtree(folder, ignore_errors=True)
        return rs.create_table(str(folder), rows, key=[data.KEY], properties=properties).version

    return create
