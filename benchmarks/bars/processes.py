"""Bar: processes commit concurrently to one table on a local disk, and no commit is lost."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.result import Bar, expect

ROWS_PER_COMMIT = 10


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Every process upserts keys of its own in several commits; then all rows are compared."""
    uri = str(folder / "table")
    table = rs.create_table(uri, data.rows(0).schema, key=[data.KEY])
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(sizes.processes + 1)
    workers = [
        context.Process(target=_commit, args=(uri, worker, sizes.commits_each, barrier))
        for worker in range(sizes.processes)
    ]
    for worker in workers:
        worker.start()
    barrier.wait(timeout=120)
    started = time.perf_counter()
    for worker in workers:
        worker.join()
    elapsed = time.perf_counter() - started
    expect("exit codes", [worker.exitcode for worker in workers], [0] * len(workers))
    total = sizes.processes * sizes.commits_each
    _check(table, sizes)
    return Bar(
        name="concurrent commits",
        promise=f"{sizes.processes} processes x {sizes.commits_each} commits lose nothing",
        found=f"{total:,} commits, none lost, {total / elapsed:.0f} commits/s with fsync",
        met=True,
        facts={"commits": total, "elapsed_s": elapsed, "file_system": _file_system(folder)},
    )


def _commit(uri: str, worker: int, commits: int, barrier: Barrier) -> None:
    table = rs.open_table(uri)
    barrier.wait(timeout=120)
    for i in range(commits):
        table.upsert(
            data.rows_of(_keys(worker, i, commits), seed=worker * commits + i),
            metadata={"worker": str(worker), "commit": str(i)},
        )


def _keys(worker: int, commit: int, commits: int) -> Any:
    start = (worker * commits + commit) * ROWS_PER_COMMIT
    return np.arange(start, start + ROWS_PER_COMMIT, dtype=np.int64)


def _check(table: rs.Table, sizes: Sizes) -> None:
    total = sizes.processes * sizes.commits_each
    table.refresh()
    expect("version", table.version, total)
    history = [commit for commit in table.history() if "worker" in commit.metadata]
    seen = {(commit.metadata["worker"], commit.metadata["commit"]) for commit in history}
    expect("commits in the log", len(seen), total)
    expect("log numbers", len({commit.version for commit in history}), total)
    keys = table.scan(columns=[data.KEY]).to_arrow().column(data.KEY).to_numpy()
    wanted = np.arange(total * ROWS_PER_COMMIT)
    expect("keys", bool(np.array_equal(np.sort(keys), wanted)), expected=True)


def _file_system(folder: Path) -> str:
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    best = ("", "unknown")
    for line in mounts.read_text().splitlines():
        _, point, kind = line.split()[:3]
        if folder.resolve().is_relative_to(point) and len(point) > len(best[0]):
            best = (point, kind)
    return best[1]
