"""The parts that were removed and added since a checkpoint, for the next incremental one.

Soundness: a fold of log entries, in their order. Applied to the checkpoint it gives the parts that
the entries give, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rowsieve.storage.manifests.manifest import PartTable

_MAX_LISTS: Final = 64  # of added parts that are remembered
_MAX_REMOVED: Final = 2_000  # parts


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """What follows the checkpoint of a version, whose commit is `commit_id`.

    `removed`: parts of the checkpoint, by id, and possibly others that came and went since.
    `lists`: added parts, without those that were removed again.
    """

    version: int
    commit_id: str
    removed: tuple[str, ...] = ()
    lists: tuple[PartTable, ...] = ()

    @property
    def added(self) -> PartTable | None:
        """All added parts in one table; None without any."""
        return self.lists[0].append(*self.lists[1:]) if self.lists else None

    def followed_by(self, removed: Sequence[str], added: PartTable | None) -> ChangesSince | None:
        """The changes with those of the next entry; None if they are too many, or not in memory."""
        lists, gone = self.lists, self.removed
        if added is not None and not added.in_memory:
            return None
        if removed:
            gone += tuple(removed)
            lists = tuple(rest for each in lists if len(rest := each.without(removed)))
        if added is not None and len(added):
            lists += (added,)
        if len(lists) > _MAX_LISTS or len(gone) > _MAX_REMOVED:
            return None
        return replace(self, removed=gone, lists=lists)

    def applied_to(self, parts: PartTable) -> PartTable:
        """The parts after the changes; `parts` are those of the checkpoint."""
        rest = parts.without(self.removed) if self.removed else parts
        return rest.append(*self.lists) if self.lists else rest
