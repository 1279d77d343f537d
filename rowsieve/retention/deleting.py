"""Deletes files in runs, and reports progress after each run."""

from __future__ import annotations

from collections.abc import Sequence

from rowsieve.arguments.annotations import Progress
from rowsieve.objects import ObjectStore
from rowsieve.objects.store import DELETED_AT_ONCE


class Deletion:
    """Deletes up to `total` files of a store; `progress` gets the number of those that are gone."""

    def __init__(self, store: ObjectStore, total: int, progress: Progress | None) -> None:
        self._store, self._total, self._progress = store, total, progress
        self._done = 0

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files in the order given, as `ObjectStore.delete` does."""
        if self._progress is None:
            self._store.delete(paths)
            return
        for start in range(0, len(paths), DELETED_AT_ONCE):
            run = paths[start : start + DELETED_AT_ONCE]
            self._store.delete(run)
            self._done += len(run)
            self._progress(self._done, self._total)
