"""Bar: opens a checkpoint of a million parts and plans a scan with conditions on two columns.

The table has a log and a checkpoint, but no data files, because nothing here reads them. A fresh
process makes each plan, so its memory is that of opening and planning.
"""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.isolate import in_own_process, write_result
from benchmarks.measure import Sample, Series, sampled
from benchmarks.result import Bar, Case, expect
from rowsieve.objects import open_store
from rowsieve.stats.subjects import describe
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.log.checkpoint import write_checkpoint
from rowsieve.storage.log.commit_log import CommitLog, CommitRequest
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.manifest_layout import FORMAT_VERSION
from rowsieve.storage.snapshot import TableInfo
from rowsieve.types.logical import Date, Decimal, Field, Float, Int, String, Timestamp
from rowsieve.types.schema import Schema

MOST_WALL_S = 1.0
MOST_GROWTH_BYTES = 500_000_000
ROWS_PER_PART = 1_000
SCHEMA = Schema(
    0,
    (
        Field(1, "id", Int(), nullable=False),
        Field(2, "ts", Timestamp(utc=True)),
        Field(3, "s", String()),
        Field(4, "x", Float()),
        Field(5, "d", Decimal(10, 2)),
        Field(6, "i", Int(32)),
        Field(7, "day", Date()),
        Field(8, "t", String()),
    ),
)
QUESTIONS = {
    "key and time": "id >= 5000 and id < 7000 and ts >= timestamptz '2024-01-01 00:00:00Z'",
    "time and a random number": "ts >= timestamptz '2024-01-01 00:00:00Z' and x < 0.00001",
    "two texts": "s > 'user1' and t < '0001'",
}


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Plan each condition in fresh processes; the slowest and the largest count."""
    uri = str(folder / "table")
    started = time.perf_counter()
    size_bytes = table_of_parts(uri, sizes.parts)
    made_s = time.perf_counter() - started
    series = [_asked(name, uri, where, sizes.long_repeats) for name, where in QUESTIONS.items()]
    _commit(uri)
    name, where = list(QUESTIONS.items())[1]
    series.append(_asked(f"{name}, a commit later", uri, where, sizes.long_repeats))
    walls = [each.wall_s() for each in series]
    growths = [each.growth_bytes() or 0 for each in series]
    found = "; ".join(
        f"{each.system}: {each.wall_s():.2f} s, {each.cpu_s():.2f} s CPU, "
        f"{growth / 1e6:,.0f} MB, {(each.bytes_read() or 0) / 1e6:,.1f} MB read"
        for each, growth in zip(series, growths, strict=True)
    )
    return Bar(
        name="checkpoint",
        promise=f"a checkpoint of {sizes.parts:,} parts ({size_bytes / 1e6:,.0f} MB): opened and "
        f"planned by two of {len(SCHEMA.fields)} columns in under {MOST_WALL_S:.0f} s and "
        f"{MOST_GROWTH_BYTES / 1e6:.0f} MB",
        found=found,
        met=max(walls) < MOST_WALL_S and max(growths) < MOST_GROWTH_BYTES,
        cases=[Case("checkpoint", series)],
        facts={"size_bytes": size_bytes, "made_s": made_s},
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Open and plan once, in a process that does nothing else."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bars.checkpoint")
    parser.add_argument("uri")
    parser.add_argument("where")
    parser.add_argument("--write", type=Path, required=True)
    options = parser.parse_args(arguments)
    with sampled() as sample:
        plan = rs.open_table(options.uri).scan(where=options.where).plan()
    left = sum(len(piece.parts) for split in plan.splits for piece in split.pieces)
    pruned = sum(group.parts for group in plan.pruned)
    expect("few parts are left", left < 10 + pruned / 1000, expected=True)
    write_result(sample, options.write)


def _asked(name: str, uri: str, where: str, repeats: int) -> Series:
    """Open and plan repeatedly, each time in a fresh process."""
    module = "benchmarks.bars.checkpoint"
    runs = [in_own_process(module, [uri, where], Sample) for _ in range(repeats)]
    return Series(name, note=where, samples=runs)


def _commit(uri: str) -> None:
    """Replace one part, in a commit after the checkpoint."""
    log = CommitLog(open_store(uri))
    head = log.latest()
    count = len(head.parts)
    part = _parts(1, np.random.default_rng(1)).table
    for name in ("commit_ts_min", "commit_ts_max"):
        place = part.column_names.index(name)
        part = part.set_column(place, part.schema.field(place), pa.nulls(1, pa.int64()))
    removed = head.parts.column("part_id")[count // 2].as_py()
    request = CommitRequest("compact", PartTable(part), (removed,), rows_written=ROWS_PER_PART)
    _, changed = log.commit(request, head, lambda _head, _entries: request)
    expect("parts after the commit", len(changed.parts), count)


def table_of_parts(uri: str, count: int) -> int:
    """Create a table of this many parts with a checkpoint; returns the size of the checkpoint."""
    store = open_store(uri)
    info = TableInfo(uuid=uuid.uuid4().hex, key=("id",), mode="upsert")
    snapshot = CommitLog(store).create(
        info, SCHEMA, len(SCHEMA.fields) + 1, lambda: _parts(count, np.random.default_rng(0))
    )
    write_checkpoint(store, snapshot)
    return sum(map(store.size, store.list("_rowsieve/checkpoints")))


def _parts(count: int, random: np.random.Generator) -> PartTable:
    """Parts of rising keys and times; one text rises too, the other columns are random."""
    ids = _hexes(random, count)
    nothing = pa.array(np.zeros(count, dtype=np.int64))
    sizes = random.integers(20_000, 90_000, count)
    known: dict[str, pa.Array] = {
        "part_id": ids,
        "base_version": nothing,
        "schema_id": nothing.cast(pa.int32()),
        "format_version": pa.array(np.full(count, FORMAT_VERSION, dtype=np.int32)),
        "native_safe": pa.array(np.ones(count, dtype=np.bool_)),
        "commit_ts_min": nothing,
        "commit_ts_max": nothing,
        "data.path": pc.binary_join_element_wise("data/", ids, ".0.parquet", ""),
        "data.rows": pa.array(np.full(count, ROWS_PER_PART)),
        "data.size_bytes": pa.array(sizes),
        "data.checksum": pc.binary_join_element_wise("xxh3_128:", _hexes(random, count), ""),
        "data.tail_start": pa.array(sizes // 2),
        "data.tail_checksum": pc.binary_join_element_wise("xxh3_128:", _hexes(random, count), ""),
        "deletes.rows": nothing,
    }
    first = np.arange(count, dtype=np.int64) * ROWS_PER_PART
    last = first + ROWS_PER_PART - 1
    known["key.1.lower"], known["key.1.upper"] = pa.array(first), pa.array(last)
    for described in describe(SCHEMA):
        for fact, type_ in described.facts:
            name = statistics_name(described.subject, fact)
            if fact in ("lower", "upper"):
                assert isinstance(described.subject, int)
                edge = last if fact == "upper" else first
                known[name] = _bounds(described.subject, edge, fact, random).cast(type_)
            else:
                known[name] = (
                    nothing.cast(type_)
                    if type_ == pa.int64()
                    else pa.array(np.ones(count, dtype=np.bool_))
                )
    empty = PartTable.empty().table.schema
    columns = {
        name: known.pop(name, pa.nulls(count, type_))
        for name, type_ in zip(empty.names, empty.types, strict=True)
    }
    return PartTable(pa.table({**columns, **known}))


def _bounds(
    field_id: int, edge: npt.NDArray[np.int64], fact: str, random: np.random.Generator
) -> pa.Array:
    count, above = len(edge), 1 if fact == "upper" else 0
    match field_id:
        case 1:
            return pa.array(edge)
        case 2:
            return pa.array(1_704_067_200_000_000 + edge * 1000)  # from 2024-01-01 on
        case 3:
            return pc.binary_join_element_wise("user", pa.array(edge + 10**9).cast("string"), "")
        case 8:
            text = _hexes(random, count)
            return pc.binary_join_element_wise("z", text, "") if above else text
        case 4:
            return pa.array(random.random(count) + above)
        case 5:
            return pa.array(random.integers(0, 1000, count) + 1000 * above).cast(
                pa.decimal128(19, 0)
            )
        case _:
            return pa.array((random.integers(0, 1000, count) + 1000 * above).astype(np.int32))


def _hexes(random: np.random.Generator, count: int) -> pa.Array:
    """Ids and checksums: 16 random bytes each."""
    text = random.bytes(16 * count).hex()
    offsets = pa.py_buffer(np.arange(0, 32 * count + 1, 32, dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), count, [None, offsets, pa.py_buffer(text.encode())])


if __name__ == "__main__":
    main()
