"""Bar: warm reads of few rows, compared with DataFusion's own Parquet reader over the same files.

The table is clean, so DataFusion can read its data files directly, with filters pushed into its
reader. Every read uses different keys; both systems use the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from datafusion import SessionConfig, SessionContext

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.merged_table import base
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import take_turns
from benchmarks.result import Bar, Case, expect

MOST_RATIO = 1.2
OURS, PEER = "rowsieve", "DataFusion, the same files"
KEYS = 10
CASES = ("point", "10 keys", "0.01% range", "1% range")


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Measure the CPU of each kind of read by both systems, in turns."""
    made = base(folder / "clean", sizes.rows, sizes.chunks, wide=False)
    table = rs.open_table(str(made.folder / "table"))
    pushdown = {"datafusion.execution.parquet.pushdown_filters": "true"}
    context = SessionContext(SessionConfig(pushdown))
    context.register_parquet("t", str(made.folder / "table" / "data"))
    systems = {OURS: partial(_ours, table), PEER: partial(_theirs, context)}
    rng = np.random.default_rng(7)
    cases = []
    for name in CASES:
        asked = [_condition(name, sizes.rows, rng) for _ in range(sizes.lookups + 1)]
        works = {system: _each(ask, asked) for system, ask in systems.items()}
        cases.append(Case(name, take_turns(works, sizes.lookups)))
    ratios = {case.name: case.of(OURS).cpu_s() / case.of(PEER).cpu_s() for case in cases}
    found = "; ".join(
        f"{case.name} {case.of(OURS).cpu_s() * 1e3:.1f} ms, {ratios[case.name]:.2f}x"
        for case in cases
    )
    return Bar(
        name="small reads",
        promise=f"{', '.join(CASES[1:])} of {sizes.rows:,} rows, warm: at most {MOST_RATIO} times "
        "the CPU of DataFusion's reader over the same files",
        found=found,
        met=all(ratios[name] <= MOST_RATIO for name in CASES[1:]),
        cases=cases,
        facts={"ratios": ratios},
    )


def _condition(name: str, rows: int, rng: np.random.Generator) -> tuple[str, int]:
    """A condition as SQL, and the number of rows that match."""
    if name == "point":
        return f"{data.KEY} = {int(rng.integers(0, rows)) * 2}", 1
    if name == "10 keys":
        keys = rng.choice(rows, KEYS, replace=False) * 2
        return f"{data.KEY} IN ({', '.join(map(str, keys.tolist()))})", KEYS
    width = max(1, rows // (10_000 if name == "0.01% range" else 100))
    start = int(rng.integers(0, rows - width)) * 2
    return f"{data.KEY} BETWEEN {start} AND {start + 2 * width - 1}", width


def _each(ask: Callable[[str], int], asked: list[tuple[str, int]]) -> Callable[[], None]:
    """Work that uses the next condition at each call."""
    waiting = iter(asked)

    def work() -> None:
        condition, wanted = next(waiting)
        expect(f"rows where {condition}", ask(condition), wanted)

    return work


def _ours(table: rs.Table, condition: str) -> int:
    return int(table.scan(condition).to_arrow().num_rows)


def _theirs(context: Any, condition: str) -> int:
    return int(context.sql(f"SELECT * FROM t WHERE {condition}").to_arrow_table().num_rows)
