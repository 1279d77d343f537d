"""Two processes write one table at once, one or both of them with Spark: every commit counts once.

Each says which version each of its commits became. Replayed by a dictionary in the order of
versions they are what the table holds: before and after each commit by Spark, and at the end.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rowsieve as rs
from tests.profiles import IS_DEEP
from tests.providers.spark.spark_writer import (
    COUNTER,
    HOT,
    OWN,
    Done,
    commits_of,
    embedded,
    replayed,
    rows_of,
    wait_for_both,
    with_spark,
)
from tests.small_tables import pairs

pytestmark = pytest.mark.spark

START = dict.fromkeys((*HOT, COUNTER), 0)
ROUNDS = 8 if IS_DEEP else 2


def new_table(folder: Path) -> rs.Table:
    properties = {"checkpoint_interval": "5"}
    return rs.create_table(folder / "t", rows_of(*START.items()), key=["k"], properties=properties)


def check(table: rs.Table, ours: list[Done], theirs: list[Done]) -> None:
    """No commit is lost, doubled or torn, at any version."""
    done = ours + theirs
    assert sorted(version for version, *_ in done) == [*range(1, len(done) + 1)]
    for of_one in (ours, theirs):
        assert [version for version, *_ in of_one] == sorted(version for version, *_ in of_one)
    assert table.refresh() == len(done)
    history = table.history()
    assert [commit.version for commit in history] == [*range(len(done), -1, -1)]
    assert len({commit.commit_id for commit in history}) == len(done) + 1
    expected = replayed(START, done)
    for version in {len(done)}.union(*({version - 1, version} for version, *_ in ours)):
        rows = sorted(expected[version].items())
        assert pairs(rs.open_table(table.uri, version=version)) == rows, version
    assert expected[-1][COUNTER] == sum(action == "count" for _, action, _ in done) > 2
    did = [sum(what == action for _, what, _ in done) for action in ("upsert", "delete")]
    assert len([k for k in expected[-1] if k >= OWN]) == 3 * did[0] - did[1]


def write_embedded(folder: Path, uri: str, number: int, sent: Any) -> None:
    """Write until the other process is done, and at least two counts."""

    def turns() -> Iterator[int]:
        for turn in range(1000):
            if turn > 2 and (folder / "done").exists():
                return
            yield turn
            time.sleep(0.5)

    wait_for_both(folder, number)
    sent.send([*commits_of(rs.open_table(uri), number, turns(), *embedded())])


def test_a_spark_session_and_a_process_without_spark(spark: Any, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    context = multiprocessing.get_context("spawn")
    received, sent = context.Pipe(duplex=False)
    arguments = (tmp_path, table.uri, 2, sent)
    process = context.Process(target=write_embedded, args=arguments)
    process.start()
    wait_for_both(tmp_path, 1)
    try:
        # A merge by Spark would run again after each commit of a writer that is so much faster.
        changes = (*with_spark(spark)[:2], embedded()[2])
        ours = []
        for done in commits_of(rs.open_table(table.uri), 1, range(ROUNDS), *changes):
            ours.append(done)
            while table.refresh() == done[0] and process.is_alive():
                time.sleep(0.01)  # the other process has its turn
    finally:
        (tmp_path / "done").touch()
    theirs = received.recv()
    process.join()
    check(table, ours, theirs)
    assert len([v for v, *_ in theirs if min(ours)[0] < v < max(ours)[0]]) >= len(ours) - 1


@pytest.mark.skipif(not IS_DEEP, reason="JVMs of its own: in the deep run")
def test_two_processes_with_a_spark_session_each(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "tests.providers.spark.spark_writer", str(tmp_path), table.uri]
    processes = [
        subprocess.Popen(
            [*command, str(number), str(ROUNDS)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in (1, 2)
    ]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    ours, theirs = (
        [tuple(json.loads(line)) for line in written.splitlines()] for written, _ in outputs
    )
    check(table, ours, theirs)
