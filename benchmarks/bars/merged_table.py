"""Creates big tables for the bars: sorted base parts, then upserts of random rows, in chunks."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

import rowsieve as rs
from benchmarks import data
from benchmarks.peers.part_files import PARTS


@dataclass(frozen=True, slots=True)
class MergedTable:
    """A table on disk and its expected rows; `input_rows` counts every stored version."""

    folder: Path
    base_rows: int
    input_rows: int
    quantities: npt.NDArray[np.int16]

    @property
    def digest(self) -> dict[str, int]:
        """The expected count and sums of a merged read."""
        return {
            "n": self.base_rows,
            "ids": self.base_rows * (self.base_rows - 1),
            "quantities": int(self.quantities.sum(dtype=np.int64)),
        }


def base(folder: Path, rows: int, chunks: int, *, wide: bool) -> MergedTable:
    """`rows` rows in `chunks` sorted commits that share no key."""
    folder.mkdir(parents=True)
    schema = data.rows_of(np.arange(0), 0, wide=wide).schema
    table = rs.create_table(str(folder / "table"), schema, key=[data.KEY], properties=data.FILES)
    quantities = np.empty(rows, dtype=np.int16)
    step = -(-rows // chunks)
    for seed, start in enumerate(range(0, rows, step)):
        places = np.arange(start, min(rows, start + step), dtype=np.int64)
        chunk = data.rows_of(places * 2, seed, wide=wide)
        quantities[places] = chunk.column("quantity").to_numpy()
        table.upsert(chunk)
    _list_parts(folder, table)
    return MergedTable(folder, rows, rows, quantities)


def changed(old: MergedTable, folder: Path, share: float, deltas: int) -> MergedTable:
    """A copy in another folder, with this share of the rows upserted in several commits.

    Files of a table never change, so the copy links them.
    """
    shutil.copytree(old.folder, folder, copy_function=os.link)
    table = rs.open_table(str(folder / "table"))
    rng = np.random.default_rng(deltas)
    count = int(old.base_rows * share) // deltas
    quantities = old.quantities.copy()
    wide = len(table.schema.names) > len(data.COLUMNS)
    for seed in range(deltas):
        places = rng.choice(old.base_rows, count, replace=False)
        rows = data.rows_of(places.astype(np.int64) * 2, 1_000 + seed, wide=wide)
        quantities[places] = rows.column("quantity").to_numpy()
        table.upsert(rows)
    (folder / PARTS).unlink()  # it is linked: writing it would change the other folder's
    _list_parts(folder, table)
    return replace(
        old,
        folder=folder,
        input_rows=old.input_rows + count * deltas,
        quantities=quantities,
    )


def _list_parts(folder: Path, table: rs.Table) -> None:
    plan = table.scan().plan()
    parts = {
        (str(folder / "table" / part.data.path), part.commit_ts)
        for split in plan.splits
        for piece in split.pieces
        for part in piece.parts
        if part.data is not None
    }
    oldest_first = sorted(parts, key=lambda part: (part[1], part[0]))
    (folder / PARTS).write_text(json.dumps(oldest_first))
