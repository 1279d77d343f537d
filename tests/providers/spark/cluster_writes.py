"""A driver of Spark in a process of its own, whose writes lose executors or run tasks twice.

    python -m tests.providers.spark.cluster_writes MASTER FOLDER ROUNDS FAULT…

Each round writes a DataFrame with each fault, once in one pass and once with a shuffle, and checks
the table; the first check that fails ends the process with an error. The fault is in a function
of the DataFrame, so the write is `write_spark` as users call it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import rowsieve as rs
from rowsieve.providers.spark.jvm.java import spark_session
from tests.faults.tasks import PATIENCE_S, executor_of_this_task
from tests.procedures.cluster_driver import CONF

ROWS = 4_000
STRUCK = 2_500  # the row whose task has the fault


def first(mark: Path) -> bool:
    """Whether this is the first call, in any process."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def executor(marks: Path) -> None:
    """Kill the executor, once."""
    if first(marks / "struck"):
        os.kill(executor_of_this_task(), signal.SIGKILL)
        time.sleep(PATIENCE_S)  # the worker process ends with its executor


def speculation(marks: Path) -> None:
    """Hold the first attempt until Spark runs a second one; both go on to the end."""
    if not first(marks / "struck"):
        (marks / "again").touch()
        return
    ends = time.monotonic() + PATIENCE_S
    while not (marks / "again").exists() and time.monotonic() < ends:
        time.sleep(0.02)


FAULTS: dict[str, Callable[[Path], None]] = {"executor": executor, "speculation": speculation}


def struck(spark: Any, fault: Callable[[Path], None], marks: Path) -> Any:
    """Rows in order, in four partitions; computing one of them has the fault."""
    from pyspark.sql import functions

    def text_of(number: int) -> str:
        if number == STRUCK:
            fault(marks)
        return f"new {number}"

    made = functions.udf(text_of, "string").asNondeterministic()  # not computed twice to no use
    return spark.range(0, ROWS, 1, 4).select("id", made("id").alias("s"))


def survived(spark: Any, folder: Path, name: str, *, presorted: bool) -> None:
    """A write with the fault is one commit, and has every row once."""
    marks = folder / "marks"
    marks.mkdir(parents=True)
    old = pa.table({"id": range(0, 2 * ROWS, 2), "s": ["old"] * ROWS})
    table = rs.create_table(folder / "t", old, key=["id"])
    commit = table.write_spark(
        struck(spark, FAULTS[name], marks), mode="upsert", presorted=presorted
    )
    assert (marks / "struck").exists(), "nothing went wrong"
    assert name != "speculation" or (marks / "again").exists(), "no second attempt"
    assert (commit.version, commit.rows_written, table.refresh()) == (1, ROWS, 1)
    wanted = dict.fromkeys(range(0, 2 * ROWS, 2), "old") | {i: f"new {i}" for i in range(ROWS)}
    found = table.scan().to_arrow()
    assert found.num_rows == len(wanted)
    rows = zip(found.column("id").to_pylist(), found.column("s").to_pylist(), strict=True)
    assert dict(rows) == wanted


def main(master: str, folder: Path, rounds: int, faults: list[str]) -> None:
    """Run the rounds; a line for each write that survived."""
    spark = spark_session("rowsieve writes", CONF, master=master)
    for number in range(rounds):
        for name in faults:
            for presorted in (True, False):
                place = folder / f"{number}-{name}-{presorted}"
                survived(spark, place, name, presorted=presorted)
                sys.stdout.write(f"{number} {name} {presorted}\n")
                sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
