"""The names of data files: which log wrote them, and on which of its versions.

    data/<id>.<base version>.<kind>            written by the table
    data/<id>.<base version>.<tag>.<kind>      written by the branch with this tag

Soundness (invariants, rule 15): a name tells the log whose commits could bring the file, so that
the floor of that log alone decides when the file can be an orphan.
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
