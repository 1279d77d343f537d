"""How big the bars are: as promised, or tiny to test the harness itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of the base table, rows of an upsert, and so on; `repeats` per timed work."""

    rows: int = 5_000_000
    changed: int = 50_000
    repeats: int = 7
    processes: int = 8
    commits_each: int = 200
    log_length: int = 1_000
    queries: int = 500


PROMISED = Sizes()
TINY = Sizes(
    rows=3_000, changed=200, repeats=2, processes=2, commits_each=3, log_length=12, queries=15
)
BY_NAME = {"promised": PROMISED, "tiny": TINY}
