"""Processes with a writer that are killed at any moment, and what the next one finds.

    python -m tests.writer.kills FIRST STOP [FOLDER]

Each seed is a table and several processes, one after the other. A process writes with a few
threads through one writer, and tells of each call before it and of each acknowledgement. Its parent
kills it (SIGKILL), recovers, and checks: every acknowledged change is there, each at most once, and
each key has its last acknowledged state or that of a call that was under way.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import rowsieve as rs
from rowsieve.writer.acknowledgements import Acknowledgement

SCHEMA: Final = pa.schema([pa.field("id", pa.int64(), nullable=False), ("value", pa.int64())])
THREADS: Final = 3
KEYS: Final = 8
PROCESSES: Final = 4
PATIENCE_S: Final = 120.0


class Story:
    """One table, and what is known of its changes, in the order of each thread."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draws = random.Random(seed)
        self.has_key = self.draws.random() < 0.7
        self.wal_dir, self.uri = folder / "wal", folder / "t"
        rs.create_table(self.uri, SCHEMA, key=["id"] if self.has_key else None)
        self.settings: dict[str, Any] = {
            "sync": self.draws.choice(("always", "always", "interval", "off")),
            "flush_interval_s": self.draws.choice((0.001, 0.01, 0.1)),
            "flush_rows": self.draws.choice((3, 50, 10_000)),
            "compact": self.draws.random() < 0.3,
        }
        self.states: dict[int, int | None] = {}
        """Value by key as it was found last."""
        self.rows: Counter[int] = Counter()
        """Values of the table without a key as they were found last."""

    def run(self) -> int:
        """Kill all processes and check after each; return the number of acknowledgements."""
        return sum(self._round(number) for number in range(PROCESSES))

    def _round(self, number: int) -> int:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _work(self, number, writing)
        os.close(writing)
        told = self._wait(reading)
        os.kill(child, signal.SIGKILL)
        told += b"".join(iter(lambda: os.read(reading, 1 << 16), b""))
        os.close(reading)
        os.waitpid(child, 0)
        lines = [line.split() for line in told.splitlines() if line.endswith(b".")]
        table = rs.open_table(self.uri)
        with table.writer(wal_dir=self.wal_dir) as writer:
            self._check(table, lines, "over memtables")
            writer.flush()
        found = rs.open_table(self.uri)
        self._check(found, lines, "committed")
        rows = found.scan().to_arrow().to_pylist()
        self.states = {row["id"]: row["value"] for row in rows}
        self.rows = Counter(row["value"] for row in rows)
        return sum(line[0] == b"ack" for line in lines)

    def _wait(self, reading: int) -> bytes:
        """Read until a number of calls and acknowledgements, then wait for a moment."""
        wanted, told = self.draws.choice((0, 3, 40, 200)) * self.draws.random(), b""
        while told.count(b"\n") < wanted and select.select([reading], [], [], PATIENCE_S)[0]:
            told += os.read(reading, 512)
        time.sleep(self.draws.choice((0.0, 0.002, 0.02)) * self.draws.random())
        return told

    def _check(self, table: rs.Table, lines: list[list[bytes]], where: str) -> None:
        rows = table.scan().to_arrow().to_pylist()
        acknowledged = {int(line[1]) for line in lines if line[0] == b"ack"}
        calls = [tuple(map(int, line[1:4])) for line in lines if line[0] == b"call"]
        if not self.has_key:
            counts = Counter(row["value"] for row in rows)
            for value, _, _ in calls:
                allowed = {1} if value in acknowledged else {0, 1}
                assert counts[value] in allowed, (where, value, counts[value])
            assert all(counts[value] == 1 for value in self.rows), where
            return
        values = {row["id"]: row["value"] for row in rows}
        assert len(values) == len(rows), where
        for key in {*values, *self.states, *(key for _, key, _ in calls)}:
            allowed_states = [self.states.get(key)]
            for value, called, is_delete in calls:
                if called == key:
                    after = None if is_delete else value
                    if value in acknowledged:
                        allowed_states = [after]
                    else:
                        allowed_states.append(after)
            assert values.get(key) in allowed_states, (where, key, values.get(key), allowed_states)


def _work(story: Story, number: int, writing: int) -> None:
    """Write until the process is killed; threads have keys of their own."""
    try:
        table = rs.open_table(story.uri)
        with table.writer(wal_dir=story.wal_dir, **story.settings) as writer:
            works = [
                threading.Thread(target=_write, args=(story, writer, number, each, writing))
                for each in range(THREADS)
            ]
            for work in works:
                work.start()
            for work in works:
                work.join()
    finally:
        os._exit(1)


def _write(story: Story, writer: Any, number: int, thread: int, writing: int) -> None:
    draws = random.Random(f"{number} {thread}")
    waiting: deque[tuple[int, Acknowledgement]] = deque()
    for value in _values(number, thread):
        key = draws.randrange(KEYS) * THREADS + thread
        is_delete = story.has_key and draws.random() < 0.2
        os.write(writing, b"call %d %d %d .\n" % (value, key, is_delete))
        if is_delete:
            acknowledgement = writer.delete(keys={"id": key})
        elif story.has_key:
            acknowledgement = writer.upsert({"id": key, "value": value})
        else:
            acknowledgement = writer.append([{"id": key, "value": value}])
        waiting.append((value, acknowledgement))
        while len(waiting) > draws.randrange(6):
            value_of_first, first = waiting.popleft()
            first.result()
            os.write(writing, b"ack %d .\n" % value_of_first)


def _values(number: int, thread: int) -> Iterator[int]:
    for step in range(100_000):
        yield (step * PROCESSES + number) * THREADS + thread


def main(first: int, stop: int, folder: str | None = None) -> None:
    """Run the stories of these seeds; print the first one that fails."""
    kills = acknowledged = 0
    for seed in range(first, stop):
        with tempfile.TemporaryDirectory(dir=folder) as each:
            try:
                acknowledged += Story(seed, Path(each)).run()
            except BaseException:
                sys.stdout.write(f"seed {seed} fails\n")
                raise
        kills += PROCESSES
        sys.stdout.write(f"seed {seed}: {kills} kills, {acknowledged} acknowledged\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
