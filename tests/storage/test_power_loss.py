"""After a power cut at any call a table has every commit that it acknowledged, and opens.

Invariants, rule 3: unsynced writes survive in any order, in part or not at all.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import rowsieve
from rowsieve import Table
from rowsieve.storage.log.log_head import _seen
from tests.daily import today
from tests.faults.power import Journal
from tests.profiles import IS_DEEP
from tests.small_tables import kv

CUTS = 4 if IS_DEEP else 1
"""Power cuts at each call."""

CHANGES: dict[str, Callable[[Table], object]] = {
    "upsert": lambda t: t.upsert(kv((3, 3), (1, 7))),
    "update": lambda t: t.update({"v": "v + 1"}),
    "compact": lambda t: t.compact(),
    "expire": lambda t: t.vacuum(retain_last=1, grace_s=0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_power_cut_loses_no_acknowledged_commit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"checkpoint_interval": "2", "statistics_inline_bytes": "1"}
    path = tmp_path / "table"
    table = rowsieve.create_table(str(path), kv((1, 1)), key=["k"], properties=properties)
    table.upsert(kv((2, 2)))
    before, rows = table.version, pairs(table)
    with monkeypatch.context() as patch:
        journal = Journal(path, patch)
        CHANGES[name](table)
        acknowledged = len(journal.calls)
        table.upsert(kv((9, 9)))  # is cut off before it returns
        total = len(journal.calls) - 1
    states = {before: rows, table.version: pairs(table)}
    for version in range(before, table.version):
        is_kept = version >= table.history()[-1].version
        states[version] = (
            pairs(rowsieve.open_table(str(path), version=version)) if is_kept else rows
        )
    draws, fresh = random.Random(name), random.Random(f"{name} {today()}")
    for cut in range(total):
        for number in range(CUTS):
            target = tmp_path / f"{cut}.{number}"
            journal.survivor(cut, draws if cut % 3 else fresh, target)
            _seen.clear()
            found = rowsieve.open_table(str(target))
            least = table.version - 1 if cut >= acknowledged else before
            assert least <= found.version <= table.version, (cut, journal.calls[cut])
            assert pairs(found) == states[found.version], (cut, journal.calls[cut])
            assert found.upsert(kv((5, 5))).version == found.version


def pairs(table: Table) -> list[tuple[int, int]]:
    return sorted((row["k"], row["v"]) for row in table.scan().to_arrow().to_pylist())
