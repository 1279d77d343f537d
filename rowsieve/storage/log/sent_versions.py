"""A version of a table as bytes, for another process that would read the same log again.

Soundness: the bytes are a checkpoint of that version, with its checksums, and are read as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rowsieve.errors import RowsieveError
from rowsieve.objects.store_opening import private_store
from rowsieve.storage.log.checkpoint import read_checkpoint, write_checkpoint
from rowsieve.storage.snapshot import Snapshot

MAX_SENT_PARTS: Final = 2_000  # a longer list costs more to send than to read again


def version_as_bytes(snapshot: Snapshot) -> Mapping[str, bytes] | None:
    """The files of a checkpoint of the version; None if they would be large, or not complete."""
    if len(snapshot.parts) > MAX_SENT_PARTS:
        return None
    memory = private_store()
    try:
        write_checkpoint(memory, snapshot)
    except RowsieveError:
        return None  # statistics that could not be read: the other process reports it
    return {path: memory.get(path) for path in memory.list("")}


def version_of_bytes(files: Mapping[str, bytes], version: int) -> Snapshot:
    """The version that `version_as_bytes` wrote."""
    memory = private_store()
    for path, data in files.items():
        memory.put_new(path, data)
    return read_checkpoint(memory, version)
