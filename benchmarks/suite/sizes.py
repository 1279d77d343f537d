"""The sizes of the suite: small for daily use, full for releases, tiny for tests of the harness."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of the table and how often each work is repeated.

    `chunks`: sorted commits that the table is loaded in. `few_commits` change 1% of the rows in
    all, `many_commits` half of them. `compared_rows`: up to here rows are compared one by one,
    above by count and sums. `parts`: how many parts the planned tables have.
    """

    rows: int = 5_000_000
    chunks: int = 10
    few_commits: int = 8
    many_commits: int = 10
    upserted: int = 50_000
    repeats: int = 3
    points: int = 15
    commits: int = 50
    parts: tuple[int, ...] = (10_000, 100_000)
    compared_rows: int = 200_000


FULL = Sizes()
SMALL = Sizes(rows=500_000, upserted=5_000)
TINY = Sizes(
    rows=2_000, chunks=3, few_commits=2, upserted=20, repeats=1, points=2, commits=3, parts=(20,)
)
BY_NAME = {"small": SMALL, "full": FULL, "tiny": TINY}
