"""Which tombstones of a table with an event order a compaction may drop, and what this refuses.

A tombstone is kept until the property `late_horizon` has passed since its commit, because a late
change of its key would bring the row back. When tombstones are dropped, the table's floor rises to
the greatest of their sequences in the same commit: changes that are not above it may be overtaken
by one of them, and are refused as too late.

Soundness: a tombstone is dropped only with every older version of its key. Its age is that of its
own commit, which rewrites keep. A version whose time the log no longer tells counts as recent.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from rowsieve import clock
from rowsieve.changes.event_order.too_late import floor_of, floor_texts
from rowsieve.errors import RowsieveError
from rowsieve.storage.manifests.manifest import OLDEST_DELETE, PartTable
from rowsieve.storage.parts.tombstones import DELETED_AT
from rowsieve.storage.snapshot import Snapshot, TableInfo
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.ordering.sequences import greatest

LATE_HORIZON: Final = "late_horizon"
_DEFAULT: Final = "7 days"
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_INTERVAL: Final = re.compile(r"(\d{1,9}) (second|minute|hour|day)s?", re.ASCII)

VersionAt = Callable[[int], int]
"""The newest version that was committed at a time or before; RowsieveError if that is unknown."""


def horizon_us(properties: Mapping[str, str]) -> int | None:
    """The interval in microseconds; None for "forever"."""
    interval = _INTERVAL.fullmatch(properties.get(LATE_HORIZON, _DEFAULT))
    if interval is None:
        return None
    return int(interval[1]) * _SECONDS[interval[2]] * 1_000_000


def kept_by_default(snapshot: Snapshot) -> int | None:
    """The horizon that keeps all tombstones of an event order; None without one."""
    return -1 if snapshot.table.sequence else None


def horizon_version(snapshot: Snapshot, version_at: VersionAt) -> int | None:
    """The last version whose tombstones may go; -1 for none, None for all: without an event order.

    `version_at` is called only for a table with an event order and with tombstones.
    """
    if not snapshot.table.sequence:
        return None
    interval = horizon_us(snapshot.table.properties)
    if interval is None or not snapshot.parts.numbers("deletes.rows").any():
        return -1
    try:
        return version_at(clock.now_us() - interval)
    except RowsieveError:  # the table did not exist then, or that version has expired
        return -1


def tombstones_to_drop(parts: PartTable, horizon: int | None) -> np.ndarray:
    """(n,) the tombstones of each part, 0 where none of them may go."""
    counts = parts.numbers("deletes.rows")
    if horizon is None:
        return counts
    oldest = np.array(parts.numbers("commit_ts_min"))
    if parts.columns.schema.get_field_index(OLDEST_DELETE) >= 0:
        dates = parts.column(OLDEST_DELETE)
        known = np.asarray(dates.is_valid().to_numpy(), dtype=bool)
        oldest[known] = parts.numbers(OLDEST_DELETE)[known]
    return np.where(oldest <= horizon, counts, 0)


@dataclasses.dataclass(slots=True)
class Dropping:
    """Splits tombstones by the horizon, and remembers the greatest sequence of the dropped ones."""

    sequence: KeyOrder
    horizon: int
    greatest: pa.Table | None = None

    def kept(self, deletes: pa.Table) -> pa.Table:
        """The tombstones that stay."""
        past = np.asarray(deletes.column(DELETED_AT.name).to_numpy()) <= self.horizon
        if not past.any():
            return deletes
        dropped = deletes.filter(pa.array(past))
        self.greatest = _greatest((self.greatest, dropped), self.sequence)
        return deletes.filter(pa.array(~past))


def with_raised_floor(snapshot: Snapshot, dropped: Iterable[pa.Table | None]) -> TableInfo | None:
    """The table information with a floor above these sequences; None if there are none."""
    order = KeyOrder(snapshot.sequence_fields)
    sequences = _greatest(dropped, order)
    if sequences is None:
        return None
    floor = _greatest((sequences, floor_of(snapshot)), order)
    assert floor is not None
    return dataclasses.replace(snapshot.table, late_floor=floor_texts(floor, order.fields))


def _greatest(rows: Iterable[pa.Table | None], order: KeyOrder) -> pa.Table | None:
    tables = [table.select(list(order.names)) for table in rows if table is not None]
    return greatest(pa.concat_tables(tables), order) if tables else None
