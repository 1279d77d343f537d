"""Processes that change the tables of one database at the same time, and what is there at the end.

    python -m tests.database.many_processes FOLDER PROCESSES COMMITS TABLES

Each process makes so many commits: mostly an upsert of its own keys into one table, else a transfer
between accounts of two or three tables in a transaction. Then: each acknowledged row is there, no
other one is, no money came or went, and the tables have as many versions as commits were
acknowledged. A folder with a database goes on where the last run ended.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import rowsieve as rs
from rowsieve.errors import CommitConflict, TransactionConflict
from tests.processes import start

ACCOUNTS: Final = 4
MONEY: Final = 100
OWN_KEYS: Final = 1_000
SCHEMA: Final = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
PROPERTIES: Final = {"inline_bytes": 16_384}
TRANSFERS: Final = 0.15


def rows(*pairs: tuple[int, int]) -> pa.Table:
    keys, values = zip(*pairs, strict=True)
    return pa.table({"k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.int64())}, SCHEMA)


def begin(folder: Path, tables: int) -> rs.Database:
    """Open the database of a folder, or create it with its accounts."""
    database = rs.Database(folder / "db")
    for i in range(tables):
        database.create_table(
            f"t{i}",
            rows(*((key, MONEY) for key in range(ACCOUNTS))),
            ["k"],
            if_exists="ignore",
            properties=PROPERTIES,
        )
    return database


def work(folder: str, process: int, commits: int, tables: int, seed: int) -> None:
    """Make the commits of one process; write down what was acknowledged."""
    draws = random.Random(f"{seed} {process}")
    database = rs.Database(Path(folder) / "db")
    opened = [database.open_table(f"t{i}") for i in range(tables)]
    with (Path(folder) / f"told-{process}-{seed}").open("w", buffering=1) as told:
        for i in range(commits):
            if draws.random() < TRANSFERS:
                chosen = _transfer(database, draws, tables)
                told.write(json.dumps([chosen, None, None]) + "\n")
                continue
            table = draws.randrange(tables)
            key = OWN_KEYS * (process + 1) + draws.randrange(50)
            value = (seed * commits + i) * 100 + process
            opened[table].upsert(rows((key, value)))
            told.write(json.dumps([[table], key, value]) + "\n")


def _transfer(database: rs.Database, draws: random.Random, tables: int) -> list[int]:
    """Move money between accounts of several tables, again after each conflict."""
    chosen = draws.sample(range(tables), min(tables, draws.choice((2, 3))))
    while True:
        try:
            with database.transaction() as tx:
                key = draws.randrange(ACCOUNTS)
                amount = draws.randrange(1, 9)
                payer, payee = tx.table(f"t{chosen[0]}"), tx.table(f"t{chosen[1]}")
                for table, change in ((payer, -amount), (payee, amount)):
                    (row,) = table.scan(f"k = {key}").to_arrow().to_pylist()
                    table.upsert(rows((key, row["v"] + change)))
                for other in chosen[2:]:
                    tx.table(f"t{other}").count(f"k < {ACCOUNTS}")
        except (TransactionConflict, CommitConflict):
            time.sleep(0.01 * draws.random())
        else:
            return chosen[:2]


def check(folder: Path, tables: int) -> int:
    """Compare the database with what its processes were told; return the commits of tables."""
    states: dict[tuple[int, int], int] = {}
    versions: Counter[int] = Counter()
    lines: list[list[Any]] = []
    for path in sorted(folder.glob("told-*"), key=lambda path: int(path.name.split("-")[2])):
        lines += map(json.loads, path.read_text().splitlines())
    for changed, key, value in lines:
        versions.update(changed)
        if key is not None:
            states[changed[0], key] = value
    database = rs.Database(folder / "db")
    money = 0
    for i in range(tables):
        table = database.open_table(f"t{i}")
        found = {row["k"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
        money += sum(found[key] for key in range(ACCOUNTS))
        own = {key: value for (where, key), value in states.items() if where == i}
        assert {key: v for key, v in found.items() if key >= ACCOUNTS} == own, f"t{i}"
        compactions = sum(commit.operation == "compact" for commit in table.history())
        assert table.version - compactions == versions[i], f"t{i}"
    assert money == tables * ACCOUNTS * MONEY
    return sum(versions.values())


def run(folder: Path, processes: int, commits: int, tables: int) -> tuple[int, float]:
    """Run the processes and check; acknowledged commits of tables so far, and the seconds."""
    database = begin(folder, tables)
    seed = len(list(folder.glob("told-0-*")))
    begun_s = time.perf_counter()
    started = [start(work, str(folder), each, commits, tables, seed) for each in range(processes)]
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * processes, database
    elapsed_s = time.perf_counter() - begun_s
    return check(folder, tables), elapsed_s


if __name__ == "__main__":
    place, *numbers = sys.argv[1:]
    Path(place).mkdir(exist_ok=True)
    total, seconds = run(Path(place), *map(int, numbers))
    sys.stdout.write(f"{total} commits of tables acknowledged so far; {seconds:.0f} s\n")
