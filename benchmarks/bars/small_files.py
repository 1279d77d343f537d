"""Bar: compacting many small files that share no key, compared with deltalake's optimize."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from benchmarks import data
from benchmarks.bars.sizes import Sizes
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, expect


@dataclass(frozen=True, slots=True)
class Contender:
    """A table in `folder`, how a copy of it is compacted, and how its rows are counted."""

    folder: Path
    compact: Callable[[Path], object]
    count: Callable[[Path], int]


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Write the rows in many commits to each system; compact a new copy in each round."""
    contenders = _contenders(sizes, folder)
    series = {name: Series(name) for name in contenders}
    for turn in range(sizes.repeats + 1):
        for number, (name, system) in enumerate(contenders.items()):
            copy = folder / f"copy{turn}-{number}"  # a new name: processes remember what they read
            shutil.copytree(system.folder, copy)
            os.sync()
            with sampled() as sample:
                system.compact(copy)
            if turn:
                series[name].samples.append(sample)
            else:
                expect(f"rows of {name}", system.count(copy), sizes.rows)
            shutil.rmtree(copy)
    case = Case(f"compaction of {sizes.small_files} files", list(series.values()))
    return Bar(
        name="small files",
        promise=f"compact {sizes.small_files} files of {sizes.rows:,} rows, with and without a "
        "key: at most the CPU of deltalake's optimize of the same rows",
        found="; ".join(
            f"{s.system} {s.cpu_s():.2f} s CPU, {s.wall_s():.2f} s" for s in case.series
        ),
        met=_met(case),
        cases=[case],
    )


def _met(case: Case) -> bool | None:
    peers = [one.cpu_s() for one in case.series if one.system == "deltalake"]
    ours = [one.cpu_s() for one in case.series if one.system != "deltalake"]
    return max(ours) <= peers[0] if peers else None


def _contenders(sizes: Sizes, folder: Path) -> dict[str, Contender]:
    found = {
        "rowsieve without a key": _rowsieve(sizes, folder / "appended", None),
        "rowsieve with a key": _rowsieve(sizes, folder / "keyed", [data.KEY]),
    }
    if (peer := _deltalake(sizes, folder / "delta")) is not None:
        found["deltalake"] = peer
    return found


def _chunks(sizes: Sizes) -> Iterator[pa.Table]:
    """The rows in key order, in as many pieces as there are files."""
    rows = data.rows(sizes.rows)
    step = -(-sizes.rows // sizes.small_files)
    return (rows.slice(start, step) for start in range(0, sizes.rows, step))


def _rowsieve(sizes: Sizes, folder: Path, key: list[str] | None) -> Contender:
    table = rs.create_table(str(folder), data.rows(1).schema, key=key, properties=data.FILES)
    for chunk in _chunks(sizes):
        table.upsert(chunk) if key else table.append(chunk)
    return Contender(
        folder,
        lambda copy: rs.open_table(str(copy)).compact(),
        lambda copy: rs.open_table(str(copy)).count(),
    )


def _deltalake(sizes: Sizes, folder: Path) -> Contender | None:
    try:
        from deltalake import DeltaTable, write_deltalake
    except ImportError:
        return None
    for chunk in _chunks(sizes):
        write_deltalake(str(folder), chunk, mode="append")
    return Contender(
        folder,
        lambda copy: DeltaTable(str(copy)).optimize.compact(),
        lambda copy: int(DeltaTable(str(copy)).to_pyarrow_table(columns=[data.KEY]).num_rows),
    )
