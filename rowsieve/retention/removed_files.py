"""The result of retention: the files that were deleted, or would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowsieve.retention.leases import LEASES
from rowsieve.shown import Shown, html, size_text
from rowsieve.storage.log.checkpoint import CHECKPOINTS
from rowsieve.storage.log.log_entry import LOG, version_of
from rowsieve.storage.versioned_names import DATA_FILE

_DATA_KINDS: Mapping[str, str] = {
    "parquet": "data",
    "deletes.parquet": "deletes",
    "dv": "vector",
    "vectors": "vector",
}


@dataclass(frozen=True, slots=True)
class RemovedFiles:
    """Files that were deleted, or with `dry_run` would be: sizes in bytes by path.

    `versions` is the number of versions that expired by this call, `oldest_version` the oldest one
    that can be read now. `leased_version` is the oldest version that a lease protects, None if no
    lease kept anything.
    """

    operation: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    versions: int = 0
    oldest_version: int = 0
    leased_version: int | None = None
    dry_run: bool = False

    @property
    def files(self) -> dict[str, int]:
        """The number of files by kind, most frequent kind first."""
        return dict(Counter(map(kind_of, self.sizes)).most_common())

    @property
    def file_count(self) -> int:
        """The number of all files."""
        return len(self.sizes)

    @property
    def size_bytes(self) -> int:
        """The bytes of all files."""
        return sum(self.sizes.values())

    def joined(self, later: RemovedFiles, operation: str) -> RemovedFiles:
        """Return the sum of this result and a later one, as the result of `operation`."""
        leased = (each.leased_version for each in (self, later))
        return RemovedFiles(
            operation,
            {**self.sizes, **later.sizes},
            self.versions + later.versions,
            max(self.oldest_version, later.oldest_version),
            min((version for version in leased if version is not None), default=None),
            self.dry_run,
        )

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return html(self._shown())

    def _shown(self) -> Shown:
        done = "would remove" if self.dry_run else "removed"
        facts = {
            "versions": f"{self.versions:,} expired, oldest available {self.oldest_version}",
            "files": ", ".join(f"{count:,} {kind}" for kind, count in self.files.items()) or "none",
        }
        if self.leased_version is not None:
            facts["kept"] = f"a lease protects version {self.leased_version} and later ones"
        title = f"{self.operation} {done} {self.file_count:,} files, {size_text(self.size_bytes)}"
        return Shown(title, facts, ())


def kind_of(path: str) -> str:
    """Return the kind of a file of a table, such as data, entry or checkpoint; else "other"."""
    if (match := DATA_FILE.fullmatch(path)) is not None:
        return _DATA_KINDS[match["kind"]]
    if "/.tmp-" in f"/{path}":
        return "temporary"
    if version_of(path) is not None:
        return "entry"
    folder, _, name = path.rpartition("/")
    if folder == LOG:
        return "statistics" if name.endswith(".stats") else "list"
    return {CHECKPOINTS: "checkpoint", LEASES: "lease"}.get(folder, "other")
