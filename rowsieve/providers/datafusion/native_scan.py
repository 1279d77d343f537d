"""Builds DataFusion's own Parquet scan over given files of a table.

Soundness (invariant 32): the scan reads exactly the given files. A file is given only if our writer
marked it as safe for readers that prune by statistics, and its columns have the table's names and
types. In doubt, our dataset reads the file. `hidden_rows` filters out rows that are not visible.

The scan declares that it has no order. Otherwise DataFusion uses the order in `sorting_columns` of
the files, and DataFusion 55.2 loses rows of `WHERE … ORDER BY key LIMIT n` over several sorted
files: threads that finish early take files from others, which breaks the order it relies on.

DataFusion treats a missing file as an empty one. So each query with such a scan also reads a
partition of our dataset, which checks the files while the query runs: a file that exists then was
of the scan before, because file names are never reused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import datafusion
import pyarrow as pa

from rowsieve.objects import Location, ObjectStore, table_uri_of
from rowsieve.parquet.footer import read_metadata
from rowsieve.parquet.leaf_columns import fields_by_id
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.split import PlannedPart
from rowsieve.providers.native_files.file_shapes import Stored, shape_of
from rowsieve.providers.native_files.planned_parts import read_parts
from rowsieve.statements.tokens import quoted
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.reading_views import is_plain
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Binary, Bool, Date, Decimal, Field, Float, Int, String, Timestamp
from rowsieve.varints import decode_varint, encode_varint

_BYTES: Final = 2  # protobuf's wire type of messages, text and bytes
# Paths that are the same in a URL, because no character is escaped.
_PLAIN_PATH: Final = re.compile(r"/[A-Za-z0-9_./=+@,-]*")
_NO_ORDER: Final[list[list[Any]]] = [[]]  # one order, without columns


@dataclass(frozen=True, slots=True)
class NativeParts:
    """The files that DataFusion may scan, by part id."""

    clean: dict[str, FileRef]  # known to have no hidden rows
    unproven: dict[str, FileRef]  # may have hidden rows


def native_parts(plan: ScanPlan, snapshot: Snapshot, store: ObjectStore) -> NativeParts:
    """Find the files that DataFusion may scan; `plan` must read the whole version."""
    root = _root(store)
    if root is None or not all(map(_is_native, snapshot.schema)):
        return NativeParts({}, {})
    clean = _clean(plan)
    files = _readable(_files(plan, root), snapshot, store)
    return NativeParts(
        {part_id: file for part_id, file in files.items() if part_id in clean},
        {part_id: file for part_id, file in files.items() if part_id not in clean},
    )


def _readable(
    files: Mapping[str, FileRef], snapshot: Snapshot, store: ObjectStore
) -> dict[str, FileRef]:
    """The files that are safe for readers that prune, and have the table's columns."""
    chosen = snapshot.parts.chosen(set(files))
    columns = ("native_safe", "schema_id")
    facts = zip(chosen.part_ids, *(chosen.column(c).to_pylist() for c in columns), strict=True)
    same: dict[int, bool] = {}
    safe_files = {}
    for part_id, is_safe, schema_id in facts:
        if not is_safe:
            continue
        if schema_id not in same:
            same[schema_id] = _has_same_columns(snapshot, store, files[part_id], schema_id)
        if same[schema_id]:
            safe_files[part_id] = files[part_id]
    return safe_files


def native_frame(
    context: datafusion.SessionContext,
    name: str,
    schema: pa.Schema,
    store: ObjectStore,
    files: Sequence[FileRef],
    target_partitions: int,
) -> datafusion.DataFrame:
    """Build a DataFrame of `context` that scans these files; there must be at least one.

    `name` is the name of the scan in plans.
    """
    config = datafusion.SessionConfig().with_target_partitions(target_partitions)
    private = datafusion.SessionContext(config)
    root = _root(store)
    urls = [f"file://{root}/{file.path}" for file in files]
    scan = quoted(name)
    private.register_parquet(scan, urls[0], schema=schema, file_sort_order=_NO_ORDER)
    plan = private.table(scan).logical_plan().to_bytes(private)
    edited, count = _replaced(plan, urls[0].encode(), [url.encode() for url in urls])
    if count != 1:
        raise ValueError(f"the plan names its file {count} times")
    return context.create_dataframe_from_logical_plan(
        datafusion.plan.LogicalPlan.from_bytes(private, edited)
    )


def _root(store: ObjectStore) -> str | None:
    """The path of a local table's folder; None if it is not local or a URL would escape it."""
    location = Location.parse(table_uri_of(store.uri))
    root = location.path.rstrip("/")
    return root if location.scheme == "file" and _PLAIN_PATH.fullmatch(root) else None


def _is_native(column: Field) -> bool:
    """Return whether DataFusion's reader is known to read the same values as ours."""
    if isinstance(column.type, Timestamp):
        return not column.type.utc or column.type.zone == "UTC"
    plain = Binary | Bool | Date | Decimal | Float | Int | String
    return isinstance(column.type, plain) and column.alias is None


def _clean(plan: ScanPlan) -> set[str]:
    """The ids of the parts without hidden rows: nothing overlaps them, and they hide none."""
    rows: dict[str, int] = {}
    parts: dict[str, PlannedPart] = {}
    for piece in (piece for split in plan.splits for piece in split.pieces):
        for read in piece.reads:
            part = piece.parts[read.part]
            if piece.needs_merge or part.dv is not None or part.vector is not None:
                continue
            if (data := part.data) is None:
                continue
            start, stop = read.row_range(data.rows)
            rows[part.part_id] = rows.get(part.part_id, 0) + stop - start
            parts[part.part_id] = part
    return {part_id for part_id, part in parts.items() if part.row_count == rows[part_id]}


def _files(plan: ScanPlan, root: str) -> dict[str, FileRef]:
    """The files of the plan's parts whose paths need no escape in a URL, by part id."""
    files = {}
    for part in read_parts(plan):
        data = part.data
        if (
            data is not None
            and data.columns is None
            and is_plain(data)
            and _PLAIN_PATH.fullmatch(f"{root}/{data.path}")
        ):
            files[part.part_id] = data
    return files


def _has_same_columns(
    snapshot: Snapshot, store: ObjectStore, file: FileRef, schema_id: int
) -> bool:
    """Return whether files written with a schema have the table's columns, names and types."""
    columns = tuple(snapshot.schema)
    stored = fields_by_id(read_metadata(store, file))
    shape = shape_of(columns, stored, schema_id, lambda _: False)
    return shape is not None and all(
        isinstance(origin, Stored) and origin == Stored(column.name, column.type)
        for column, origin in zip(columns, shape, strict=True)
    )


def _replaced(message: bytes, value: bytes, values: Sequence[bytes]) -> tuple[bytes, int]:
    """Replace each field equal to `value` by one field for each of `values`; count replacements.

    Descends only into fields that contain the value. ValueError if the bytes are not protobuf.
    """
    fields, count, place = [], 0, 0
    while place < len(message):
        start = place
        tag, place = decode_varint(message, place)
        if tag & 7 != _BYTES:
            skipped = decode_varint(message, place)[1] if tag & 7 == 0 else place
            place = skipped + {0: 0, 1: 8, 5: 4}[tag & 7]
            fields.append(message[start:place])
            continue
        size, place = decode_varint(message, place)
        body, place = message[place : place + size], place + size
        bodies, inside = [body], 0
        if body == value:
            bodies, inside = list(values), 1
        elif value in body:
            edited, inside = _replaced(body, value, values)
            bodies = [edited]
        count += inside
        fields += [encode_varint(tag) + encode_varint(len(each)) + each for each in bodies]
    if place != len(message):
        raise ValueError("a protobuf message is cut off")
    return b"".join(fields), count
