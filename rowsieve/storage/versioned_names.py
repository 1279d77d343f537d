"""Names that say which version their writer had read: those of data files, and ids of commits.

    data/<id>.<base version>.<kind>            written by the table
    data/<id>.<base version>.<tag>.<kind>      written by the branch with this tag

An id of a commit, or of a checkpoint's files, is a UUID of version 8 (RFC 9562) in 32 hexadecimal
digits: 74 random bits, and in the last 12 digits the newest version that the writer had read.

Soundness (invariants, rule 15): a name tells the log whose commits could bring the file, so that
the floor of that log alone decides when the file can be an orphan. An id says whether a later
commit may still refer to an unreferenced file.
"""

from __future__ import annotations

import re
import uuid
from typing import Final

from rowsieve.objects import ObjectStore
from rowsieve.objects.ref_store import ref_place, tag_of

DATA_FILE: Final = re.compile(
    r"data/[0-9a-f]{32}\.(?P<base>\d{1,18})\.(?:(?P<tag>[0-9a-f]{32})\.)?"
    r"(?P<kind>parquet|deletes\.parquet|dv|vectors)",
    re.ASCII,
)
"""The path of a file of rows, of tombstones, or of deletion vectors; it names its base version."""
_BASED: Final = re.compile(r"[0-9a-f]{12}8[0-9a-f]{3}[89ab][0-9a-f]{15}")
_LARGEST_BASE: Final = 2**48 - 1
PUBLISHED_FOLDERS: Final = ("_delta_log", "metadata")
"""Folders beside `data`: publications in other formats write their metadata there."""


def data_path(store: ObjectStore, base_version: int, kind: str, file_id: str | None = None) -> str:
    """Return the path of a new data file that is written through `store`, under a fresh id."""
    ref = ref_place(store.uri)
    middle = f"{base_version}." if ref is None else f"{base_version}.{tag_of(ref.folder)}."
    return f"data/{file_id or uuid.uuid4().hex}.{middle}{kind}"


def base_of_path(path: str) -> int | None:
    """Return the version that a data file is based on; None for a foreign file."""
    match = DATA_FILE.fullmatch(path)
    return int(match["base"]) if match else None


def writer_of_path(path: str) -> str | None:
    """Return the tag of the branch that wrote a data file; None for other files."""
    match = DATA_FILE.fullmatch(path)
    return match["tag"] if match else None


def new_id(base_version: int) -> str:
    """Return a fresh id of a writer that has read up to `base_version`."""
    if not 0 <= base_version <= _LARGEST_BASE:
        raise ValueError(f"an id cannot name version {base_version}")
    random = uuid.uuid4().hex
    return f"{random[:12]}8{random[13:20]}{base_version:012x}"


def base_of_id(id_: str) -> int | None:
    """Return the version in an id; None for an id of an older Rowsieve, which has none."""
    return int(id_[20:], 16) if _BASED.fullmatch(id_) else None
