"""Which tombstones of a table with an event order a compaction may drop, and what this refuses.

A tombstone is kept until the property `late_horizon` has passed since its commit, because a late
change of its key would bring the row back. An interval of event time passes when the table has
events that are so much later, but not before the clock shows that time: one event with a time far
in the future forgets nothing. When tombstones are dropped, the table's floor rises to
the greatest of their sequences in the same commit: changes that are not above it may be overtaken
by one of them, and are refused as too late.

Soundness: a tombstone is dropped only with every older version of its key. Its age is that of its
own commit, which rewrites keep, or that of its sequence. A version whose time the log no longer
tells counts as recent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve import clock
from rowsieve.changes.event_order.horizons import LateHorizon, event_us, horizon_of
from rowsieve.changes.event_order.stored_floors import floor_texts
from rowsieve.changes.event_order.stored_sequences import sequence_bounds
from rowsieve.changes.event_order.too_late import floor_of
from rowsieve.errors import RowsieveError
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.manifest_layout import OLDEST_DELETE
from rowsieve.storage.parts.tombstones import DELETED_AT
from rowsieve.storage.snapshot import Snapshot, TableInfo
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.ordering.sequences import greatest

Mask = npt.NDArray[np.bool_]
VersionAt = Callable[[int], int]
"""The newest version that was committed at a time or before; RowsieveError if that is unknown."""


class Horizon(msgspec.Struct, frozen=True):
    """Which tombstones may go: of commits up to `version`, or of events up to `event_us`."""

    version: int = -1
    event_us: int | None = None

    def has_passed(self, deletes: pa.Table, sequence: KeyOrder) -> Mask:
        """(n,) whether each tombstone may go; they have the columns of `tombstone_schema`."""
        if self.event_us is not None:
            field = sequence.fields[0]
            return event_us(deletes.column(field.name), field) <= self.event_us
        return np.asarray(deletes.column(DELETED_AT.name).to_numpy()) <= self.version


KEEPS_ALL: Final = Horizon()


def kept_by_default(snapshot: Snapshot) -> Horizon | None:
    """The horizon that keeps all tombstones of an event order; None without one."""
    return KEEPS_ALL if snapshot.table.sequence else None


def reached_horizon(snapshot: Snapshot, version_at: VersionAt) -> Horizon | None:
    """The horizon whose tombstones may go now; None for all: without an event order.

    `version_at` is called only for a table with an event order and with tombstones.
    """
    if not snapshot.table.sequence:
        return None
    wanted = horizon_of(snapshot.table.properties)
    if wanted is None or not snapshot.parts.numbers("deletes.rows").any():
        return KEEPS_ALL
    if wanted.by_event_time:
        return _of_events(snapshot, wanted)
    try:
        return Horizon(version_at(clock.now_us() - wanted.interval_us))
    except RowsieveError:  # the table did not exist then, or that version has expired
        return KEEPS_ALL


def _of_events(snapshot: Snapshot, wanted: LateHorizon) -> Horizon:
    """The horizon by the greatest event time of the table, which is at most that of the clock."""
    uppers = sequence_bounds(snapshot.parts, KeyOrder(snapshot.sequence_fields))
    if uppers is None or uppers.column(0).null_count:
        return KEEPS_ALL
    newest = int(event_us(uppers.column(0), snapshot.sequence_fields[0]).max())
    return Horizon(event_us=min(newest, clock.now_us()) - wanted.interval_us)


def tombstones_to_drop(
    parts: PartTable, horizon: Horizon | None, sequence: KeyOrder | None = None
) -> np.ndarray:
    """(n,) the tombstones of each part, 0 where none of them may go.

    By event time, those of a part count once all of its events are behind the horizon.
    """
    counts = parts.numbers("deletes.rows")
    if horizon is None:
        return counts
    if horizon.event_us is not None:
        uppers = None if sequence is None else sequence_bounds(parts, sequence)
        if uppers is None or sequence is None or uppers.column(0).null_count:
            return np.zeros(len(parts), dtype=np.int64)
        newest = event_us(uppers.column(0), sequence.fields[0])
        return np.where(newest <= horizon.event_us, counts, 0)
    oldest = np.array(parts.numbers("commit_ts_min"))
    if parts.schema.get_field_index(OLDEST_DELETE) >= 0:
        dates = parts.column(OLDEST_DELETE)
        known = np.asarray(dates.is_valid().to_numpy(), dtype=bool)
        oldest[known] = parts.numbers(OLDEST_DELETE)[known]
    return np.where(oldest <= horizon.version, counts, 0)


@dataclasses.dataclass(slots=True)
class Dropping:
    """Splits tombstones by the horizon, and remembers the greatest sequence of the dropped ones."""

    sequence: KeyOrder
    horizon: Horizon
    greatest: pa.Table | None = None

    def without_dropped(self, deletes: pa.Table) -> pa.Table:
        """The tombstones that stay."""
        past = self.horizon.has_passed(deletes, self.sequence)
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
