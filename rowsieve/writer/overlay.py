"""A version with what a writer has acknowledged since, as one more part, which is in memory.

The part is newer than all others: its commit_ts is that of the next version. It has the last
action of each key, of all memtables, and hides rows of others by the rules for parts.

Soundness: the snapshot has a commit id of its own for each state of the memtables, because caches
know versions by (table, version, commit id) (invariant 22). The part counts as based on the version
that its rows were checked against, so that no later constraint counts as proved for them.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from rowsieve.changes.data.ingest import Changes
from rowsieve.changes.event_order.late_changes import without_late
from rowsieve.locks import ForkSafeLock
from rowsieve.objects import ObjectStore
from rowsieve.storage.parts.memory_parts import memory_parts
from rowsieve.storage.snapshot import Snapshot
from rowsieve.writer.memtables import Unflushed

_KEPT: Final = 2
"""Snapshots that are kept: of the newest version, and of the one before it."""


class Overlay:
    """Makes snapshots of a writer's memtables over versions. Thread-safe."""

    def __init__(self, store: ObjectStore, wal_id: str) -> None:
        self._store, self._wal_id = store, wal_id
        self._lock = ForkSafeLock()
        self._views: dict[str, Snapshot] = {}

    def over(self, snapshot: Snapshot, unflushed: Unflushed) -> Snapshot:
        """Return the version with these changes, which it lacks."""
        if unflushed.changes.is_empty:
            return snapshot
        commit_id = f"{snapshot.commit_id}+{self._wal_id}.{unflushed.through}"
        with self._lock:
            if (view := self._views.get(commit_id)) is not None:
                return view
        view = self._with_part(snapshot, unflushed, commit_id)
        with self._lock:
            self._views[commit_id] = view
            while len(self._views) > _KEPT:
                self._views.pop(next(iter(self._views)))
        return view

    def _with_part(self, snapshot: Snapshot, unflushed: Unflushed, commit_id: str) -> Snapshot:
        changes: Changes = unflushed.changes
        if snapshot.table.sequence:  # what is committed may be newer (invariant 36)
            changes, _ = without_late(self._store, snapshot, changes, "writer", "drop")
        part = memory_parts(
            snapshot.schema,
            tuple(map(snapshot.schema.field, snapshot.table.key)),
            changes.rows,
            changes.deletes,
            base_version=unflushed.base_version,
            properties={},  # checked before they were acknowledged
            sequence=snapshot.sequence_fields,
        )
        parts = snapshot.parts.append(part.with_commit_ts(snapshot.version + 1)) if part else None
        return dataclasses.replace(
            snapshot, commit_id=commit_id, parts=snapshot.parts if parts is None else parts
        )
