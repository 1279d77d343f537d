"""Bar: an upsert of some columns of random rows, compared with the same merge by deltalake."""

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

MOST_CPU_S = 0.5
LEAST_RATIO = 5
GIVEN = ["id", "value", "quantity"]  # `value` replaces, `quantity` is added, the others are kept
Upsert = Callable[[pa.Table], object]
Read = Callable[[], pa.Table]


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Give two columns of random rows in each round; compare all rows after the first and last."""
    base = data.rows(sizes.rows)
    expected = base
    systems = {"rowsieve": _rowsieve(folder / "ours", base)}
    if (peer := _deltalake(folder / "delta", base)) is not None:
        systems["deltalake merge"] = peer
    series = {name: Series(name) for name in systems}
    for turn in range(sizes.repeats + 1):
        given = data.changes(sizes.rows, sizes.changed, seed=turn).select(GIVEN)
        expected = _changed(expected, given)
        for name, (upsert, _) in systems.items():
            with sampled() as sample:
                upsert(given)
            if turn:
                series[name].samples.append(sample)
        if turn in (0, sizes.repeats):
            for name, (_, read) in systems.items():
                if not data.same_rows(read(), expected):
                    raise WrongAnswer(f"partial upsert: {name} has other rows than it should")
        os.sync()  # the next upsert's fsync must not pay for the merge's dirty pages
    return _bar(sizes, Case("partial upsert", list(series.values())))


def _changed(rows: pa.Table, given: pa.Table) -> pa.Table:
    """The rows in key order, after what is given of them."""
    keys = rows.column(data.KEY).to_numpy()
    given = given.sort_by(data.KEY)
    places = keys.searchsorted(given.column(data.KEY).to_numpy())
    values = rows.column("value").to_numpy().copy()
    values[places] = given.column("value").to_numpy()
    quantities = rows.column("quantity").to_numpy().copy()
    quantities[places] += given.column("quantity").to_numpy()
    rows = rows.set_column(1, "value", pa.array(values))
    return rows.set_column(2, "quantity", pa.array(quantities))


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
        name="partial upsert",
        promise=f"two columns of {sizes.changed:,} random rows into {sizes.rows:,}: at most "
        f"{MOST_CPU_S} s CPU, and {LEAST_RATIO}x less than deltalake's merge",
        found=found,
        met=met,
        cases=[case],
    )


def _rowsieve(folder: Path, base: pa.Table) -> tuple[Upsert, Read]:
    table = rs.create_table(str(folder), base, key=[data.KEY])

    def upsert(given: pa.Table) -> object:
        return table.upsert(given, columns="given", combine={"quantity": "sum"})

    return upsert, lambda: table.scan().to_arrow()


def _deltalake(folder: Path, base: pa.Table) -> tuple[Upsert, Read] | None:
    try:
        from deltalake import DeltaTable, QueryBuilder, write_deltalake
    except ImportError:
        return None
    write_deltalake(str(folder), base)
    given_columns = {"value": "s.value", "quantity": "t.quantity + s.quantity"}

    def upsert(given: pa.Table) -> object:
        merge = DeltaTable(str(folder)).merge(
            given, "t.id = s.id", source_alias="s", target_alias="t"
        )
        inserted = {name: f"s.{name}" for name in GIVEN}
        matched = merge.when_matched_update(given_columns)
        return matched.when_not_matched_insert(inserted).execute()

    def read() -> pa.Table:
        query = QueryBuilder().register("t", DeltaTable(str(folder))).execute("SELECT * FROM t")
        return pa.table(query)

    return upsert, read
