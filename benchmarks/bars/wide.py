"""Bars: tables of thousands of columns, and conditions of thousands of terms.

Creating and upserting a wide table is compared with deltalake's plain writes of the same rows,
which have no key, because its merge of 5,000 columns takes minutes. Rows are compared before
anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Work, take_turns
from benchmarks.result import Bar, Case, WrongAnswer

MOST_RATIO = 3.0
MOST_WALL_S = 2.0
ROWS = 10
LONG_ROWS = 20_000
KINDS: dict[str, Callable[[int], str]] = {
    "equals": lambda i: f"{'ab'[i % 2]} = {i}",
    "pairs": lambda i: f"(a = {i} AND b = {i % 7})",
    "ranges": lambda i: f"(a >= {3 * i} AND b < {i % 7})",
}


def columns(sizes: Sizes, folder: Path) -> Bar:
    """Create and upsert ten rows of many columns, compared with deltalake's write and append."""
    base = _wide(sizes.columns, 0)
    works: dict[str, dict[str, Work]] = {"create": {}, "upsert": {}}
    table = rs.create_table(str(folder / "ours"), base, key=["c0"])
    changed = _wide(sizes.columns, ROWS // 2)
    table.upsert(changed)
    expected = pa.concat_tables([base.slice(0, ROWS // 2), changed])
    _check("rowsieve", table.to_arrow(), expected)
    fresh = map(str, count())
    works["create"]["rowsieve"] = lambda: rs.create_table(
        str(folder / next(fresh)), base, key=["c0"]
    )
    works["upsert"]["rowsieve"] = lambda: table.upsert(changed)
    if (peer := _deltalake(folder, base, changed, fresh)) is not None:
        works["create"]["deltalake write"], works["upsert"]["deltalake append"] = peer
    cases = [Case(name, take_turns(each, sizes.long_repeats)) for name, each in works.items()]
    found, ratios = [], []
    for case in cases:
        ours, *others = case.series
        found.append(f"{case.name} {ours.wall_s():.2f} s")
        for other in others:
            ratios.append(ours.wall_s() / other.wall_s())
            found[-1] += f", {other.system} {other.wall_s():.2f} s, {ratios[-1]:.1f}x"
    return Bar(
        name="wide tables",
        promise=f"{ROWS} rows of {sizes.columns:,} columns created and upserted: at most "
        f"{MOST_RATIO:g}x the time of deltalake's write and append",
        found="; ".join(found),
        met=all(ratio <= MOST_RATIO for ratio in ratios) if ratios else None,
        cases=cases,
    )


def terms(sizes: Sizes, folder: Path) -> Bar:
    """Scan with ORs of many terms over two columns, planned and evaluated anew each time."""
    ids = np.arange(LONG_ROWS)
    rows = pa.table({"id": ids, "a": ids % 5_000, "b": ids % 7})
    table = rs.create_table(str(folder / "t"), rows, key=["id"])
    turn = count()
    works: dict[str, Work] = {}
    for name, term in KINDS.items():
        text = " OR ".join(map(term, range(sizes.terms)))
        found = table.scan(text).to_arrow().column("id").to_pylist()
        if sorted(found) != np.flatnonzero(_matches(name, rows, sizes.terms)).tolist():
            raise WrongAnswer(f"long conditions: {name} gave other rows")
        works[name] = partial(_anew, table, text, turn)
    case = Case("long conditions", take_turns(works, sizes.long_repeats, warm_up=False))
    slowest = max(case.series, key=lambda series: series.wall_s())
    return Bar(
        name="long conditions",
        promise=f"{sizes.terms:,} terms over two columns with OR: under {MOST_WALL_S:g} s",
        found="; ".join(f"{each.system} {each.wall_s():.2f} s" for each in case.series),
        met=slowest.wall_s() < MOST_WALL_S,
        cases=[case],
    )


def _anew(table: rs.Table, text: str, turn: Iterator[int]) -> pa.Table:
    """The rows of the condition in another text each time, so that no plan is reused."""
    return table.scan(f"{text} OR a = -{1 + next(turn)}").to_arrow()


def _matches(kind: str, rows: pa.Table, number: int) -> Any:
    """(n,) bool: the rows that the condition keeps, by arithmetic alone."""
    a, b = rows.column("a").to_numpy(), rows.column("b").to_numpy()
    if kind == "equals":
        return ((a < number) & (a % 2 == 0)) | ((b < number) & (b % 2 == 1))
    if kind == "pairs":
        return (a < number) & (a % 7 == b)
    least = [min(range(r, number, 7), default=number) for r in range(7)]  # the first i of each rest
    return np.logical_or.reduce([(a >= 3 * least[r]) & (b < r) for r in range(7)])


def _wide(number: int, start: int) -> pa.Table:
    return pa.table({f"c{i}": np.arange(start, start + ROWS) + i for i in range(number)})


def _check(system: str, found: pa.Table, expected: pa.Table) -> None:
    ordered = found.sort_by("c0").to_pydict()
    if ordered != expected.to_pydict():
        raise WrongAnswer(f"wide tables: {system} does not hold the rows that it should")


def _deltalake(
    folder: Path, base: pa.Table, changed: pa.Table, fresh: Any
) -> tuple[Work, Work] | None:
    try:
        from deltalake import DeltaTable, write_deltalake
    except ImportError:
        return None
    target = str(folder / "delta")
    write_deltalake(target, base)
    _check("deltalake", pa.table(DeltaTable(target).to_pyarrow_table()), base)
    return (
        lambda: write_deltalake(str(folder / f"delta{next(fresh)}"), base),
        lambda: write_deltalake(target, changed, mode="append"),
    )
