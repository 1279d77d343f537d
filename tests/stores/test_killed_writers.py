"""Processes that commit to one table on S3 and are killed: what was acknowledged is there, once."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from tests import profiles
from tests.processes import start
from tests.stores.s3_server import S3

WRITERS = 4
COMMITS, KILLS = (30, 20) if profiles.IS_DEEP else (4, 2)
_SPAN = 1_000


def test_writers_that_are_killed_lose_nothing_and_repeat_nothing(s3: S3, tmp_path: Path) -> None:
    uri = s3.fresh_uri()
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.int64())])
    properties = {"checkpoint_interval": "4"}
    rs.create_table(uri, schema, key=["k"], storage_options=s3.options, properties=properties)
    told = [tmp_path / str(writer) for writer in range(WRITERS)]
    for path in told:
        os.mkfifo(path)
    acknowledged: list[list[int]] = [[] for _ in told]
    pipes = [os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in told]
    running = [start(write, uri, s3.options, i, str(told[i])) for i in range(WRITERS)]
    chance = random.Random(7)
    kills = KILLS
    while any(process.is_alive() for process in running):
        before = sum(map(len, acknowledged))
        while sum(map(len, acknowledged)) == before and any(p.is_alive() for p in running):
            for process in running:
                process.join(0.02)
            for pipe, numbers in zip(pipes, acknowledged, strict=True):
                numbers.extend(heard(pipe))
        alive = [writer for writer in range(WRITERS) if running[writer].is_alive()]
        if kills and alive and chance.random() < 0.7:
            kills -= 1
            victim = chance.choice(alive)
            pid = running[victim].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            running[victim].join()
            running[victim] = start(write, uri, s3.options, victim, str(told[victim]))
    for pipe, numbers in zip(pipes, acknowledged, strict=True):
        numbers.extend(heard(pipe))
        os.close(pipe)
    assert [process.exitcode for process in running] == [0] * WRITERS
    assert kills == 0

    table = rs.open_table(uri, storage_options=s3.options)
    keys = table.scan(order_by_key=True).to_arrow()["k"].to_pylist()
    assert keys == [w * _SPAN + n for w in range(WRITERS) for n in range(COMMITS)]
    for writer, numbers in enumerate(acknowledged):
        assert {writer * _SPAN + number for number in numbers} <= set(keys)
    history = table.history()
    assert [commit.version for commit in history] == list(range(len(keys), -1, -1))
    assert {commit.rows_written for commit in history[:-1]} == {1}


def write(uri: str, options: dict[str, str], writer: int, told: str) -> None:
    """Commit one key after another, from the first that is not there; tell of each."""
    pipe = os.open(told, os.O_WRONLY)
    table = rs.open_table(uri, storage_options=options)
    for number in range(COMMITS):
        key = writer * _SPAN + number
        if table.scan(f"k = {key}").count():
            continue
        # One that was killed may have put its entry by now: the token counts once.
        rows = pa.table({"k": [key], "v": [number]})
        table.upsert(rows, token=(f"writer-{writer}", number))
        os.write(pipe, number.to_bytes(4, "little"))


def heard(pipe: int) -> list[int]:
    """The numbers that were told since."""
    try:
        data = os.read(pipe, 1 << 16)
    except BlockingIOError:
        return []
    return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]
