"""Bars: reading parts of ten schemas, and changing the columns of a table of many parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.checkpoint import table_of_parts
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, Work, sampled, take_turns
from benchmarks.result import Bar, Case, expect

SCHEMAS = 10
MOST_RATIO = 1.1
MOST_WALL_S = 0.1
EVOLVED, PLAIN = "ten schemas", "one schema"
READS = {
    "all rows": None,
    "rows by an added column": "added = 5",
    "rows by a widened column": "wide >= 7000",
}


def reading(sizes: Sizes, folder: Path) -> Bar:
    """Read parts of ten schemas, and the same rows in as many parts of the last schema."""
    tables = _tables(sizes.rows // SCHEMAS, folder)
    cases = []
    for name, where in READS.items():
        works = {system: _read(table, where) for system, table in tables.items()}
        one, other = (work() for work in works.values())
        expect(f"{name}: the rows of both", one == other, expected=True)
        cases.append(Case(name, take_turns(works, sizes.repeats)))
    ratios = {
        case.name: (
            case.of(EVOLVED).cpu_s() / case.of(PLAIN).cpu_s(),
            case.of(EVOLVED).wall_s() / case.of(PLAIN).wall_s(),
        )
        for case in cases
    }
    return Bar(
        name="evolved read",
        promise=f"{sizes.rows:,} rows in parts of {SCHEMAS} schemas: read within {MOST_RATIO} times"
        " of the CPU for as many parts of one schema",
        found="; ".join(
            f"{name} {cpu:.2f}x CPU, {wall:.2f}x wall" for name, (cpu, wall) in ratios.items()
        ),
        met=all(cpu <= MOST_RATIO for cpu, _ in ratios.values()),
        cases=cases,
        facts={"ratios": ratios},
    )


def changing(sizes: Sizes, folder: Path) -> Bar:
    """Add and drop a column of a table with a tenth of `parts`, none of which has a file.

    At the 32nd commit it is the turn of a checkpoint, which a change of columns passes on.
    """
    uri, count = str(folder / "table"), sizes.parts // 10
    table_of_parts(uri, count)
    table = rs.open_table(uri)
    series = [Series("add a column"), Series("drop a column")]
    for turn in range(sizes.repeats * 3):
        name = f"added {turn}"
        with sampled() as sample:
            table.add_column(name, "int64", default=turn)
        series[0].samples.append(sample)
        expect("parts to read where it has its default", _parts(table, f'"{name}" = {turn}'), count)
        expect("parts to read where it has not", _parts(table, f'"{name}" = -1'), 0)
        with sampled() as sample:
            table.drop_column(name)
        series[1].samples.append(sample)
        expect("the column is gone", name in table.schema.names, expected=False)
    return Bar(
        name="change of columns",
        promise=f"a table of {count:,} parts: a column added or dropped in under "
        f"{MOST_WALL_S * 1e3:.0f} ms, without touching a file of rows",
        found="; ".join(
            f"{each.system}: {each.wall_s() * 1e3:.1f} ms, at most {_most(each) * 1e3:.1f} ms"
            for each in series
        ),
        met=all(each.wall_s() < MOST_WALL_S for each in series),
        cases=[Case("change of columns", series)],
    )


def _most(series: Series) -> float:
    return max(sample.wall_s for sample in series.samples)


def _parts(table: rs.Table, where: str) -> int:
    splits = table.scan(where).plan().splits
    return sum(len(piece.parts) for split in splits for piece in split.pieces)


def _read(table: rs.Table, where: str | None) -> Work:
    return lambda: table.scan(where, threads=1, order_by_key=True).to_arrow()


def _tables(rows: int, folder: Path) -> dict[str, rs.Table]:
    """The evolved table, and its rows written anew, chunk by chunk, under its last schema."""
    chunks = [_chunk(rows, number) for number in range(SCHEMAS)]
    evolved = rs.create_table(str(folder / "evolved"), chunks[0], key=[data.KEY])
    for number, chunk in enumerate(chunks[1:], start=1):
        _evolve(evolved, number)
        given = chunk.rename_columns({"place": evolved.schema.names[1]})
        for field in evolved.schema:
            if field.name not in given.column_names:
                added = pa.repeat(pa.scalar(number).cast(field.type), rows)
                given = given.append_column(field.name, added)
        evolved.upsert(given)
    plain = rs.create_table(str(folder / "plain"), evolved.schema, key=[data.KEY])
    whole = evolved.scan(order_by_key=True).to_arrow()
    for number in range(SCHEMAS):
        plain.upsert(whole.slice(number * rows, rows))
    expect("schemas", evolved.handle.pinned.schema.id, SCHEMAS - 1)
    return {EVOLVED: evolved, PLAIN: plain}


def _evolve(table: rs.Table, number: int) -> None:
    """Change the columns: one is added, dropped, renamed or widened in turns."""
    match number:
        case 1:
            table.add_column("added", "int64", default=5)
        case 4:
            table.widen_column("wide", "int64")
        case 7:
            table.reorder_columns([*table.schema.names[:2], "wide"])
        case 2 | 5 | 8:
            table.rename_column(table.schema.names[1], f"place {number}")
        case 3 | 9:
            table.add_column(f"more {number}", "string", default="more")
        case _:
            table.drop_column("more 3")


def _chunk(rows: int, number: int) -> pa.Table:
    """Rows of keys above those of the chunks before; `wide` is a column to widen."""
    keys = np.arange(number * rows, (number + 1) * rows, dtype=np.int64)
    columns = data.rows_of(keys, seed=number)
    wide = columns.column("quantity").cast(pa.int32())
    return columns.select([data.KEY, "place", "value", "at"]).append_column("wide", wide)
