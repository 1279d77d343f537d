"""Check before a publication that Iceberg's readers read the same rows from the files as we do.

Iceberg finds columns by field id, gives NULL for a column that a file lacks, and widens int to
long, float to double, and the precision of decimals. So files with earlier columns are read
correctly if no other change was made since. The types of such files are those of one file for each
schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import UnsupportedOperation
from rowsieve.objects import ObjectStore
from rowsieve.parquet.stored_forms import STRUCTURED_FORMAT
from rowsieve.publication.iceberg.iceberg_schema import members
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types import logical
from rowsieve.types.encodings import FIELD_ID_KEY, arrow_type

_REMEDY: Final = (
    "compact first: table.compact(), or the procedure rewrite_data_files with rewrite_all"
)

_UNSIGNED_BITS: Final = 32
"""Unsigned integers with at least this many bits may be negative for some readers."""


def check_readable(
    snapshot: Snapshot, source: ObjectStore, unchecked: npt.NDArray[np.bool_]
) -> None:
    """Raise UnsupportedOperation unless Iceberg reads from the files the rows of this version.

    `unchecked`: (n,) the parts to look at.
    """
    parts = snapshot.parts.take(np.flatnonzero(unchecked))
    reasons = {
        "files with opaque values": (parts.numbers("format_version") > STRUCTURED_FORMAT).any(),
        "rows in its log": parts.held_in_memory().any(),
        "files that are not its own": any(
            ref is not None and not ref.owned for ref in parts.files("data")
        ),
    }
    for reason, applies in reasons.items():
        if applies:
            raise _refused(snapshot, reason)
    old: dict[int, FileRef] = {}
    for schema_id, ref in zip(
        parts.column("schema_id").to_pylist(), parts.files("data"), strict=True
    ):
        if ref is not None and schema_id != snapshot.schema.id:
            old.setdefault(schema_id, ref)
    for schema_id, ref in old.items():
        _check_columns(snapshot, schema_id, _types_in(source, ref))


def _refused(snapshot: Snapshot, reason: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"publish: version {snapshot.version} has {reason}, which readers of Iceberg would read "
        f"otherwise; {_REMEDY}"
    )


def _types_in(source: ObjectStore, ref: FileRef) -> dict[int, pa.DataType]:
    """The types of all fields of a file, by field id; -1 for those without."""
    with source.open_input(ref.path, ref.size_bytes) as file:
        schema = pq.read_schema(file)
    types: dict[int, pa.DataType] = {}
    pending = list(schema)
    while pending:
        field = pending.pop()
        types[int((field.metadata or {}).get(FIELD_ID_KEY, b"-1"))] = field.type
        type_ = field.type
        if pa.types.is_map(type_):
            pending += [type_.key_field, type_.item_field]
        elif pa.types.is_struct(type_):
            pending += list(type_)
        elif pa.types.is_list(type_):
            pending.append(type_.value_field)
    return types


def _check_columns(snapshot: Snapshot, schema_id: int, stored: Mapping[int, pa.DataType]) -> None:
    if -1 in stored:
        raise _refused(snapshot, "files with values of a dropped column that has no field id")
    for column in snapshot.schema:
        _check_field(snapshot, schema_id, column, stored, column.name)


def _check_field(
    snapshot: Snapshot,
    schema_id: int,
    field: logical.Field,
    stored: Mapping[int, pa.DataType],
    name: str,
) -> None:
    if field.id not in stored:
        if field.fill is not None or not field.nullable:
            raise _refused(snapshot, f"files without {name!r}, whose value there is not NULL")
        return
    if not logical.is_nested(field.type) and not _is_read_as(stored[field.id], field.type):
        raise _refused(
            snapshot, f"files in which {name!r} is {stored[field.id]}, which Iceberg cannot widen"
        )
    for own, member in members(field):
        _check_field(snapshot, schema_id, member, stored, f"{name}.{own}")


def _is_read_as(stored: pa.DataType, type_: logical.LogicalType) -> bool:
    """Return whether Iceberg reads values of a stored type as the column's type."""
    wanted = arrow_type(type_)
    if wanted in (stored, getattr(stored, "storage_type", None)):
        return True
    if pa.types.is_integer(stored) and pa.types.is_integer(wanted):
        is_signed = pa.types.is_signed_integer(stored) or stored.bit_width < _UNSIGNED_BITS
        return bool(is_signed and stored.bit_width <= wanted.bit_width)
    if pa.types.is_decimal(stored) and pa.types.is_decimal(wanted):
        return bool(stored.scale == wanted.scale and stored.precision <= wanted.precision)
    return bool(pa.types.is_float32(stored) and pa.types.is_float64(wanted))
