"""Bar: pages that a box of two columns reads, of clustered rows and of rows as they were appended.

A box has a tenth of the values of either column, so it has about a hundredth of the rows. Pages
are counted, so the figures are the same on every machine.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.result import Bar, expect

MAX_SHARE = 0.1
BOXES = 50
APPENDS = 4
ORDERS = ("hilbert(value, quantity)", "zorder(value, quantity)", "value, quantity", "")


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Read the same boxes of each order, after appends and a compaction."""
    boxes = _boxes()
    pages, counts = {}, {}
    for number, order in enumerate(ORDERS):
        properties = {"cluster_by": order} if order else {}
        table = rs.create_table(folder / str(number), data.rows(0).schema, properties=properties)
        for seed in range(APPENDS):
            table.append(data.rows(sizes.expression_rows // APPENDS, seed))
        table.compact()
        pages[order] = sum(_pages(table, box) for box in boxes)
        counts[order] = [table.scan(box).count() for box in boxes]
        expect(f"rows of the boxes in order {order!r}", counts[order], counts[ORDERS[0]])
    shares = {order: pages[order] / pages[""] for order in ORDERS[:-1]}
    shown = ", ".join(f"{order} {share:.1%}" for order, share in shares.items())
    return Bar(
        name="clustering",
        promise=f"a box with 1% of {sizes.expression_rows:,} rows reads at most {MAX_SHARE:.0%} "
        "of the pages that it reads of rows without an order, on either curve",
        found=f"{shown}; without an order {pages[''] / BOXES:.1f} pages a box",
        met=max(shares[ORDERS[0]], shares[ORDERS[1]]) <= MAX_SHARE,
        facts={"pages": pages},
    )


def _boxes() -> list[str]:
    """Conditions with a tenth of the values of both columns."""
    drawn = np.random.default_rng(7)
    values = np.quantile(np.random.default_rng(8).normal(size=100_000), np.arange(1001) / 1000)
    found = []
    for _ in range(BOXES):
        value, quantity = drawn.integers(1, 900), drawn.integers(0, 9_000)
        found.append(
            f"value >= {values[value]:.6f} AND value < {values[value + 100]:.6f} "
            f"AND quantity >= {quantity} AND quantity < {quantity + 1_000}"
        )
    return found


def _pages(table: rs.Table, where: str) -> int:
    """The pages of a column that the scan reads."""
    parts = table.scan(where).explain(row_groups=True).groups[0].parts
    return sum(part.row_groups.pages_read for part in parts if part.row_groups is not None)
