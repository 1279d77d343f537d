"""Spark over our tables compared with a plain Parquet file of the same rows.

    python -m benchmarks.spark_reads --rows 5000000
    python -m benchmarks.spark_reads --rows 4000000 --parts 8

With `--parts` the rows are in several files that all have hidden rows. Then the table is compared
with itself after `compact`, which Spark reads natively; `--source` adds our source.

Each query's answer is checked before it is timed; the readers take turns in one session. Ratios are
of the CPU seconds of this process and of Spark's JVM without its compilers, and of wall seconds,
which say little on a machine with other work: its load is printed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rowsieve as rs
from benchmarks.measure import take_turns
from benchmarks.process_tree import settled_cpu_s
from benchmarks.result import expect
from rowsieve.providers.spark import explain, read, spark_session
from rowsieve.providers.spark import sql as pruning_sql

BARS: Final = {"clean": 1.15, "1% hidden": 1.5, "50% upserted": 2.0}
BARS_OF_PARTS: Final = {
    **dict.fromkeys(("point", "range"), 2.0),
    **dict.fromkeys(("group by", "count", "df.count()", "sql count"), 1.75),
}
QUERIES: Final = {
    "aggregate": "SELECT round(sum(x), 3), max(b), count(s) FROM {t}",
    "group by": "SELECT count(*), max(m) FROM (SELECT c, round(sum(x), 3) m FROM {t} GROUP BY c)",
    "count": "SELECT count(*) FROM {t}",
    "point": "SELECT s, c FROM {t} WHERE id = {point}",
    # Whole bounds: Spark's `/` gives a double, which it compares with no statistics.
    "range": "SELECT sum(a) FROM {t} WHERE id BETWEEN {point} AND {point} + {rows} DIV 100",
}

ALL: Final = ("full scan", *QUERIES, "df.count()", "sql count")


def data(keys: Any, seed: int) -> pa.Table:
    """Rows of 8 columns with these keys."""
    rng, count = np.random.default_rng(seed), len(keys)
    return pa.table(
        {
            "id": keys,
            "x": rng.normal(size=count).round(3),
            "y": rng.random(count),
            "a": rng.integers(0, 1_000_000, count),
            "b": rng.integers(0, 100, count).astype(np.int32),
            "c": pa.array(np.char.add("group ", rng.integers(0, 1000, count).astype(str))),
            "s": pa.array(np.char.add("text ", rng.integers(0, 10**9, count).astype(str))),
            "at": pa.array(np.arange(count) * 1_000_000, pa.timestamp("us", "UTC")),
        }
    )


def tables(folder: Path, rows: int) -> dict[str, rs.Table]:
    """The same number of rows without hidden ones, with 1% of them, and with half of them."""
    found = {}
    for name, share in (("clean", 0.0), ("1% hidden", 0.01), ("50% upserted", 0.5)):
        table = rs.create_table(
            str(folder / name.replace("%", "")), data(np.arange(rows), 1), ["id"]
        )
        if share:
            keys = np.random.default_rng(2).permutation(rows)[: int(rows * share)]
            table.upsert(data(np.sort(keys), 3))
        found[name] = table
    return found


def table_of_parts(uri: Path, rows: int, parts: int, share: float) -> rs.Table:
    """A table of this many files, and a newer one with a share of the rows of each."""
    starts = np.linspace(0, rows, parts + 1).astype(int).tolist()
    table = rs.create_table(str(uri), data(np.arange(0), 1).schema, ["id"])
    for start, stop in pairwise(starts):
        table.upsert(data(np.arange(start, stop), start))
    keys = np.random.default_rng(2).permutation(rows)[: int(rows * share)]
    table.upsert(data(np.sort(keys), 3))
    return table


def main() -> None:
    """Print the seconds of each query by each reader, and the ratio to plain Parquet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--warm", type=int, default=3, help="runs of each query before the first")
    parser.add_argument("--source", action="store_true", help="measure our source, too")
    parser.add_argument("--parts", type=int, default=1, help="files with hidden rows")
    options = parser.parse_args()
    spark = spark_session("spark reads")
    with tempfile.TemporaryDirectory() as folder:
        if options.parts > 1:
            compare_parts(spark, Path(folder), options)
            return
        for name, table in tables(Path(folder), options.rows).items():
            print(f"{name}, {options.rows:,} rows x 8 columns; load {os.getloadavg()[0]:.1f}")
            plain = Path(folder) / "plain.parquet"
            pq.write_table(table.to_arrow(), plain, compression="zstd")
            frames = {"parquet": spark.read.parquet(str(plain)), "rowsieve": read(spark, table.uri)}
            if options.source:
                frames["source"] = read(spark, table.uri, routes=["source"])
            print(explain(spark, table.uri))
            compare(spark, frames, options, dict.fromkeys(ALL, BARS[name]))


def compare_parts(spark: Any, folder: Path, options: Any) -> None:
    """Compare tables of several files with hidden rows with the same tables after `compact`."""
    for share in (0.01, 0.5):
        table = table_of_parts(folder / f"upserted {share}", options.rows, options.parts, share)
        compacted = table.clone(str(folder / f"compacted {share}"))
        compacted.compact()
        print(
            f"{share:.0%} upserted over {options.parts} parts, {options.rows:,} rows x 8 columns; "
            f"load {os.getloadavg()[0]:.1f}\n{explain(spark, table.uri)}"
        )
        frames = {"compacted": read(spark, compacted.uri), "rowsieve": read(spark, table.uri)}
        if options.source:
            frames["source"] = read(spark, table.uri, routes=["source"])
        compare(spark, frames, options, BARS_OF_PARTS)


def compare(spark: Any, frames: dict[str, Any], options: Any, bars: Mapping[str, float]) -> None:
    """Check and time every query over these frames; ratios are to the first one."""
    base = next(iter(frames))
    works: dict[str, dict[str, Callable[[], object]]] = {"full scan": {}}
    for reader, frame in frames.items():
        frame.createOrReplaceTempView(reader)
        works["full scan"][reader] = partial(_scan, frame)
        for name, text in QUERIES.items():
            query = text.format(t=reader, point=options.rows // 3, rows=options.rows)
            works.setdefault(name, {})[reader] = partial(_answer, spark, query)
        works.setdefault("df.count()", {})[reader] = frame.count
        count = QUERIES["count"].format(t=reader)
        plain = partial(_answer, spark, count)
        pruning = partial(_pruned_answer, spark, count)
        works.setdefault("sql count", {})[reader] = pruning if reader == "rowsieve" else plain
    for name, by_reader in works.items():
        answers = {reader: str(work()) for reader, work in by_reader.items()}
        for reader, answer in answers.items():
            expect(f"{name} by {reader}", answer, answers[base])
        for work in list(by_reader.values()) * options.warm:
            work()
        seconds = {
            series.system: (
                min(sample.cpu_s for sample in series.samples),
                min(sample.wall_s for sample in series.samples),
            )
            for series in take_turns(by_reader, options.repeats, warm_up=False, clock=settled_cpu_s)
        }
        cpu, wall = (a / b for a, b in zip(seconds["rowsieve"], seconds[base], strict=True))
        shown = ", ".join(f"{reader} {a:.3f} s, {b:.3f} s" for reader, (a, b) in seconds.items())
        bar = f"(bar {bars[name]}x)" if name in bars else "(no bar)"
        print(f"  {name:<11}{cpu:6.2f}x CPU, {wall:.2f}x wall {bar}: {shown}", flush=True)


def _answer(spark: Any, query: str) -> object:
    return spark.sql(query).collect()


def _pruned_answer(spark: Any, query: str) -> object:
    return pruning_sql(spark, query).collect()


def _scan(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
