"""A table with a writer is a dictionary, through crashes, other writers and changes of columns."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from tests.writer.test_writer import NEVER, abandon

KEYS = range(10)
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


class Machine:
    """A table, its writer, and the dictionary that it should be."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.draws = random.Random(seed)
        self.has_order = self.draws.random() < 0.3
        schema = SCHEMA.append(pa.field("lsn", pa.int64())) if self.has_order else SCHEMA
        options = {"sequence": ["lsn"]} if self.has_order else {}
        self.table = rs.create_table(folder / "t", schema, key=["id"], **options)  # type: ignore[arg-type]
        self.wal_dir = folder / "wal"
        self.rows: dict[int, str] = {}
        self.sequences: dict[int, int] = {}
        self.lsn = 0
        self.extra = 0
        self.open()

    def open(self) -> None:
        interval = self.draws.choice((0.001, NEVER, NEVER))
        self.writer = self.table.writer(
            wal_dir=self.wal_dir,
            flush_interval_s=interval,
            flush_rows=self.draws.choice((2, 1000)),
            compact=self.draws.random() < 0.3,
        )

    def step(self) -> None:
        kinds = ("upsert", "upsert", "several", "delete", "flush", "crash", "reopen", "direct")
        more = ("other", "compact", "column")
        getattr(self, self.draws.choice((*kinds, *more)))()
        seen = {row["id"]: row["name"] for row in self.table.scan().to_arrow().to_pylist()}
        assert seen == self.rows
        assert self.table.count() == len(self.rows)
        key = self.draws.choice(KEYS)
        assert self.table.count(f"id = {key}") == (key in self.rows)

    def row(self, key: int, name: str | None) -> dict[str, Any]:
        """A row, or a key to delete, and its effect on the dictionary."""
        row: dict[str, Any] = {"id": key}
        if name is not None:
            row |= {"name": name} | {f"extra{number}": number for number in range(self.extra)}
        if not self.has_order:
            self.apply(key, name)
            return row
        self.lsn += 1
        sequence = max(1, self.lsn - self.draws.choice((0, 0, 3, 9)))
        if sequence > self.sequences.get(key, 0):
            self.sequences[key] = sequence
            self.apply(key, name)
        elif sequence == self.sequences.get(key):
            sequence = 0  # an equal one would have no known order
        return row | {"lsn": sequence}

    def apply(self, key: int, name: str | None) -> None:
        if name is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = name

    def name(self) -> str:
        return f"name {self.draws.randrange(1000)}"

    def upsert(self) -> None:
        calls = [
            self.writer.upsert(self.row(self.draws.choice(KEYS), self.name()))
            for _ in range(self.draws.randint(1, 5))
        ]
        for call in calls:
            call.result()

    def several(self) -> None:
        keys = self.draws.sample(KEYS, 3)
        self.writer.upsert([self.row(key, self.name()) for key in keys]).result()

    def delete(self) -> None:
        keys = self.draws.sample(KEYS, 2)
        self.writer.delete(keys=[self.row(key, None) for key in keys]).result()

    def flush(self) -> None:
        self.writer.flush()

    def crash(self) -> None:
        abandon(self.writer)
        self.table = rs.open_table(self.table.uri)
        self.open()

    def reopen(self) -> None:
        self.writer.close()
        assert rs.open_table(self.table.uri).count() == len(self.rows)
        self.open()

    def direct(self) -> None:
        key = self.draws.choice(KEYS)
        if self.draws.random() < 0.5:
            self.table.upsert([self.row(key, self.name())])
        elif not self.has_order:
            self.table.delete(f"id = {key}")
            self.apply(key, None)

    def other(self) -> None:
        """Another process upserts a key that no memtable has, or none that it may overtake."""
        self.writer.flush()
        rs.open_table(self.table.uri).upsert([self.row(self.draws.choice(KEYS), self.name())])

    def compact(self) -> None:
        rs.open_table(self.table.uri).compact()

    def column(self) -> None:
        if self.extra < 3:
            self.table.add_column(f"extra{self.extra}", pa.int64(), default=7)
            self.extra += 1


@pytest.mark.parametrize("seed", range(8))
def test_a_table_with_a_writer_is_a_dictionary(tmp_path: Path, seed: int) -> None:
    machine = Machine(tmp_path, seed)
    try:
        for _ in range(25):
            machine.step()
    finally:
        machine.writer.close()
    assert rs.open_table(machine.table.uri).count() == len(machine.rows)
