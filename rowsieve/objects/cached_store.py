"""A network store whose immutable bytes are kept in a folder of the local disk.

Kept are lists of parts, stored vectors and what reads announce to need more than once: the ends of
files, with Bloom filters and the pages of small ones. With `keeps_data`, every range of a part's
file is kept.

Soundness: only objects are kept whose names contain a fresh uuid, because such a name never has
other bytes. Entries of the log, checkpoints' heads, listings and files of other programs are always
read from the store. A reader that finds bytes not to match the checksum in the manifest calls
`forget_kept`, and reads again.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from rowsieve.config import current
from rowsieve.objects.byte_files import RANGES, TABLES, ByteFiles
from rowsieve.objects.private_folder import is_private
from rowsieve.objects.range_file import open_ranges
from rowsieve.objects.store import NativeFile, ObjectStore, Place

_LIST: Final = re.compile(r"(?:.*/)?_rowsieve/(?:log|checkpoints)/[0-9a-f]{32}\.(?:arrow|shards)")
_DATA: Final = re.compile(r"data/[0-9a-f]{32}\.[0-9a-f.]+(?:deletes\.)?(?:parquet|vectors|dv)")
_NOTED: Final = 100_000  # announced ranges that were not read yet


def with_cache(store: ObjectStore) -> ObjectStore:
    """The store with the cache of `Config.cache_dir`; the store itself if there is none.

    Also if other users could change that folder.
    """
    config = current()
    if config.cache_dir is None or not store.overlaps:
        return store
    folder = Path(config.cache_dir).expanduser().absolute()
    if not is_private(folder, RANGES, TABLES):
        return store
    files = ByteFiles(folder, config.cache_bytes)
    return CachedStore(store, files, folder / TABLES, keeps_data=config.cache_data)


def forget_kept(store: Any, path: str) -> bool:
    """Drop what is kept of an object that does not match its checksum; return whether any was."""
    forget = getattr(store, "forget", None)
    return forget is not None and bool(forget(path))


class CachedStore:
    """A store that first looks into a folder, and keeps there what it fetches. Thread-safe.

    `cache_place` names the store in the folder, by its URI, server and account: other servers may
    have a bucket of the same name.
    """

    def __init__(
        self, store: ObjectStore, files: ByteFiles, folder: Path, *, keeps_data: bool
    ) -> None:
        self._store = store
        self._files = files
        self._keeps_data = keeps_data
        self._noted: set[Place] = set()
        self._lock = threading.Lock()
        self.cache_folder = folder
        self.cache_place = f"{store.uri}\n{getattr(store, 'server', '')}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def __repr__(self) -> str:
        return repr(self._store)

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Note spans that will be read more than once, which are kept."""
        if keep:
            with self._lock:
                if len(self._noted) > _NOTED:
                    self._noted.clear()
                self._noted.update(places)

    def get(self, path: str) -> bytes:
        """Return all bytes of an object, kept if it is a list of parts."""
        if _LIST.fullmatch(path) is None:
            return self._store.get(path)
        if (data := self._files.get_whole(self.cache_place, path)) is None:
            data = self._store.get(path)
            self._files.put_whole(self.cache_place, path, data)
        return data

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes `[start, stop)` of an object."""
        place = (path, start, stop)
        with self._lock:
            is_noted = place in self._noted
            self._noted.discard(place)
        if start >= stop or (_DATA.fullmatch(path) is None and _LIST.fullmatch(path) is None):
            return self._store.get_range(path, start, stop)
        if (data := self._files.get(self.cache_place, path, start, stop)) is None:
            data = self._store.get_range(path, start, stop)
            if is_noted or self._keeps_data or not path.endswith(".parquet"):
                self._files.put(self.cache_place, path, start, stop, data)
        return data

    def open_input(self, path: str, size_bytes: int | None = None) -> NativeFile:
        """Open a file that reads through `get_range`."""
        return open_ranges(self, path, size_bytes)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects, and what is kept of them here."""
        self._store.delete(paths)
        for path in paths:
            self.forget(path)

    def admits_files(self, size_bytes: int) -> bool:
        """Return whether files of this size, just written in `cache_folder`, may stay there.

        Files that were not used for longest may be deleted for them.
        """
        if is_admitted := self._files.admits(size_bytes):
            self._files.note_written(size_bytes)
        return is_admitted

    def forget(self, path: str) -> bool:
        """Drop what is kept of an object; return whether any was."""
        return self._files.forget(self.cache_place, path)
