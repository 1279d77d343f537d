"""What the manifest says about the bytes of each file: sizes and checksums, by path."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import xxhash

from rowsieve.checksums import checksum, checksum_text
from rowsieve.objects import ObjectStore
from rowsieve.storage.manifests.manifest import FileRef, PartTable

AT_ONCE_BYTES: Final = 8 << 20  # of a file, in memory


class Span(NamedTuple):
    """The bytes `[start, stop)` of a file, and their checksum."""

    start: int
    stop: int
    checksum: str

    def is_of(self, data: memoryview) -> bool:
        """Return whether the bytes of a whole file have this checksum there."""
        return self.stop <= len(data) and checksum(data[self.start : self.stop]) == self.checksum

    def read(self, store: ObjectStore, path: str) -> str:
        """Read the bytes, a few at a time, and return the checksum that they have."""
        digest = xxhash.xxh3_128()
        for start in range(self.start, self.stop, AT_ONCE_BYTES):
            digest.update(store.get_range(path, start, min(start + AT_ONCE_BYTES, self.stop)))
        return checksum_text(digest)


@dataclass(slots=True)
class KnownFile:
    """A file: its size, the checksums of all that is known of it, and those of its footer."""

    size_bytes: int
    spans: list[Span] = field(default_factory=list)
    footer: list[Span] = field(default_factory=list)


def known_files(parts: PartTable) -> dict[str, KnownFile]:
    """The files of rows, tombstones and vectors of these parts; parts in memory have none.

    Of a file that was imported in place, only the footer has a checksum. A file of stored vectors
    has one for each part.
    """
    files: dict[str, KnownFile] = {}
    for ref in (*parts.files("data"), *parts.files("deletes")):
        if ref is not None and not ref.in_memory:
            files[ref.path] = _of_parquet(ref)
    for vector in parts.deletion_vectors():
        if vector is not None and not vector.in_manifest:
            whole = Span(0, vector.size_bytes, vector.checksum)
            files[vector.path] = KnownFile(vector.size_bytes, [whole])
    stored = defaultdict[str, list[Span]](list)
    for each in parts.vectors():
        if each is not None and each.path is not None and each.checksum is not None:
            stored[each.path].append(Span(each.start, each.start + each.size_bytes, each.checksum))
            files[each.path] = KnownFile(each.file_bytes, stored[each.path])
    return files


def _of_parquet(ref: FileRef) -> KnownFile:
    footer = Span(ref.tail_start, ref.size_bytes, ref.tail_checksum)
    whole = Span(0, ref.size_bytes, ref.checksum)
    return KnownFile(ref.size_bytes, [whole if ref.checksum else footer], [footer])
