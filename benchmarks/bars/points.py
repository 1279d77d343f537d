"""Bar: looking up one key in a changed table, warm."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.bars import race
from benchmarks.bars.merged_table import base, changed
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series
from benchmarks.peers.registry import STREAMS
from benchmarks.result import Bar, Case, expect
from benchmarks.suite.runners import running

MAX_BYTES = 2_000_000
MOST_CPU_S = 0.0035
WARM_UP = 3


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Look up different keys, after a warm-up; every byte read counts, cached or not.

    The bar uses lookups that each run alone, after a garbage collection. The same number of
    consecutive lookups then shows what the collection costs.
    """
    clean = base(folder / "clean", sizes.rows, sizes.chunks, wide=False)
    table = changed(clean, folder / "table", 0.01, sizes.deltas)
    count = WARM_UP + 2 * sizes.lookups
    drawn = np.random.default_rng(7).choice(sizes.rows, count, replace=False) * 2
    alone, in_a_row = np.split(drawn, [WARM_UP + sizes.lookups])
    series = Series(race.OURS)
    with running(race.START, "streams", STREAMS[0], table.folder) as runner:
        runner.ask("open")
        for i, key in enumerate(alone):
            rows, sample = runner.ask("look_up", key=int(key))
            expect(f"rows with key {key}", rows, 1)
            if i == 0:
                series.first = sample
            if i >= WARM_UP:
                series.samples.append(sample)
        rows, together = runner.ask("look_up_each", keys=in_a_row.tolist())
        expect("rows with these keys", rows, sizes.lookups)
    assert series.first is not None
    cpu_s = together.cpu_s / sizes.lookups
    sizes_read = [s.bytes_read for s in series.samples if s.bytes_read is not None]
    found = (
        f"{series.cpu_s() * 1e3:.1f} ms CPU alone after a garbage collection, the first "
        f"{series.first.cpu_s * 1e3:.0f} ms; {cpu_s * 1e3:.1f} ms one after another"
    )
    if sizes_read:
        found = f"{series.bytes_read() or 0:,} bytes, at most {max(sizes_read):,}; {found}"
    met = series.cpu_s() <= MOST_CPU_S
    return Bar(
        name="point lookup",
        promise=f"one key of {sizes.rows:,} after {sizes.deltas} commits of random upserts: under "
        f"{MAX_BYTES:,} bytes read each time, at most {MOST_CPU_S * 1e3:.1f} ms CPU, warm",
        found=found,
        met=(met and max(sizes_read) < MAX_BYTES) if sizes_read else None,
        cases=[Case("point lookup", [series])],
    )
