"""Tables some of whose parts are in memory: the manifest has their rows, and no file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from rowsieve import Table
from rowsieve.changes import change
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.parts.memory_parts import memory_parts
from rowsieve.storage.parts.part_writer import write_parts


@contextmanager
def parts_in_memory(choose: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """While this is open, changes whose turn `choose` accepts write parts in memory."""

    def write(
        store: Any, schema: Any, key: Any, rows: Any, deletes: Any, **options: Any
    ) -> PartTable:
        if not choose():
            return write_parts(store, schema, key, rows, deletes, **options)
        for unused in ("collecting", "uploads"):
            options.pop(unused, None)
        return memory_parts(schema, key, rows, deletes, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(change, "write_parts", write)
        yield


def count_in_memory(table: Table) -> int:
    """The parts of the newest version that are in memory, with rows or tombstones."""
    parts = table.handle.newest.parts
    names = [n for n in ("data.content", "deletes.content") if n in parts.columns.schema.names]
    held = [parts.column(name).is_valid().to_pylist() for name in names]
    return sum(map(any, zip(*held, strict=True))) if held else 0


def as_rows(batches: pa.Table | Any) -> list[dict[str, Any]]:
    """Rows in an order that does not depend on the read."""
    rows: list[dict[str, Any]] = pa.table(batches).to_pylist()
    return sorted(rows, key=repr)
