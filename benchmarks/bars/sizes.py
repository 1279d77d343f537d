"""The sizes of the bars: as promised, or tiny for tests of the harness."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.suite import sizes as suite


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of the base table, rows of an upsert, and so on; `repeats` per timed work.

    `merged_rows`, `engine_rows` and `big_rows` are streamed, `long_repeats` times; `chunks` are the
    commits that load them, `deltas` those that change them. `files` are imported. `suite`: the
    suite among table formats.
    """

    rows: int = 5_000_000
    changed: int = 50_000
    repeats: int = 7
    processes: int = 8
    commits_each: int = 200
    log_length: int = 1_000
    queries: int = 500
    merged_rows: int = 20_000_000
    engine_rows: int = 40_000_000
    big_rows: int = 60_000_000
    long_repeats: int = 3
    chunks: int = 4
    deltas: int = 8
    lookups: int = 50
    parts: int = 1_000_000
    tight_predicates: int = 200
    expression_rows: int = 1_000_000
    collected: int = 4_000_000
    list_values: int = 1_000_000
    terms: int = 10_000
    columns: int = 5_000
    one_row_upserts: int = 5_000
    small_files: int = 500
    published_parts: int = 1_000
    compacted_rows: int = 12_000_000
    mixed_steps: int = 5_000
    months: tuple[int, ...] = (1, 12, 120)
    monthly: int = 100_000
    files: int = 10_000
    suite: suite.Sizes = suite.FULL
    make_environments: bool = True


PROMISED = Sizes()
TINY = Sizes(
    rows=3_000,
    changed=200,
    repeats=2,
    processes=2,
    commits_each=3,
    log_length=12,
    queries=15,
    merged_rows=2_000,
    engine_rows=3_000,
    big_rows=3_000,
    long_repeats=1,
    deltas=2,
    lookups=3,
    parts=100,
    tight_predicates=3,
    expression_rows=20_000,
    collected=2_000,
    list_values=2_000,
    terms=300,
    columns=60,
    one_row_upserts=8,
    small_files=6,
    published_parts=8,
    compacted_rows=4_000,
    mixed_steps=40,
    months=(1, 3),
    monthly=200,
    files=12,
    suite=suite.TINY,
    make_environments=False,
)
BY_NAME = {"full": PROMISED, "tiny": TINY}
