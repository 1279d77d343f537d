"""Bar: the net changes of many commits, compared with reading all rows of the last version once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import take_turns
from benchmarks.result import Bar, Case, expect

MOST_RATIO = 2.0
NET, READ = "net changes", "reading the rows once"


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Net changes of `log_length` upserts, before and after a compaction; answers are checked."""
    table = rs.create_table(str(folder / "table"), data.rows(sizes.rows), key=[data.KEY])
    first = table.version + 1
    updates = []
    for turn in range(sizes.log_length):
        updates.append(data.changes(sizes.rows, max(1, sizes.changed // 100), seed=turn))
        table.upsert(updates[-1])
    after = _last_of_each_key(pa.concat_tables(updates))
    expected = data.replaced(data.rows(sizes.rows), after)
    cases = [_case(f"{sizes.log_length:,} commits", table, first, after, expected, sizes)]
    table.compact()
    cases.append(_case("compacted since", table, first, after, expected, sizes))
    ratios = {case.name: case.of(NET).cpu_s() / case.of(READ).cpu_s() for case in cases}
    return Bar(
        name="net changes",
        promise=f"of {sizes.log_length:,} commits over {sizes.rows:,} rows: within {MOST_RATIO:g} "
        "times of the CPU of reading the rows once",
        found="; ".join(
            f"{case.name}: {ratios[case.name]:.2f}x, {case.of(NET).cpu_s():.2f} s "
            f"for {after.num_rows:,} changed rows"
            for case in cases
        ),
        met=all(ratio <= MOST_RATIO for ratio in ratios.values()),
        cases=cases,
        facts={"ratios": ratios},
    )


def _last_of_each_key(rows: pa.Table) -> pa.Table:
    """The last row of each key, in key order."""
    keys = rows.column(data.KEY).to_numpy()
    _, first_from_behind = np.unique(keys[::-1], return_index=True)
    return rows.take(pa.array(len(keys) - 1 - first_from_behind)).combine_chunks()


def _case(
    name: str, table: rs.Table, first: int, after: pa.Table, rows: pa.Table, sizes: Sizes
) -> Case:
    """Both reads, each by a handle that has read nothing."""
    works: dict[str, Callable[[], pa.Table]] = {
        NET: lambda: rs.open_table(table.uri).changes(first, net=True).read_all(),
        READ: lambda: rs.open_table(table.uri).to_arrow(),
    }
    net = works[NET]()
    new = net.filter(pc.equal(net["_change_type"], "update_postimage"))
    names = after.column_names
    expect("net changes: rows after", data.same_rows(new.select(names), after), expected=True)
    expect("net changes: their number", net.num_rows, expected=2 * after.num_rows)
    expect("net changes: all rows", data.same_rows(works[READ](), rows), expected=True)
    return Case(name, take_turns(works, min(sizes.repeats, 3)))
