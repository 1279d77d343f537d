"""Files of rows in an object store: named by URIs and globs, each read by one request.

Soundness: a file is read whole before it is parsed, so its rows are those of one state of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from rowsieve.errors import InvalidInput
from rowsieve.input_files.files import Hints, Input
from rowsieve.input_files.json_files import Documents
from rowsieve.objects import Location, ObjectStore, open_store
from rowsieve.objects.globs import glob_expression, has_wildcard, split_glob
from rowsieve.objects.location import REMOTE
from rowsieve.objects.store import ObjectNotFound

_COMPRESSIONS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


@dataclass(frozen=True, slots=True)
class StoreFile(Input):
    """An object of a store; `path` is its name, `operation` the call that names it in messages."""

    uri: str = ""
    store: ObjectStore | None = None
    operation: str = ""

    @property
    def name(self) -> str:
        """The URI of the file."""
        return self.uri

    @property
    def is_buffered(self) -> bool:
        """True: the whole object is read."""
        return True

    def open(self) -> Any:
        """Read the object; InvalidInput if there is none."""
        assert self.store is not None
        try:
            content = pa.BufferReader(self.store.get(self.uri))  # its name may be any text
        except ObjectNotFound as error:
            raise InvalidInput(
                f"{self.operation}: there is no file {self.uri!r}; nothing was written"
            ) from error
        return pa.input_stream(content, compression=_COMPRESSIONS.get(self.path.suffix.lower()))


def is_in_store(path: str) -> bool:
    """Return whether this is the URI of an object in a store that the network reaches."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.lower() in REMOTE


def store_files(
    uri: str,
    operation: str,
    storage_options: Mapping[str, Any],
    hints: Hints,
    check: Callable[[Documents], None] | None,
) -> list[Input]:
    """The files that a URI or a glob names, in the order of their names.

    InvalidInput for a glob that no object matches; an object of a URI is read when it is opened.
    A glob's `*` matches no leading `.`, as on the disk.
    """
    locations = _matching(uri, operation, storage_options) if has_wildcard(uri) else []
    files: list[Input] = []
    for location in locations or [Location.parse(uri)]:
        folder, _, name = location.path.rpartition("/")
        if not name:
            raise InvalidInput(f"{operation}: {location.uri!r} names no file")
        store = open_store(
            Location(location.scheme, location.authority, folder).uri, storage_options
        )
        path = Path(name)
        files.append(StoreFile(path, None, None, (), check, hints, location.uri, store, operation))
    return files


def _matching(uri: str, operation: str, storage_options: Mapping[str, Any]) -> list[Location]:
    fixed, rest = split_glob(uri)
    base = Location.parse(fixed)
    wanted = glob_expression(rest)
    names = sorted(
        path
        for path in open_store(base.uri, storage_options).list("")
        if wanted.fullmatch(path) and not any(map(_is_hidden, path.split("/")))
    )
    if not names:
        raise InvalidInput(f"{operation}: no file matches {uri!r}; nothing was written")
    return [
        Location(base.scheme, base.authority, f"{base.path}/{name}".lstrip("/")) for name in names
    ]


def _is_hidden(name: str) -> bool:
    return name.startswith(".")
