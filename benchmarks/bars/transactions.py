"""Bar: changes in one transaction, compared with the same changes as commits of their own.

Both end with the same rows. A transaction with one layer is committed as it was written; several
that share keys are merged first.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import take_turns
from benchmarks.result import Bar, Case, expect

CHANGES = 20
ROWS = 100
MOST_RATIO = 1.0
OBJECTS = 3  # of one commit: its entry, its list of parts, its file
TOGETHER, ALONE = f"{CHANGES} upserts in a transaction", f"{CHANGES} upserts alone"


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Upsert rows that overlap by half, in a transaction and alone; the rows are compared."""
    rows = data.rows(min(sizes.rows, 100_000))
    changes = [rows.slice(turn * ROWS // 2, ROWS) for turn in range(CHANGES)]
    tables = [rs.create_table(folder / name, rows, key=[data.KEY]) for name in ("one", "many")]
    before = _objects(folder / "one")
    _together(tables[0], changes)
    objects = _objects(folder / "one") - before
    _alone(tables[1], changes)
    both = [table.scan(order_by_key=True).to_arrow() for table in tables]
    same = data.same_rows(*both)
    expect("transactions: rows", same, expected=True)
    works = {
        TOGETHER: lambda: _together(tables[0], changes),
        ALONE: lambda: _alone(tables[1], changes),
    }
    case = Case("transactions", take_turns(works, min(sizes.repeats, 3)))
    ratio = case.of(TOGETHER).cpu_s() / case.of(ALONE).cpu_s()
    return Bar(
        name="transactions",
        promise=f"{CHANGES} upserts of {ROWS} rows in a transaction: the {OBJECTS} objects of one "
        f"commit, and at most {MOST_RATIO:g} times the CPU of {CHANGES} commits",
        found=f"{objects} objects, {ratio:.2f} times, {case.of(TOGETHER).cpu_s() * 1000:.0f} ms",
        met=objects <= OBJECTS and ratio <= MOST_RATIO,
        cases=[case],
        facts={"ratio": ratio, "objects": objects},
    )


def _together(table: rs.Table, changes: list[pa.Table]) -> None:
    with table.transaction() as tx:
        for rows in changes:
            tx.upsert(rows)


def _alone(table: rs.Table, changes: list[pa.Table]) -> None:
    for rows in changes:
        table.upsert(rows)


def _objects(folder: Path) -> int:
    """The objects that readers need: files of layers that were merged are orphans."""
    table = rs.open_table(folder)
    table.remove_orphans(grace_s=0)
    return sum(each.is_file() for each in folder.rglob("*"))
