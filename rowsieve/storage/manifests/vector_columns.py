"""The manifest's columns of stored deletion vectors of tables with a key.

A stored vector is a cache: the rows of a part that newer parts hide, known from all commits up to
`complete_through`. The columns are `vector.` and a name of `VECTOR_TYPES`; a manifest without such
vectors has none of them, and NULL in `vector.complete_through` means that a part has no vector. A
vector without hidden rows has no file. One file holds the vectors of several parts.

Soundness (invariants I3 and I4): the vector counts only as part of the manifest entry, so an
operation that restores an entry of an older version must restore its vector too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

VECTORS_PATH: Final = re.compile(
    r"data/[0-9a-f]{32}\.\d{1,18}\.(?:[0-9a-f]{32}\.)?vectors", re.ASCII
)
PREFIX: Final = "vector."
VECTOR_TYPES: Final = {
    "complete_through": pa.int64(),
    "rows": pa.int64(),
    "path": pa.string(),
    "start": pa.int64(),
    "size_bytes": pa.int64(),
    "checksum": pa.string(),
    "file_bytes": pa.int64(),
}
COMPLETE_THROUGH: Final = f"{PREFIX}complete_through"
PATH: Final = f"{PREFIX}path"
SIZE_BYTES: Final = f"{PREFIX}size_bytes"
COUNTS: Final = tuple(f"{PREFIX}{name}" for name, t in VECTOR_TYPES.items() if t == pa.int64())


@dataclass(frozen=True, slots=True)
class VectorRef:
    """The stored vector of a part: `rows` hidden rows, known up to version `complete_through`.

    It is the bytes [start, start + size_bytes) of a file of `file_bytes` bytes; without hidden rows
    the path is None.
    """

    complete_through: int
    rows: int = 0
    path: str | None = None
    start: int = 0
    size_bytes: int = 0
    checksum: str | None = None
    file_bytes: int = 0

    @property
    def is_valid(self) -> bool:
        """True if it has no hidden rows, or names a part of a file of the table."""
        if self.path is None:
            return self.rows == 0
        inside = self.start >= 0 and 0 < self.size_bytes <= self.file_bytes - self.start
        return inside and VECTORS_PATH.fullmatch(self.path) is not None


def vectors_in(table: pa.Table) -> list[VectorRef | None]:
    """Return the vector of each part of a manifest that has the columns; None if it has none."""
    names = [f"{PREFIX}{name}" for name in VECTOR_TYPES]
    values = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    return [None if each[0] is None else VectorRef(*each) for each in values]


def with_vectors(table: pa.Table, refs: Sequence[VectorRef | None]) -> pa.Table:
    """Set the vector of each part; None for parts without one."""
    for name, type_ in VECTOR_TYPES.items():
        column = pa.array([None if ref is None else getattr(ref, name) for ref in refs], type_)
        place = table.schema.get_field_index(f"{PREFIX}{name}")
        if place < 0:
            table = table.append_column(f"{PREFIX}{name}", column)
        else:
            table = table.set_column(place, f"{PREFIX}{name}", column)
    return table
