"""Bars: reading a whole changed table, compared with mere decoding and with SQL engines.

Cold is the first read of a process, which resolves visibility; warm is its second read. Speeds are
those of one thread, as for pyarrow. Other bars measure the memory of such reads on all cores, and
parts that need no merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.merged_table import MergedTable, base, changed
from benchmarks.bars.race import (
    CACHED,
    DATAFUSION,
    DECODE,
    DUCKDB,
    OURS,
    PARALLEL,
    VERIFIED,
    Race,
    speed,
    times,
)
from benchmarks.bars.sizes import Sizes
from benchmarks.result import Bar, Case

MOST_GROWTH_BYTES = 256_000_000
LEAST_PASS_THROUGH = 0.9
LEAST_STORED = 0.9  # of the speed of a second read


@dataclass(frozen=True, slots=True)
class Promise:
    """Least shares of the decoding speed, and least multiples of the engines' speeds."""

    share: float
    cold: float
    warm: float
    duckdb: float
    datafusion: float


PROMISES = (Promise(0.01, 0.55, 0.85, 3, 10), Promise(0.5, 0.50, 0.80, 2.5, 10))


def measure(sizes: Sizes, folder: Path) -> list[Bar]:
    """Two shares of changed rows, 5 and 8 columns each; then the memory of all."""
    clean = base(folder / "clean", sizes.merged_rows, sizes.chunks, wide=True)
    bars, growths = [], {}
    for promise in PROMISES:
        table = changed(clean, folder / f"{promise.share}", promise.share, sizes.deltas)
        race = Race(table, (OURS, PARALLEL, DECODE, VERIFIED, DUCKDB, DATAFUSION))
        for columns in (data.COLUMNS, data.WIDE):
            bar = _merged(sizes, race, table, promise, columns)
            bars.append(bar)
            growths[bar.name] = bar.cases[0].of(PARALLEL).growth_bytes()
    narrow = base(folder / "narrow", sizes.big_rows, 3 * sizes.chunks, wide=False)
    big = changed(narrow, folder / "big", PROMISES[0].share, sizes.deltas)
    repeats = {OURS: 1, PARALLEL: 1, VERIFIED: 1}
    case = Race(big, tuple(repeats)).run(f"{sizes.big_rows:,} rows", data.COLUMNS, repeats)
    growths[case.name] = case.of(PARALLEL).growth_bytes()
    return [*bars, _memory(growths, case)]


def stored(sizes: Sizes, folder: Path) -> list[Bar]:
    """The first read of a process with stored deletion vectors, and its second read."""
    clean = base(folder / "clean", sizes.merged_rows, sizes.chunks, wide=False)
    bars = []
    for promise in PROMISES:
        table = changed(clean, folder / f"{promise.share}", promise.share, sizes.deltas)
        rs.open_table(str(table.folder / "table")).build_deletion_vectors()
        name = f"stored vectors, {promise.share:.0%} changed"
        case = Race(table, (OURS,)).run(name, data.COLUMNS, {OURS: sizes.long_repeats})
        ratio = times(case, OURS, CACHED)
        assert ratio is not None
        bars.append(
            Bar(
                name=name,
                promise=f"{table.base_rows:,} rows, {table.input_rows:,} stored: the first read "
                f"of a process at {LEAST_STORED:.0%} of the speed of its second",
                found=f"{ratio:.2f} (million rows per CPU second: "
                f"{speed(table, case, OURS):.1f}, {speed(table, case, CACHED):.1f})",
                met=ratio >= LEAST_STORED,
                cases=[case],
            )
        )
    return bars


def disjoint(sizes: Sizes, folder: Path) -> Bar:
    """Sorted appends that share no key need no merge."""
    table = base(folder / "disjoint", sizes.rows, 10, wide=False)
    repeats = {OURS: sizes.repeats, DECODE: sizes.repeats, VERIFIED: sizes.repeats}
    case = Race(table, tuple(repeats)).run("disjoint parts", data.COLUMNS, repeats)
    plain, verified = times(case, OURS, DECODE), times(case, OURS, VERIFIED)
    assert plain is not None
    return Bar(
        name="disjoint parts",
        promise=f"{sizes.rows:,} rows in 10 sorted appends: at least {LEAST_PASS_THROUGH:.0%} of "
        "pyarrow's decoding speed",
        found=f"{plain:.0%} of decoding, {verified:.0%} of decoding with checksums",
        met=plain >= LEAST_PASS_THROUGH,
        cases=[case],
    )


def _merged(
    sizes: Sizes, race: Race, table: MergedTable, promise: Promise, columns: Sequence[str]
) -> Bar:
    name = f"merged read, {promise.share:.0%} changed, {len(columns)} columns"
    repeats = dict.fromkeys((OURS, PARALLEL, DECODE, VERIFIED, DUCKDB), sizes.long_repeats)
    case = race.run(name, columns, repeats | {DATAFUSION: 1})
    ratios = {
        "cold": (times(case, OURS, DECODE), promise.cold),
        "visibility known": (times(case, CACHED, DECODE), promise.warm),
        "cold, of decoding with checksums": (times(case, OURS, VERIFIED), None),
        "visibility known, of decoding with checksums": (times(case, CACHED, VERIFIED), None),
        "DuckDB": (times(case, OURS, DUCKDB), promise.duckdb),
        "DataFusion": (times(case, OURS, DATAFUSION), promise.datafusion),
    }
    return Bar(
        name=name,
        promise=f"{table.base_rows:,} rows, {table.input_rows:,} stored: {promise.cold:.0%} of "
        f"pyarrow's decoding speed cold, {promise.warm:.0%} with visibility known; "
        f"{promise.duckdb}x DuckDB's QUALIFY, {promise.datafusion}x DataFusion's row_number",
        found=_found(table, case, ratios),
        met=_met(ratios),
        cases=[case],
        facts={
            "ratios": {name: ratio for name, (ratio, _) in ratios.items()},
            "input_rows": table.input_rows,
        },
    )


def _found(
    table: MergedTable, case: Case, ratios: dict[str, tuple[float | None, float | None]]
) -> str:
    speeds = ", ".join(
        f"{name} {speed(table, case, name):.1f}" for name in (one.system for one in case.series)
    )
    pieces = []
    for name, (ratio, least) in ratios.items():
        if ratio is not None:
            verdict = "" if least is None else " met" if ratio >= least else " MISSED"
            pieces.append(f"{name} {ratio:.2f}{verdict}")
    return f"{'; '.join(pieces)} (million rows per CPU second: {speeds})"


def _met(ratios: dict[str, tuple[float | None, float | None]]) -> bool | None:
    promised = [(ratio, least) for ratio, least in ratios.values() if least is not None]
    if any(ratio is not None and ratio < least for ratio, least in promised):
        return False
    return None if any(ratio is None for ratio, _ in promised) else True


def _memory(growths: dict[str, int | None], case: Case) -> Bar:
    known = {name: growth for name, growth in growths.items() if growth is not None}
    most = max(known.values(), default=None)
    return Bar(
        name="memory of merged reads",
        promise=f"streaming them grows a process by less than {MOST_GROWTH_BYTES / 1e6:.0f} MB",
        found="; ".join(f"{name} {growth / 1e6:.0f} MB" for name, growth in known.items()),
        met=None if most is None else most < MOST_GROWTH_BYTES,
        cases=[case],
        facts={"growth_bytes": known},
    )
