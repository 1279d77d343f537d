"""Check before a publication that the readers of a format read the rows from the files as we do.

They find columns by field id, and give NULL for a column that a file lacks. Readers of Iceberg
widen int to long, float to double, and the precision of decimals. So files with earlier columns are
read correctly if no other change was made since. The types of such files are those of one file for
each schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.errors import UnsupportedOperation
from rowsieve.objects import ObjectStore
from rowsieve.parquet.stored_forms import STRUCTURED_FORMAT
from rowsieve.publication.iceberg.iceberg_schema import members
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.storage.parts.reading_views import read_by_codec
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types import logical
from rowsieve.types.encodings import FIELD_ID_KEY, arrow_type

REMEDY: Final = (
    "compact first: table.compact(), or the procedure rewrite_data_files with rewrite-all"
)
_BY_CODEC: Final = "files whose rows are read from a codec"
_OF_CODECS: Final = (
    "set the properties read_encoding and write_encoding to 'columns', then table.compact()"
)


class Readers(NamedTuple):
    """What the readers of a format do with files of earlier columns."""

    name: str
    widen: bool


DELTA: Final = Readers("Delta", widen=False)
ICEBERG: Final = Readers("Iceberg", widen=True)

_UNSIGNED_BITS: Final = 32
"""Unsigned integers with at least this many bits may be negative for some readers."""


def check_readable(
    snapshot: Snapshot,
    source: ObjectStore,
    unchecked: npt.NDArray[np.bool_],
    readers: Readers,
) -> None:
    """Raise UnsupportedOperation unless readers read from the files the rows of this version.

    `unchecked`: (n,) the parts to look at.
    """
    parts = snapshot.parts.take(np.flatnonzero(unchecked & ~snapshot.parts.held_in_memory()))
    reasons = {
        "files with opaque values": (parts.numbers("format_version") > STRUCTURED_FORMAT).any(),
        _BY_CODEC: read_by_codec(snapshot),
        "files that are not its own": any(
            ref is not None and not ref.owned for ref in parts.files("data")
        ),
    }
    for reason, applies in reasons.items():
        if applies:
            remedy = _OF_CODECS if reason == _BY_CODEC else REMEDY
            raise _refused(snapshot, readers, reason, remedy)
    for stored in stored_fields(parts, snapshot, source):
        _check_columns(snapshot, readers, {number: each.type for number, each in stored.items()})


class StoredField(NamedTuple):
    """A field of a file: its name there, the id of the field that it is in, and its type."""

    name: str
    parent_id: int | None
    type: pa.DataType


def stored_fields(
    parts: PartTable, snapshot: Snapshot, source: ObjectStore
) -> list[dict[int, StoredField]]:
    """Return the fields of a file of each earlier schema that files have, by field id.

    The id of fields without one is -1.
    """
    old: dict[int, FileRef] = {}
    for schema_id, ref in zip(
        parts.column("schema_id").to_pylist(), parts.files("data"), strict=True
    ):
        if ref is not None and schema_id != snapshot.schema.id:
            old.setdefault(schema_id, ref)
    return [_fields_in(source, ref) for ref in old.values()]


def _refused(
    snapshot: Snapshot, readers: Readers, reason: str, remedy: str = REMEDY
) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"publish: version {snapshot.version} has {reason}, which readers of "
        f"{readers.name} would read otherwise; {remedy}"
    )


def _fields_in(source: ObjectStore, ref: FileRef) -> dict[int, StoredField]:
    with source.open_input(ref.path, ref.size_bytes) as file:
        schema = pq.read_schema(file)
    fields: dict[int, StoredField] = {}
    pending: list[tuple[int | None, pa.Field]] = [(None, field) for field in schema]
    while pending:
        parent_id, field = pending.pop()
        field_id = int((field.metadata or {}).get(FIELD_ID_KEY, b"-1"))
        fields[field_id] = StoredField(field.name, parent_id, field.type)
        type_ = field.type
        if pa.types.is_map(type_):
            pending += [(field_id, type_.key_field), (field_id, type_.item_field)]
        elif pa.types.is_struct(type_):
            pending += [(field_id, each) for each in type_]
        elif pa.types.is_list(type_):
            pending.append((field_id, type_.value_field))
    return fields


def _check_columns(snapshot: Snapshot, readers: Readers, stored: Mapping[int, pa.DataType]) -> None:
    if -1 in stored:
        reason = "files with values of a dropped column that has no field id"
        raise _refused(snapshot, readers, reason)
    for column in snapshot.schema:
        for reason in _reasons(readers, column, stored, column.name):
            raise _refused(snapshot, readers, reason)


def _reasons(
    readers: Readers, field: logical.Field, stored: Mapping[int, pa.DataType], name: str
) -> Iterator[str]:
    """Yield why readers would read another value of a column or a field in it."""
    if field.id not in stored:
        if field.fill is not None or not field.nullable:
            yield f"files without {name!r}, whose value there is not NULL"
        return
    stored_field = stored[field.id]
    if not logical.is_nested(field.type) and not _is_read_as(stored_field, field.type, readers):
        yield f"files in which {name!r} is {stored_field}, which {readers.name} cannot widen"
    for inner, member in members(field):
        yield from _reasons(readers, member, stored, f"{name}.{inner}")


def _is_read_as(stored: pa.DataType, type_: logical.LogicalType, readers: Readers) -> bool:
    """Return whether readers read values of a stored type as the column's type."""
    wanted = arrow_type(type_)
    if wanted in (stored, getattr(stored, "storage_type", None)):
        return True
    if not readers.widen:
        return False
    if pa.types.is_integer(stored) and pa.types.is_integer(wanted):
        is_signed = pa.types.is_signed_integer(stored) or stored.bit_width < _UNSIGNED_BITS
        return bool(is_signed and stored.bit_width <= wanted.bit_width)
    if pa.types.is_decimal(stored) and pa.types.is_decimal(wanted):
        return bool(stored.scale == wanted.scale and stored.precision <= wanted.precision)
    return bool(pa.types.is_float32(stored) and pa.types.is_float64(wanted))
