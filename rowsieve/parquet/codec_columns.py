"""Hidden columns of a file with its rows as bytes of a codec.

A file of our writer may have one more column of bytes, which holds the columns of each row that are
not in its key, and another one for those of its key. A key of the footer names them, the codec, and
the schema of the rows that were encoded. No schema of a table has these columns.

Soundness: bytes are decoded only by the codec and version that the footer names, and only into the
columns of the schema that the footer holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.computed_property import computed_property
from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, UnsupportedOperation, UnsupportedProtocol
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.stored_forms import ENCODED_FORMAT, FORMAT_KEY
from rowsieve.types.encodings import FIELD_ID_KEY
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema, schema_from_json, schema_to_json

CODEC_KEY: Final = b"rowsieve.codec"
VERSION: Final = 1
KEY_ID: Final = 2**31 - 6
ROW_ID: Final = 2**31 - 5
_NAMES: Final = ("_rowsieve_key", "_rowsieve_row")


class _CodecForm(msgspec.Struct, frozen=True):
    """The value of the footer's key."""

    codec: str
    codec_version: int
    batch: int
    key_column: str | None
    row_column: str
    schema: dict[str, Any]
    key: tuple[int, ...]
    index: tuple[int, ...]
    version: int = VERSION


@dataclass(frozen=True)
class CodecColumns:
    """The hidden columns of a file, and what they hold.

    `schema` has the columns as they were encoded, under their names in the file. `key` are the ids
    of those in `key_column`; the others are in `row_column`. `index` are the ids of columns that
    the file has as columns in any case.
    """

    codec: str
    codec_version: int
    batch: int
    key_column: str | None
    row_column: str
    schema: Schema
    key: frozenset[int]
    index: frozenset[int]

    @classmethod
    def choose(
        cls,
        codec: tuple[str, int],
        batch: int,
        schema: Schema,
        key: Sequence[int],
        index: Sequence[int],
    ) -> CodecColumns:
        """Name the hidden columns of a file that encodes these columns."""
        taken = {name.casefold().partition(".")[0] for name in schema.names}
        names = [_free(name, taken) for name in _NAMES]
        key_column = names[0] if key else None
        return cls(*codec, batch, key_column, names[1], schema, frozenset(key), frozenset(index))

    @computed_property
    def key_fields(self) -> Schema:
        """The columns in `key_column`."""
        return self._only(inside=True)

    @computed_property
    def row_fields(self) -> Schema:
        """The columns in `row_column`."""
        return self._only(inside=False)

    def _only(self, *, inside: bool) -> Schema:
        fields = (field for field in self.schema.fields if (field.id in self.key) == inside)
        return Schema(self.schema.id, tuple(fields))

    @computed_property
    def decoded(self) -> dict[int, Field]:
        """The columns that only the codec answers, by id."""
        fields = self.row_fields.fields
        return {field.id: field for field in fields if field.id not in self.index}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the hidden columns."""
        return (*((self.key_column,) if self.key_column else ()), self.row_column)

    def arrow_fields(self) -> list[pa.Field]:
        """The hidden columns as fields of the file."""
        ids = {self.key_column: KEY_ID, self.row_column: ROW_ID}
        return [
            pa.field(name, pa.binary(), nullable=False, metadata={FIELD_ID_KEY: b"%d" % ids[name]})
            for name in self.columns
        ]

    def encoded_fields(self, *, of_key: bool) -> Schema:
        """The columns of the batch that a hidden column was encoded from."""
        return self.key_fields if of_key else self.row_fields

    def to_text(self) -> str:
        """The value of the footer's key."""
        form = _CodecForm(
            self.codec, self.codec_version, self.batch, self.key_column, self.row_column,
            schema_to_json(self.schema), tuple(sorted(self.key)), tuple(sorted(self.index)),
        )  # fmt: skip
        return msgspec.json.encode(form).decode()


def _free(name: str, taken: Collection[str]) -> str:
    """The name, with underscores at its end while a column has it."""
    while name in taken:
        name += "_"
    return name


def hidden_names(pairs: Mapping[bytes, bytes], where: str) -> tuple[str, ...]:
    """The hidden columns of a file that is read outside of its table; they are not shown.

    `pairs`: the key-value pairs of its footer. UnsupportedOperation for a file whose rows only a
    codec has.
    """
    hidden = _named_columns(pairs)
    if hidden is None:
        return ()
    if pairs.get(FORMAT_KEY) == b"%d" % ENCODED_FORMAT:
        raise UnsupportedOperation(
            f"{where} has its rows as bytes of codec {hidden.codec} version "
            f"{hidden.codec_version}, and only the key as columns; read it through its table"
        )
    return hidden.columns


@cached_per_footer
def codec_columns(metadata: pq.FileMetaData) -> CodecColumns | None:
    """The hidden columns that a footer names; None if it names none.

    UnsupportedProtocol for a form that this version does not know.
    """
    return _named_columns(metadata.metadata or {})


def _named_columns(pairs: Mapping[bytes, bytes]) -> CodecColumns | None:
    text = pairs.get(CODEC_KEY)
    if text is None:
        return None
    try:
        form = msgspec.json.decode(text, type=described(_CodecForm))
        schema = schema_from_json(form.schema)
    except (msgspec.MsgspecError, CorruptData) as error:
        raise CorruptData(f"a footer has a damaged {CODEC_KEY.decode()!r}: {error}") from error
    if form.version > VERSION:
        raise UnsupportedProtocol(
            f"a file has its rows as bytes in form {form.version}, and this version of rowsieve "
            f"knows only up to {VERSION}; upgrade rowsieve to read the table"
        )
    return CodecColumns(
        form.codec, form.codec_version, form.batch, form.key_column, form.row_column, schema,
        frozenset(form.key), frozenset(form.index),
    )  # fmt: skip
