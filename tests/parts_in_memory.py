"""Tables some of whose parts are in memory: the manifest has their rows, and no file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table, opening
from rowsieve.changes import change
from rowsieve.config import current
from rowsieve.storage.snapshot import TableInfo


@contextmanager
def parts_in_memory(choose: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """While this is open, new tables have parts in memory of changes that `choose` accepts."""

    def limit(_info: TableInfo) -> int:
        return 2**40 if choose() else 0

    former = rowsieve.configure(replace(current(), inline_bytes=16_384))
    try:
        with pytest.MonkeyPatch.context() as patch:
            for module in (opening, change):
                patch.setattr(module, "inline_limit", limit)
            yield
    finally:
        rowsieve.configure(former)


def count_in_memory(table: Table) -> int:
    """The parts of the newest version that are in memory, with rows or tombstones."""
    parts = table.handle.newest.parts
    names = [n for n in ("data.content", "deletes.content") if n in parts.schema.names]
    held = [parts.column(name).is_valid().to_pylist() for name in names]
    return sum(map(any, zip(*held, strict=True))) if held else 0


def as_rows(batches: pa.Table | Any) -> list[dict[str, Any]]:
    """Rows in an order that does not depend on the read."""
    rows: list[dict[str, Any]] = pa.table(batches).to_pylist()
    return sorted(rows, key=repr)
