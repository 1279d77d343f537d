"""A process that writes a table with a Spark session of its own while another one does.

    python -m tests.providers.spark.spark_writer FOLDER URI NUMBER ROUNDS

It begins when both processes have put a file into FOLDER, and prints each commit as a line of
JSON: its version, what it did, and with which rows. `commits_of` makes the same ones without Spark.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import rowsieve as rs

HOT, COUNTER, OWN, COUNTS = range(6), 100, 10_000, 10
Done = tuple[int, str, list[tuple[int, int]]]
Upsert = Callable[[rs.Table, pa.Table], int]
Delete = Callable[[rs.Table, pa.Table], int]
Count = Callable[[rs.Table], int]


def rows_of(*rows: tuple[int, int]) -> pa.Table:
    return pa.table({"k": [k for k, _ in rows], "v": [v for _, v in rows]})


def commits_of(
    table: rs.Table, number: int, turns: Iterable[int], upsert: Upsert, delete: Delete, count: Count
) -> Iterator[Done]:
    """In each turn: own rows and those of all; in odd ones a delete of some, in even ones a count.

    After COUNTS turns nothing is counted any more, so that a slower process gets its turn.
    """
    for turn in turns:
        value = 1000 * number + turn
        rows = [(OWN * number + 3 * turn + n, value) for n in range(3)]
        rows += [(k, value) for k in HOT]
        yield upsert(table, rows_of(*rows)), "upsert", rows
        if turn % 2:
            gone = [(HOT[turn % len(HOT)], 0), (OWN * number + 3 * turn, 0)]
            yield delete(table, rows_of(*gone).select(["k"])), "delete", gone
        elif turn < COUNTS:
            yield count(table), "count", [(COUNTER, 1)]


def replayed(start: Mapping[int, int], done: Iterable[Done]) -> list[dict[int, int]]:
    """The rows after each commit, in the order of versions, by a dictionary."""
    rows, found = dict(start), [dict(start)]
    for _, action, changed in sorted(done):
        for k, v in changed:
            if action == "delete":
                rows.pop(k, None)
            else:
                rows[k] = rows[k] + v if action == "count" else v
        found.append(dict(rows))
    return found


def wait_for_both(folder: Path, number: int) -> None:
    (folder / f"ready-{number}").touch()
    while len([*folder.glob("ready-*")]) < 2:
        time.sleep(0.01)


def with_spark(spark: Any) -> tuple[Upsert, Delete, Count]:
    """The three changes, each as a job of this session."""

    def write(mode: Any) -> Upsert:
        return lambda table, rows: (
            table.write_spark(spark.createDataFrame(rows).repartition(2), mode).version
        )

    def count(table: rs.Table) -> int:
        one = spark.createDataFrame(rows_of((COUNTER, 1)))
        matched = {"update": {"v": "source.v + target.v"}}
        return table.merge_spark(one, ["k"], when_matched=matched, retry_timeout_s=600.0).version

    return write("upsert"), write("delete"), count


def embedded() -> tuple[Upsert, Delete, Count]:
    """The three changes without Spark."""
    return (
        lambda table, rows: table.upsert(rows).version,
        lambda table, rows: table.delete(keys=rows).version,
        lambda table: (
            table.update({"v": "v + 1"}, where=f"k = {COUNTER}", retry_timeout_s=600.0).version
        ),
    )


def main(folder: Path, uri: str, number: int, rounds: int) -> None:
    from rowsieve.providers.spark.jvm.java import spark_session

    conf = {
        "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.warehouse.dir": str(folder / f"warehouse-{number}"),
    }
    spark = spark_session("rowsieve writer", conf)
    spark.createDataFrame(rows_of((1, 1))).count()  # its workers are up
    wait_for_both(folder, number)
    table = rs.open_table(uri)
    for done in commits_of(table, number, range(rounds), *with_spark(spark)):
        sys.stdout.write(json.dumps(done) + "\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
