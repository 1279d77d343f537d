"""Bar: the cost of an upsert of random rows, compared with the same merge by deltalake."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, WrongAnswer

MOST_CPU_S = 0.3
LEAST_RATIO = 10
Upsert = Callable[[pa.Table], object]
Read = Callable[[], pa.Table]


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Upsert new random rows in each round; compare all rows after the first and the last."""
    base = data.rows(sizes.rows)
    expected = base
    systems = {"rowsieve": _rowsieve(folder / "ours", base)}
    if (peer := _deltalake(folder / "delta", base)) is not None:
        systems["deltalake merge"] = peer
    series = {name: Series(name) for name in systems}
    for turn in range(sizes.repeats + 1):
        changed = data.changes(sizes.rows, sizes.changed, seed=turn)
        expected = data.replaced(expected, changed)
        for name, (upsert, _) in systems.items():
            with sampled() as sample:
                upsert(changed)
            if turn:
                series[name].samples.append(sample)
        if turn in (0, sizes.repeats):
            _check(systems, expected)
        os.sync()  # the next upsert's fsync must not pay for the merge's dirty pages
    return _bar(sizes, Case("upsert", list(series.values())))


def _bar(sizes: Sizes, case: Case) -> Bar:
    ours = case.of("rowsieve").cpu_s()
    found = f"{ours:.3f} s CPU"
    met: bool | None = None if ours <= MOST_CPU_S else False
    if len(case.series) > 1:
        peer = case.of("deltalake merge")
        ratio = peer.cpu_s() / ours
        found += f"; deltalake {peer.cpu_s():.2f} s, {ratio:.0f}x"
        met = ours <= MOST_CPU_S and ratio >= LEAST_RATIO
    return Bar(
        name="upsert",
        promise=f"{sizes.changed:,} random rows into {sizes.rows:,}: at most {MOST_CPU_S} s CPU, "
        f"and {LEAST_RATIO}x less than deltalake's merge",
        found=found,
        met=met,
        cases=[case],
    )


def _check(systems: dict[str, tuple[Upsert, Read]], expected: pa.Table) -> None:
    for name, (_, read) in systems.items():
        if not data.same_rows(read(), expected):
            raise WrongAnswer(f"upsert: {name} does not hold the rows that it should")


def _rowsieve(folder: Path, base: pa.Table) -> tuple[Upsert, Read]:
    table = rs.create_table(str(folder), base, key=[data.KEY])
    return table.upsert, lambda: table.scan().to_arrow()


def _deltalake(folder: Path, base: pa.Table) -> tuple[Upsert, Read] | None:
    try:
        from deltalake import DeltaTable, QueryBuilder, write_deltalake
    except ImportError:
        return None
    write_deltalake(str(folder), base)

    def upsert(changed: pa.Table) -> object:
        merge = DeltaTable(str(folder)).merge(
            changed, "t.id = s.id", source_alias="s", target_alias="t"
        )
        return merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def read() -> pa.Table:
        query = QueryBuilder().register("t", DeltaTable(str(folder))).execute("SELECT * FROM t")
        return pa.table(query)

    return upsert, read
