"""Side files: a commit's large statistics in a separate file, read on demand.

    _rowsieve/log/<commit id>.stats          segments, see `rowsieve.storage.manifests.segments`

If a list of parts has more than `statistics_inline_bytes` per part, the statistics of its largest
subjects move to the side file, one segment per subject. The list names the side file in its
metadata (`rowsieve.side`: JSON with `file` and `index`), so the checksum of the list covers the
index.

Soundness: the side file is put before the list that names it. Unreadable statistics are unknown and
counted, never an error. The statistics of the key columns stay in the list.
"""

from __future__ import annotations

import base64
import binascii
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, InvalidInput
from rowsieve.objects import ObjectStore, put_fresh
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.manifest_columns import Indices
from rowsieve.storage.manifests.segments import (
    STATISTICS,
    decode_index,
    encode_index,
    encode_segments,
    groups_of,
)
from rowsieve.storage.manifests.shards import ShardedFile, ShardedParts
from rowsieve.types.encodings import sizes_of

DEFAULT_INLINE_BYTES: Final = 8_192
POINTER: Final = b"rowsieve.side"
_NAME = re.compile(r"[0-9a-f]{32}\.stats")
_log = logging.getLogger(__name__)


class _Pointer(msgspec.Struct, forbid_unknown_fields=True):
    file: str
    index: str


def inline_bytes(properties: Mapping[str, str]) -> int:
    """Read the property `statistics_inline_bytes`; InvalidInput unless it is a positive number."""
    text = properties.get("statistics_inline_bytes", str(DEFAULT_INLINE_BYTES))
    if not re.fullmatch(r"[1-9]\d{0,17}", text, re.ASCII):
        raise InvalidInput(
            f"table property statistics_inline_bytes is {text!r}; it is a number of bytes from 1"
        )
    return int(text)


def large_subjects(parts: PartTable, most_bytes: int) -> list[str]:
    """Return the columns of the subjects that exceed the limit, largest first; may be empty."""
    table, room = parts.table, most_bytes * len(parts)
    by_column = sizes_of(table)
    if sum(by_column) <= room:
        return []
    by_name = dict(zip(table.schema.names, by_column, strict=True))
    names = {g: c for g, c in groups_of(table.schema).items() if g.startswith(STATISTICS)}
    sizes = {group: sum(by_name[name] for name in columns) for group, columns in names.items()}
    total = sum(sizes.values())
    key_statistics = {f"{STATISTICS}{field_id}" for field_id in parts.key_ids}
    large_columns: list[str] = []
    for group in sorted(sizes.keys() - key_statistics, key=lambda group: (-sizes[group], group)):
        if total <= room:
            break
        large_columns += names[group]
        total -= sizes[group]
    return large_columns


def put_side_file(
    store: ObjectStore, folder: str, commit_id: str, parts: PartTable, most_bytes: int
) -> bytes:
    """Store large statistics in a side file, if any; return the encoded list of parts."""
    large = large_subjects(parts, most_bytes)
    if not large:
        return parts.to_ipc()
    file = f"{commit_id}.stats"
    table = parts.read(large).combine_chunks()
    segments, index = encode_segments(table, np.zeros(1, dtype=np.int64), len(parts))
    put_fresh(store, f"{folder}/{file}", segments)
    encoded = base64.b64encode(encode_index(table.schema, index)).decode()
    pointer = msgspec.json.encode(_Pointer(file, encoded))
    moved = set(large)
    inline = parts.only(lambda name: name not in moved)
    return inline.to_ipc({POINTER: pointer})


def with_side_file(
    store: ObjectStore, folder: str, parts: PartTable, metadata: Mapping[bytes, bytes]
) -> PartTable:
    """Add the columns of the side file, if the list names one; reads none of them yet."""
    if POINTER not in metadata:
        return parts
    try:
        pointer = msgspec.json.decode(metadata[POINTER], type=described(_Pointer))
        schema, shards = decode_index(base64.b64decode(pointer.index, validate=True))
    except (msgspec.MsgspecError, binascii.Error, CorruptData) as error:
        _log.warning("cannot open the side file of parts in %s/%s: %s", store.uri, folder, error)
        return parts
    side = ShardedParts(
        ShardedFile(store, f"{folder}/{pointer.file}", ids=""), schema, shards, recover=None
    )
    only_statistics = all(name.startswith(STATISTICS) for name in schema.names)
    if (
        _NAME.fullmatch(pointer.file) is None
        or side.row_count != len(parts)
        or not only_statistics
        or not set(schema.names).isdisjoint(parts.schema.names)
    ):
        _log.warning("side file %s in %s does not fit its parts", pointer.file, store.uri)
        return parts
    return PartTable(_WithSide(parts.table, side))


class _WithSide:
    """A `ColumnSource` that joins a table in memory with their columns in a side file."""

    def __init__(self, table: pa.Table, side: ShardedParts) -> None:
        self._table = table
        self._side = side
        self._schema = pa.schema([*table.schema, *side.schema])

    @property
    def row_count(self) -> int:
        """Number of parts."""
        return int(self._table.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table, then those of the side file."""
        return self._schema

    @property
    def unreadable(self) -> Mapping[str, int]:
        """Number of parts whose statistics were lost, by group."""
        return self._side.unreadable

    @property
    def unreachable(self) -> bool:
        """True if some were lost because the store failed."""
        return self._side.unreachable

    def read(self, names: Sequence[str], rows: Indices | None) -> pa.Table:
        """Read some columns of all parts, or of the parts at ascending indices."""
        in_memory = set(self._table.column_names)
        from_memory = self._table.select([name for name in names if name in in_memory])
        if rows is not None:
            from_memory = from_memory.take(pa.array(rows))
        in_file = [name for name in names if name not in in_memory]
        from_file = self._side.read(in_file, rows) if in_file else from_memory
        schema = pa.schema([self._schema.field(name) for name in names])
        return pa.table(
            [(from_memory if name in in_memory else from_file).column(name) for name in names],
            schema=schema,
        )
