"""Spark over our tables on an object store, compared with plain Parquet on the same store.

    python -m benchmarks.spark_store --rows 1000000 --delays 0 0.02
    python -m benchmarks.spark_store --parts 1000 --delays 0.02

The store is a server on loopback that answers after a delay. Spark reads it by `LoopbackS3.java`,
which needs `javac` of a JDK, because the jars of hadoop-aws are no package of Python's. Each answer
is checked before it is timed; the readers take turns in one session. Ratios are of wall seconds and
of requests and bytes, which do not depend on other work of the machine; its load is printed.

With `--parts` a table of many small parts is opened and read: the first row, and a sum.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rowsieve as rs
from benchmarks.result import expect
from benchmarks.slow_store import BUCKET, SlowStore, slow_store, traffic
from benchmarks.spark_planning import table_of_parts
from benchmarks.spark_reads import QUERIES, data
from rowsieve.objects import open_store
from rowsieve.providers.spark import explain, read, spark_session

BARS: Final = {"clean": 1.15, "1% hidden": 1.5}
_READER: Final = Path(__file__).with_name("LoopbackS3.java")


def main() -> None:
    """Print the seconds, requests and bytes of each query by each reader, at each delay."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parts", type=int, default=0, help="measure this many small parts")
    parser.add_argument("--delays", type=float, nargs="+", default=[0.0, 0.02])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--queries", nargs="+", default=["full scan", *QUERIES])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, slow_store() as store:
        spark = session(Path(folder), store)
        if options.parts:
            read_parts(spark, store, options.parts, options.delays)
            return
        for name, share in (("clean", 0.0), ("1% hidden", 0.01)):
            compare(spark, store, name, share, options)


def session(folder: Path, store: SlowStore) -> Any:
    """A session that reads the server as `s3a`."""
    import pyspark

    if (compiler := shutil.which("javac")) is None:
        raise SystemExit("benchmarks.spark_store compiles a file system for Spark: install a JDK")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    subprocess.run([compiler, "-nowarn", "-d", str(folder), "-cp", str(jars), _READER], check=True)
    return spark_session(
        "spark store",
        {
            "spark.driver.extraClassPath": str(folder),
            "spark.hadoop.fs.s3a.impl": "LoopbackS3",
            "spark.hadoop.fs.s3a.endpoint": store.endpoint,
        },
    )


def compare(spark: Any, store: SlowStore, name: str, share: float, options: Any) -> None:
    """Compare one table with one plain file of the same rows."""
    uri, rows = f"s3://{BUCKET}/{name.partition('%')[0]}", options.rows
    table = rs.create_table(uri, data(np.arange(rows), 1), ["id"], storage_options=store.options)
    if share:
        keys = np.random.default_rng(2).permutation(rows)[: int(rows * share)]
        table.upsert(data(np.sort(keys), 3))
    plain = f"s3://{BUCKET}/plain-{share}"
    sink = pa.BufferOutputStream()
    pq.write_table(table.to_arrow(), sink, compression="zstd")
    content = sink.getvalue().to_pybytes()
    open_store(plain, store.options).put_new("plain.parquet", content)
    frames = {
        "parquet": spark.read.parquet(f"{plain.replace('s3:', 's3a:')}/plain.parquet"),
        "rowsieve": read(spark, uri, storage_options=store.options),
    }
    print(explain(spark, uri, storage_options=store.options))
    for reader, frame in frames.items():
        frame.createOrReplaceTempView(reader)
    for delay in options.delays:
        store.set_delay(delay)
        print(f"{name}, {rows:,} rows, +{delay * 1000:.0f} ms; load {os.getloadavg()[0]:.1f}")
        for query in options.queries:
            works = {reader: _work(spark, reader, query, rows) for reader in frames}
            print(f"  {query:<10}{_compared(store, works, options.repeats)} (bar {BARS[name]}x)")
    store.set_delay(0)


def _work(spark: Any, reader: str, query: str, rows: int) -> Callable[[], object]:
    if query == "full scan":
        return partial(_scanned, spark.table(reader))
    text = QUERIES[query].format(t=reader, point=rows // 3, rows=rows)
    return lambda: str(spark.sql(text).collect())


def _scanned(frame: Any) -> str:
    frame.write.format("noop").mode("overwrite").save()
    return ""


def _compared(store: SlowStore, works: dict[str, Callable[[], object]], repeats: int) -> str:
    """The ratio of the readers' least seconds, and what each asked for."""
    answers = {reader: work() for reader, work in works.items()}
    least, asked = dict.fromkeys(works, float("inf")), {}
    for reader, answer in answers.items():
        expect(f"rows by {reader}", str(answer), str(answers["parquet"]))
    for _ in range(repeats):
        for reader, work in works.items():
            store.take()
            begun = time.perf_counter()
            work()
            least[reader] = min(least[reader], time.perf_counter() - begun)
            asked[reader] = traffic(store.take())
    shown = ", ".join(
        f"{reader} {least[reader]:.2f} s {asked[reader].requests} requests "
        f"{asked[reader].sent_bytes / 1e6:.2f} MB"
        for reader in works
    )
    return f"{least['rowsieve'] / least['parquet']:5.2f}x: {shown}"


def read_parts(spark: Any, store: SlowStore, parts: int, delays: Sequence[float]) -> None:
    """Print the seconds of a frame of many parts, of its first row and of a sum."""
    uri = f"s3://{BUCKET}/parts"
    table_of_parts(spark, uri, parts, store.options)
    for delay in delays:
        store.set_delay(delay)
        print(f"{parts:,} parts, +{delay * 1000:.0f} ms; load {os.getloadavg()[0]:.1f}")
        store.take()
        steps: dict[str, Callable[[Any], object]] = {
            "frame": lambda frame: frame,
            "first row": lambda frame: frame.first(),
            "sum": lambda frame: frame.selectExpr("sum(id)").first(),
        }
        for name, step in steps.items():
            begun = time.perf_counter()
            step(read(spark, uri, storage_options=store.options))
            took, asked = time.perf_counter() - begun, traffic(store.take())
            print(f"  {name:<10}{took:6.2f} s {asked.requests} requests", flush=True)
    store.set_delay(0)


if __name__ == "__main__":
    main()
