"""Collect rows without a key into runs, and sort each run by the table's property `cluster_by`.

A run is all rows of a change, or about `RUN_BYTES` of rows if a writer receives them in batches.
The order decides where a row is stored, never whether it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from rowsieve.types.ordering.sort_order import SortOrder, cluster_order
from rowsieve.types.schema import Schema

RUN_BYTES: Final = 64 * 2**20
"""The bytes in memory at which rows that come in batches are sorted and written."""


class ClusteredRows:
    """The rows of the current run, and the order of each run."""

    __slots__ = ("_pending", "_schema", "_size_bytes", "order")

    def __init__(self, order: SortOrder, schema: Schema) -> None:
        self.order: Final = order
        self._schema: Final = schema
        self._pending: list[pa.Table] = []
        self._size_bytes = 0

    @classmethod
    def of(
        cls, properties: Mapping[str, str], schema: Schema, key: Sequence[object]
    ) -> ClusteredRows | None:
        """Return a collector if the properties name an order; None for a table with a key."""
        order = None if key else cluster_order(properties, schema)
        return None if order is None else cls(order, schema)

    def add(self, rows: pa.Table) -> None:
        """Add rows to the run."""
        self._pending.append(rows)
        self._size_bytes += rows.nbytes

    @property
    def is_full(self) -> bool:
        """True if the caller must take the run before it adds more rows."""
        return self._size_bytes >= RUN_BYTES

    def take(self) -> pa.Table | None:
        """Return the rows of the run in order, and begin the next run; None if it has no rows."""
        if not self._pending:
            return None
        rows = pa.concat_tables(self._pending)
        self._pending, self._size_bytes = [], 0
        return rows.take(pa.array(self.order.sort(rows, self._schema)))
