"""Random histories of small and large changes with upkeep in between, against a dictionary."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from tests.parts_in_memory import count_in_memory
from tests.profiles import some
from tests.small_tables import KV, kv, pairs

Rows = dict[int, int | None]
CONDITIONS = ("k < 20", "v > 500 AND k <> 3", "v IS NULL OR k IN (1, 5, 9)", "k = 7", "v - k > 900")


class History:
    """A table, what each version should hold, and a random number generator."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.folder = folder / "t"
        picker = self.chance.choice(("leveled", "tiered"))
        properties = {
            "inline_bytes": 1_000,
            "inline_total_bytes": self.chance.choice((6_000, 40_000, 10**6)),
            "checkpoint_interval": self.chance.choice((1, 3, 32)),
            "compaction": picker,
            "visibility": self.chance.choice(("lazy", "lazy", "eager")),
        }
        self.table = rs.create_table(str(self.folder), KV, key=["k"], properties=properties)
        self.rows: Rows = {}
        self.versions: dict[int, Rows] = {0: {}}
        self.in_memory = 0

    def value(self) -> int | None:
        return None if self.chance.random() < 0.1 else self.chance.randrange(1_000)

    def upsert(self) -> None:
        count = self.chance.choice((1, 2, 5, 200))
        changed = {
            self.chance.randrange(60 if count < 9 else 900): self.value() for _ in range(count)
        }
        self.table.upsert(kv(*changed.items()))
        self.rows |= changed

    def delete(self) -> None:
        keys = [self.chance.randrange(60) for _ in range(self.chance.choice((1, 3)))]
        self.table.delete(keys={"k": sorted(set(keys))})
        for key in keys:
            self.rows.pop(key, None)

    def delete_where(self) -> None:
        self.table.delete("v < 50")
        self.rows = {k: v for k, v in self.rows.items() if v is None or v >= 50}

    def update(self) -> None:
        self.table.update({"v": "v + 1"}, where="k % 7 = 1 AND v < 998")
        for k, v in self.rows.items():
            if k % 7 == 1 and v is not None and v < 998:
                self.rows[k] = v + 1

    def restore(self) -> None:
        version = self.chance.choice(sorted(self.versions))
        self.table.restore(version)
        self.rows = dict(self.versions[version])

    def vacuum(self) -> None:
        self.table.vacuum(retain_last=2, grace_s=0)
        known = range(max(0, self.table.version - 1), self.table.version + 1)
        self.versions = {v: rows for v, rows in self.versions.items() if v in known}

    def move(self) -> None:
        """Copy the folder, and go on with the copy in a handle of its own."""
        copy = self.folder.with_name(self.folder.name + "x")
        shutil.copytree(self.folder, copy)
        self.folder = copy
        self.table = rs.open_table(str(copy))

    def step(self) -> None:
        changes = (self.upsert, self.upsert, self.upsert, self.delete, self.delete_where)
        upkeep = (self.update, self.restore, self.table.compact, self.vacuum, self.move)
        do = self.chance.choice((*changes, *changes, *upkeep))
        before = self.table.version
        do()
        self.in_memory += count_in_memory(self.table)
        if do == self.vacuum:
            self.versions = {}
        elif self.table.version > before + 1:  # a compaction of the writer has followed
            self.versions[self.table.version - 1] = dict(self.rows)
        self.versions[self.table.version] = dict(self.rows)


def check(history: History) -> None:
    table, rows = history.table, history.rows
    assert pairs(table) == sorted(rows.items(), key=lambda each: each[0])
    assert pairs(rs.open_table(table.uri)) == pairs(table)
    where = history.chance.choice(CONDITIONS)
    with duckdb.connect() as connection:
        connection.register("t", kv(*rows.items()))
        theirs = connection.execute(f"SELECT k, v FROM t WHERE {where}").fetchall()
    ours = table.scan(where).to_arrow()
    assert sorted(zip(*ours.to_pydict().values(), strict=True)) == sorted(theirs)
    version = history.chance.choice(sorted(history.versions))
    kept = sorted(history.versions[version].items())
    assert pairs(table, version=version) == kept


@pytest.mark.parametrize("seed", some(range(30), 10))
def test_a_history_holds_the_rows_of_a_dictionary(seed: int, tmp_path: Path) -> None:
    history = History(tmp_path, seed)
    for _ in range(20):
        history.step()
        check(history)
    assert history.in_memory
    assert pa.table(history.table.scan()).num_rows == len(history.rows)
