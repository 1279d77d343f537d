"""A few tables with a history, built once by chance with a fixed seed, to be asked many questions.

Their parts are tiny and overlap: rows are written, written again, deleted, updated and in part
rewritten, so that every question meets stale versions, tombstones, vectors and clean parts.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.config import current
from rowsieve.types.logical import Float, Int, LogicalType, String, Timestamp
from tests.oracle_table import Model, Row, to_arrow
from tests.small_tables import fresh_uri
from tests.table_strategies import POOLS, TableShape, shape_of

ROW_GROUP_ROWS = 8
Draw = Callable[[random.Random, str], Any]


def tiny_row_groups(rows: int = ROW_GROUP_ROWS) -> Iterator[None]:
    """While this generator is open, row groups hold that many rows, and pages a quarter of that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rowsieve.storage.parts.part_file.PAGE_ROWS", max(1, rows // 4))
        for name, module in list(sys.modules.items()):
            if name.startswith("rowsieve.") and hasattr(module, "ROW_GROUP_ROWS"):
                patch.setattr(module, "ROW_GROUP_ROWS", rows)
        yield


def build(shape: TableShape, draw: Draw, seed: int) -> tuple[Table, list[Row]]:
    """The table, and the rows that it should hold; `draw` gives a value for a column."""
    chance = random.Random(seed)

    def some(count: int) -> list[Row]:
        found = [{f.name: draw(chance, f.name) for f in shape.schema} for _ in range(count)]
        if not shape.key:
            return found
        return list({model.key_of(row): row for row in found}.values())

    model = Model(shape.schema, shape.key)
    table = rowsieve.create_table(
        fresh_uri(),
        shape.arrow,
        key=list(shape.key) or None,
        properties={"target_part_bytes": chance.choice(("1", "1000000"))},
    )
    for step, count in enumerate((24, 8, 12, 3)):
        rows = some(count)
        data = to_arrow(rows, shape.schema)
        table.upsert(data) if shape.key else table.append(data)
        model.write(rows)
        if step % 2:
            gone(table, model, shape, chance)
        if step == 1 and chance.random() < 0.5:
            table.compact()
            model.commit(model.head)
    table.refresh()
    return table, list(model.head.values())


def gone(table: Table, model: Model, shape: TableShape, chance: random.Random) -> None:
    """Delete a few rows: by key, or those with some value in a column."""
    victims = chance.sample(list(model.head.values()), 4)
    if shape.key:
        table.delete(keys=to_arrow(victims, shape.schema).select(list(shape.key)))
        model.delete_keys(victims)
        return
    name = chance.choice(shape.schema.names)
    table.delete(f"{name} IS NULL")
    model.replace(lambda row: row[name] is None, ())


def memory_table(rows: Sequence[Row], shape: TableShape) -> pa.Table:
    """The same rows as plain Arrow data, for an engine to answer from."""
    plain = [pa.field(f.name, f.type, f.nullable) for f in shape.arrow]
    return to_arrow(rows, shape.schema).cast(pa.schema(plain))


TWICE = (Int(64), Float(64), String(), Timestamp(utc=True))
COLUMNS: dict[str, LogicalType] = {f"v{i}": type_ for i, type_ in enumerate((*POOLS, *TWICE))}
EVERYTHING = shape_of({"k": Int(64), **COLUMNS}, ("k",))
"""A number `k` as key and columns of every ordered type, some twice."""


@functools.cache
def everything(number: int) -> tuple[Table, list[Row]]:
    """One of the tables of this shape, all in files, and the rows that it should hold."""

    def draw(chance: random.Random, name: str) -> Any:
        if name == "k":
            return chance.randrange(60)
        return None if chance.random() < 0.2 else chance.choice(POOLS[COLUMNS[name]])

    former = rowsieve.configure(replace(current(), inline_bytes=0))
    try:
        return build(EVERYTHING, draw, seed=100 + number)
    finally:
        rowsieve.configure(former)
