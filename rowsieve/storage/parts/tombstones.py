"""The columns of tombstones: the key, and in a table with an event order more.

There they also have the sequence of the change that deleted the key, and, once they are rewritten,
the commit_ts that they had first (invariants I1 and 37).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.types.logical import Field, Int
from rowsieve.types.schema import Schema

_NO_SCHEMA: Final = 2**31 - 1  # above the id of every schema: files without the column have NULL
DELETED_AT: Final = Field(2**31 - 2, "_rowsieve_commit_ts", Int(64), added=_NO_SCHEMA)
"""The commit_ts of a rewritten tombstone; NULL in the file that its own commit wrote."""


def tombstone_schema(
    schema: Schema, key: Sequence[Field], sequence: Sequence[Field], *, dated: bool = False
) -> Schema:
    """The columns that tombstones are read with; `dated`: their commit_ts, too."""
    last = (DELETED_AT,) if dated and sequence else ()
    return Schema(schema.id, (*key, *sequence, *last))


def oldest_delete(deletes: pa.Table | None) -> int | None:
    """The oldest commit_ts of rewritten tombstones; None if there are none."""
    if deletes is None or DELETED_AT.name not in deletes.schema.names:
        return None
    oldest: int | None = pc.min(deletes.column(DELETED_AT.name)).as_py()
    return oldest
