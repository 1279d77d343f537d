"""After a power cut at any call a database has every commit that it acknowledged, and opens.

Invariants, rule 3 and 40: unsynced writes survive in any order, in part or not at all, and a commit
of several tables is there for all of them or for none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import rowsieve as rs
from rowsieve.storage.log.log_head import _seen
from tests.daily import today
from tests.faults.power import Journal
from tests.profiles import IS_DEEP
from tests.small_tables import kv

CUTS = 4 if IS_DEEP else 1
"""Power cuts at each call."""

Rows = Mapping[str, list[tuple[int, int]]]


def transfer(database: rs.Database) -> None:
    """Change two tables and create one, in one entry."""
    with database.transaction() as tx:
        tx.table("a").upsert(kv((1, 0)))
        tx.table("b").upsert(kv((1, 20)))
        tx.create_table("c", kv((7, 7)), ["k"])


CHANGES: dict[str, Callable[[rs.Database], object]] = {
    "upsert": lambda database: database.open_table("a").upsert(kv((3, 3), (1, 7))),
    "transaction": transfer,
    "tag": lambda database: database.tag("q3"),
    "drop": lambda database: database.drop_table("b"),
    "vacuum": lambda database: database.vacuum(retain_s=0),
}


CASES = [(name, inline_bytes) for name in CHANGES for inline_bytes in (0, 16_384)]
EVERY = 1 if IS_DEEP else 3
"""Of the calls, those after which the power is cut."""


@pytest.mark.parametrize(
    ("name", "inline_bytes"), CASES if IS_DEEP else [("transaction", 0), ("vacuum", 16_384)]
)
def test_a_power_cut_leaves_all_of_a_commit_or_nothing(
    name: str, inline_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "db"
    database = rs.Database(path)
    for table in "ab":
        database.create_table(table, kv((1, 10)), ["k"], properties={"inline_bytes": inline_bytes})
    states = [rows_of(database)]
    with monkeypatch.context() as patch:
        journal = Journal(path, patch)
        CHANGES[name](database)
        acknowledged = len(journal.calls)
        states.append(rows_of(database))
        database.open_table("a").upsert(kv((9, 9)))  # is cut off before it returns
        total = len(journal.calls) - 1
    states.append(rows_of(database))
    draws, fresh = random.Random(name), random.Random(f"{name} {today()}")
    for cut in range(0, total, EVERY):
        for number in range(CUTS):
            target = tmp_path / f"{cut}.{number}"
            journal.survivor(cut, draws if cut % 3 else fresh, target)
            _seen.clear()
            survivor = rs.Database(target)
            allowed = states[1:] if cut >= acknowledged else states
            found = rows_of(survivor)
            assert found in allowed, (cut, journal.calls[cut])
            survivor.open_table("a").upsert(kv((5, 5)))
            assert rows_of(survivor) == {**found, "a": sorted([*found["a"], (5, 5)])}


def rows_of(database: rs.Database) -> Rows:
    return {
        name: sorted(
            (row["k"], row["v"]) for row in database.open_table(name).to_arrow().to_pylist()
        )
        for name in database.tables()
    }
