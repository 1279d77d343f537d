"""Memory of a write by Spark: how it grows with the rows.

    python -m benchmarks.spark_memory --rows 5000000 20000000

Each number of rows is written once in random order, by a range partitioning, into an empty table.
The peak of each process is what the kernel says (VmHWM), Spark's JVM and Python processes apart.
The answer is checked: the number of rows, and the sum of the keys. Linux only.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

import rowsieve as rs
from benchmarks.process_tree import with_descendants
from benchmarks.result import expect
from rowsieve.providers.spark import spark_session

_POLL_S: Final = 0.05
_STEP: Final = 2_654_435_761  # a prime: its multiples visit each key once


def main() -> None:
    """Print the peak of each kind of process, for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000, 20_000_000])
    parser.add_argument("--partitions", type=int, default=4)
    options = parser.parse_args()
    partitions = str(options.partitions)
    spark = spark_session("spark memory", {"spark.sql.shuffle.partitions": partitions})
    for rows in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            with peaks() as found:
                written = write(spark, Path(folder, "t"), rows)
            elapsed_s = time.perf_counter() - started
            shown = ", ".join(f"{kind} {size >> 20:,} MB" for kind, size in sorted(found.items()))
            print(f"{rows:,} rows, {written >> 20:,} MB stored, {elapsed_s:.0f} s: {shown}")


def write(spark: Any, place: Path, rows: int) -> int:
    """Write the rows in random order, check them, and return their stored size."""
    columns = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("x", pa.float64())])
    columns = columns.append(pa.field("s", pa.string())).append(pa.field("t", pa.string()))
    table = rs.create_table(place, columns, key=["id"])
    frame = spark.range(rows).selectExpr(
        f"(id * {_STEP}) % {rows} AS id",
        "id % 1000 AS n",
        "rand(1) AS x",
        "concat('text ', id % 5000) AS s",
        "md5(string(id)) AS t",
    )
    commit = table.write_spark(frame, mode="upsert")
    expect("rows of the commit", commit.rows_written, rows)
    keys = table.to_arrow(columns=["id"]).column("id")
    expect("sum of the keys", pc.sum(keys).as_py(), rows * (rows - 1) // 2)
    return table.handle.pinned.parts.stored_bytes


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """The highest resident size of any one process, by kind, while the block runs."""
    is_over, found = threading.Event(), dict[str, int]()

    def watch() -> None:
        while not is_over.wait(_POLL_S):
            for process in with_descendants(os.getpid()):
                if (seen := _peak(process)) is not None:
                    found[seen[0]] = max(found.get(seen[0], 0), seen[1])

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        is_over.set()
        watcher.join()


def _peak(process: int) -> tuple[str, int] | None:
    """The kind of a process, and its peak in bytes; None if it is neither Java nor a worker."""
    folder = Path(f"/proc/{process}")
    try:
        command = (folder / "cmdline").read_bytes()
        status = (folder / "status").read_text()
    except OSError:  # it has ended
        return None
    kinds = {b"java": "JVM", b"commit_data_source": "commit", b"pyspark.worker": "task"}
    kind = next((name for word, name in kinds.items() if word in command), None)
    size = next((line for line in status.splitlines() if line.startswith("VmHWM")), None)
    return None if kind is None or size is None else (kind, int(size.split()[1]) * 1024)


if __name__ == "__main__":
    main()
