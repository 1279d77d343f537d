"""Bar: the price of an event order: batches in order, batches that come late, and reads after."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, WrongAnswer

MOST_OF_A_READ = 1.25
MOST_LATE_CPU_S = 0.5
PLAIN, ORDERED = "without an order", "with an event order"


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Apply random changes to a table with an order and to one without; read both each time."""
    base = _with_sequence(data.rows(sizes.rows), 0)
    tables = {
        PLAIN: rs.create_table(str(folder / "plain"), base, key=[data.KEY]),
        ORDERED: rs.create_table(str(folder / "order"), base, key=[data.KEY], sequence=["lsn"]),
    }
    applying = {name: Series(name) for name in tables}
    reading = {name: Series(name) for name in tables}
    late = Series(ORDERED)
    expected = base
    for turn in range(sizes.repeats + 1):
        changed = _with_sequence(data.changes(sizes.rows, sizes.changed, seed=turn), turn + 10)
        expected = data.replaced(expected, changed)
        names = [PLAIN, ORDERED] if turn % 2 else [ORDERED, PLAIN]  # none is always the first
        for name in names:
            table = tables[name]
            with sampled() as sample:
                table.apply_changes(_stream(changed), op="op", sequence="lsn")
            with sampled() as read:
                rows = table.scan().to_arrow()
            if turn:
                applying[name].samples.append(sample)
                reading[name].samples.append(read)
            if turn in (0, sizes.repeats) and not data.same_rows(rows, expected):
                raise WrongAnswer(f"event order: the table {name} has other rows than it should")
        os.sync()
    for turn in range(sizes.repeats):
        delayed = _with_sequence(data.changes(sizes.rows, sizes.changed, seed=turn), turn - 50)
        with sampled() as sample:
            commit = tables[ORDERED].apply_changes(_stream(delayed), op="op")
        if commit.rows_late != sizes.changed:
            raise WrongAnswer(f"event order: {commit.rows_late} of {sizes.changed} rows were late")
        late.samples.append(sample)
    cases = [
        Case("batch in order", list(applying.values())[::-1]),
        Case("late batch", [late]),
        Case("merged scan", list(reading.values())[::-1]),
    ]
    return _bar(sizes, cases)


def _with_sequence(rows: pa.Table, sequence: int) -> pa.Table:
    return rows.append_column("lsn", pa.array(np.full(rows.num_rows, sequence, dtype=np.int64)))


def _stream(rows: pa.Table) -> pa.Table:
    return rows.append_column("op", pa.array(["u"] * rows.num_rows))


def _bar(sizes: Sizes, cases: list[Case]) -> Bar:
    batch, late, scan = cases
    batch_ratio, scan_ratio = (
        case.of(ORDERED).cpu_s() / case.of(PLAIN).cpu_s() for case in (batch, scan)
    )
    late_s = late.of(ORDERED).cpu_s()
    return Bar(
        name="event order",
        promise=f"{sizes.changed:,} random changes into {sizes.rows:,} rows: a merged scan at most "
        f"{MOST_OF_A_READ}x the CPU of one without an order, a late batch at most "
        f"{MOST_LATE_CPU_S} s CPU",
        found=f"scan {scan_ratio:.2f}x; late batch {late_s:.2f} s; in order {batch_ratio:.2f}x",
        met=scan_ratio <= MOST_OF_A_READ and late_s <= MOST_LATE_CPU_S,
        cases=cases,
    )
