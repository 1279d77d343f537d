"""Changes as bytes of the write-ahead log: Arrow record batches, read by the schema of the file.

A record is counts and lengths of messages, then the messages of rows, then those of deletes. The
preamble of a file is the table's schema as JSON, its key and its sequence columns, so that a record
knows its columns by field id, whatever the table has become since.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa

from rowsieve.changes.data.ingest import Changes, prepare_appended
from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema, schema_from_json, schema_to_json

_COUNTS: Final = struct.Struct("<II")
_LENGTH: Final = struct.Struct("<Q")


class _Preamble(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: dict[str, Any]
    key: tuple[str, ...]
    sequence: tuple[str, ...]


@dataclass(frozen=True)
class Form:
    """The columns that the rows and deletes of a record have."""

    schema: Schema
    key: tuple[str, ...]
    sequence: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Form:
        """The form of changes that are made for a version."""
        return cls(snapshot.schema, snapshot.table.key, snapshot.table.sequence)

    @classmethod
    def read(cls, preamble: bytes) -> Form:
        """Decode the preamble of a file; CorruptData if it is none."""
        try:
            decoded = msgspec.json.decode(preamble, type=described(_Preamble))
        except msgspec.DecodeError as error:
            raise CorruptData(
                f"a file of the write-ahead log does not describe its columns: {error}; restore "
                "it from a copy"
            ) from error
        return cls(schema_from_json(decoded.schema), decoded.key, decoded.sequence)

    def encode(self) -> bytes:
        """Encode the form as a preamble."""
        return msgspec.json.encode(_Preamble(schema_to_json(self.schema), self.key, self.sequence))

    @property
    def order(self) -> KeyOrder:
        """The order of the key; only of a table that has one."""
        return KeyOrder.of(self.schema, self.key)

    @property
    def sequences(self) -> KeyOrder | None:
        """The order of events; None without one."""
        if not self.sequence:
            return None
        return KeyOrder(tuple(map(self.schema.field, self.sequence)))

    @property
    def deleted(self) -> Schema:
        """The columns of deletes."""
        return self.schema.select((*self.key, *self.sequence))


def encode_changes(changes: Changes) -> bytes:
    """Encode rows and deletes."""
    rows, deletes = _messages(changes.rows), _messages(changes.deletes)
    messages = (*rows, *deletes)
    lengths = (_LENGTH.pack(len(message)) for message in messages)
    return b"".join((_COUNTS.pack(len(rows), len(deletes)), *lengths, *messages))


def decode_changes(payload: memoryview, form: Form) -> Changes:
    """Decode a record of this form; its tables share the payload's memory."""
    row_count, delete_count = _COUNTS.unpack_from(payload)
    place, messages = _COUNTS.size + (row_count + delete_count) * _LENGTH.size, []
    for index in range(row_count + delete_count):
        (length,) = _LENGTH.unpack_from(payload, _COUNTS.size + index * _LENGTH.size)
        messages.append(pa.py_buffer(payload[place : place + length]))
        place += length
    return Changes(
        _table(messages[:row_count], arrow_schema(form.schema)),
        _table(messages[row_count:], arrow_schema(form.deleted)) if form.key else None,
    )


def adapted(changes: Changes, form: Form, now: Form) -> Changes:
    """Return the changes with the columns of another form, which has field ids in common.

    Columns that are gone are left out, new ones get their default, widened ones are cast.
    """
    if form.schema.id == now.schema.id:
        return changes
    rows, deletes = changes.rows, changes.deletes
    if rows is not None:
        rows = prepare_appended(_renamed(rows, form.schema, now.schema), now.schema)
    if deletes is not None:
        deletes = prepare_appended(_renamed(deletes, form.deleted, now.deleted), now.deleted)
    return Changes(rows, deletes)


def _renamed(rows: pa.Table, before: Schema, after: Schema) -> pa.Table:
    names = {field.id: field.name for field in after}
    common = [field for field in before if field.id in names]
    columns = [rows.column(field.name) for field in common]
    return pa.Table.from_arrays(columns, [names[field.id] for field in common])


def _messages(table: pa.Table | None) -> tuple[pa.Buffer, ...]:
    if table is None or not table.num_rows:
        return ()
    return tuple(batch.serialize() for batch in table.combine_chunks().to_batches())


def _table(messages: list[pa.Buffer], schema: pa.Schema) -> pa.Table | None:
    if not messages:
        return None
    try:
        batches = [pa.ipc.read_record_batch(message, schema) for message in messages]
    except (pa.ArrowException, OSError) as error:
        raise CorruptData(
            f"a record of the write-ahead log does not have the columns of its file: {error}; "
            "restore the file from a copy"
        ) from error
    return pa.Table.from_batches(batches, schema)
