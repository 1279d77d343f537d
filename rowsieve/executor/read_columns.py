"""The columns of a read: those that it decodes, and those that it returns.

They follow from the plan, before a file is opened, and are the same for every read of a cached
plan. So they are kept, unless an expression of the result may depend on the time of the statement.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from rowsieve.byte_cache import ByteCache
from rowsieve.executor.output_batches import Packaging
from rowsieve.executor.two_phase import RowReader
from rowsieve.planner.plan import ScanPlan
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

CACHE_BYTES: Final = 4 * 1024 * 1024
ONCE_BYTES: Final = 1024 * 1024  # most conditions never come again
_BYTES_PER_READ: Final = 4096
_BYTES_PER_COLUMN: Final = 512
_OPERAND: Final = attrgetter("operand")

Readers = tuple[RowReader, RowReader]
"""A reader for reads without a residual, and one for reads with it."""

_READS: ByteCache[Hashable, ReadColumns] = ByteCache(CACHE_BYTES, "columns", once_bytes=ONCE_BYTES)
"""By schema, key, columns and identity of the filter, which the value holds."""


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """`columns` are read for the result, `tested` by the predicate; both in schema order.

    `keys` are the key columns and `order` their order; without a key there is none. `readers` read
    `columns` for a result whose order does not matter.
    """

    packaging: Packaging
    order: KeyOrder | None
    keys: Schema
    columns: Schema
    tested: Schema
    readers: Readers
    is_whole: bool
    """Whether the result needs all columns, of all rows that are read."""

    @classmethod
    def of(cls, plan: ScanPlan, *, views: bool = False) -> ReadColumns:
        """The columns of a read of this plan, with the view types of text and bytes if `views`."""
        if any(map(_OPERAND, plan.columns)):
            return cls._new(plan, views=views)
        known = (plan.schema, plan.key, plan.columns, id(plan.filter), plan.ordered, views)
        if (columns := _READS.get(known)) is None:
            columns = cls._new(plan, views=views)
            size_bytes = _BYTES_PER_READ + _BYTES_PER_COLUMN * len(plan.columns)
            _READS.put(known, columns, size_bytes)
        return columns

    @classmethod
    def _new(cls, plan: ScanPlan, *, views: bool) -> ReadColumns:
        schema, packaging = plan.schema, Packaging(plan, views=views)
        columns = _selected(schema, packaging.needed)
        asked = () if plan.filter is None else plan.filter.columns
        tested = _selected(schema, frozenset([column.name for column in asked]))
        return cls(
            packaging,
            KeyOrder.of(schema, plan.key) if plan.key else None,
            schema.select(plan.key),
            columns,
            tested,
            _readers(plan, columns, tested, views=views and not plan.ordered),
            plan.filter is None and len(columns) == len(schema),
        )

    def as_decoded(self) -> ReadColumns:
        """The same columns with the types of the decoder, such as text by a dictionary."""
        first, second = (replace(reader, target=None) for reader in self.readers)
        return replace(self, readers=(first, second))

    def readers_of(self, plan: ScanPlan, columns: Schema) -> Readers:
        """Readers of other columns."""
        return _readers(plan, columns, self.tested)


def _readers(plan: ScanPlan, columns: Schema, tested: Schema, *, views: bool = False) -> Readers:
    return (
        RowReader.of(columns, None, Schema(columns.id, ()), views=views),
        RowReader.of(columns, plan.filter, tested, views=views),
    )


def _selected(schema: Schema, names: frozenset[str]) -> Schema:
    return schema.select(tuple(filter(names.__contains__, schema.names)))
