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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import rowsieve as rs
from rowsieve.providers.spark.jvm.java import spark_session
from tests.faults.marks import PATIENCE_S, is_first, wait_for
from tests.faults.tasks import executor_of_this_task
from tests.faults.vocabulary import Fault
from tests.procedures.cluster_driver import CONF

ROWS = 4_000
STRUCK = 2_500  # the row whose task has the fault


def executor(marks: Path) -> None:
    """Kill the executor, once."""
    if is_first(marks / "struck"):
        os.kill(executor_of_this_task(), signal.SIGKILL)
        time.sleep(PATIENCE_S)  # the worker process ends with its executor


def speculation(marks: Path) -> None:
    """Hold the first attempt until Spark runs a second one; both go on to the end."""
    if not is_first(marks / "struck"):
        (marks / "again").touch()
        return
    wait_for(marks / "again")


FAULTS: Final[Mapping[Fault, Callable[[Path], None]]] = {
    Fault.EXECUTOR_KILLED: executor,
    Fault.SPECULATED: speculation,
}


def struck(spark: Any, fault: Callable[[Path], None], marks: Path) -> Any:
    """Rows in order, in four partitions; computing one of them has the fault."""
    from pyspark.sql import functions

    def text_of(number: int) -> str:
        if number == STRUCK:
            fault(marks)
        return f"new {number}"

    made = functions.udf(text_of, "string").asNondeterministic()  # not computed twice to no use
    return spark.range(0, ROWS, 1, 4).select("id", made("id").alias("s"))


def survived(spark: Any, folder: Path, fault: Fault, *, presorted: bool) -> None:
    """A write with the fault is one commit, and has every row once."""
    marks = folder / "marks"
    marks.mkdir(parents=True)
    old = pa.table({"id": range(0, 2 * ROWS, 2), "s": ["old"] * ROWS})
    table = rs.create_table(folder / "t", old, key=["id"])
    commit = table.write_spark(
        struck(spark, FAULTS[fault], marks), mode="upsert", presorted=presorted
    )
    assert (marks / "struck").exists(), "nothing went wrong"
    assert fault is not Fault.SPECULATED or (marks / "again").exists(), "no second attempt"
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
                survived(spark, place, Fault[name], presorted=presorted)
                sys.stdout.write(f"{number} {name} {presorted}\n")
                sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
