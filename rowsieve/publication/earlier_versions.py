"""What a publication has to know of other versions of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rowsieve.errors import CorruptData, NotFound, SnapshotExpired, VersionNotFound
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.floors import floors_of
from rowsieve.storage.log.refs import refs_of
from rowsieve.storage.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Versions:
    """Earlier versions of a log, the oldest one that is kept, and the versions of tags by name."""

    log: CommitLog
    oldest: int
    tags: Mapping[str, int]

    @classmethod
    def of(cls, log: CommitLog, snapshot: Snapshot) -> Versions:
        """What the version itself says about them."""
        properties = snapshot.table.properties
        tags = {
            name: ref.version
            for name, ref in refs_of(properties).items()
            if ref.is_tag and not ref.of
        }
        return cls(log, floors_of(properties).oldest_version, tags)

    def before(self, commit: tuple[int, str] | None) -> Snapshot | None:
        """Read the version of a commit; None if it is not there any more."""
        if commit is None:
            return None
        version, commit_id = commit
        try:
            snapshot = self.log.at(version)
        except (CorruptData, NotFound, SnapshotExpired, VersionNotFound):
            return None
        return snapshot if snapshot.commit_id == commit_id else None
