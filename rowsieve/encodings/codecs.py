"""The codecs of rows: pairs of functions between Arrow batches and one value of bytes per row.

`register_codec` adds one to this process; `msgpack`, `json` and `avro` are built in. Files name the
codec and the version that encoded their rows, and only the same pair decodes them.

Soundness: a codec is code of somebody else. What it returns is checked for its type, its number of
rows and NULLs, nested ones too; whether its values are right shows by reading back what it
encoded (`rowsieve.storage.parts.encoded_rows`) and by shadow reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa

from rowsieve.arguments import checked
from rowsieve.encodings.number_bytes import NotPlain
from rowsieve.encodings.required_members import absent_values
from rowsieve.errors import (
    CorruptData,
    InvalidData,
    InvalidInput,
    MissingExtra,
    UnsupportedOperation,
    did_you_mean,
    repr_of,
)
from rowsieve.locks import ForkSafeLock
from rowsieve.types.encodings import arrow_schema, is_bytes
from rowsieve.types.schema import Schema

Encode: TypeAlias = Callable[[pa.RecordBatch], Any]
"""From a batch to one value of bytes per row: an Arrow array of binary, or a list."""
Decode: TypeAlias = Callable[[pa.Array, pa.Schema], Any]
"""From such an array, and the schema of the batch that was encoded, to that batch."""

_BUILT_IN: Final[Mapping[str, str]] = {
    "msgpack": "rowsieve.encodings.message_pack",
    "json": "rowsieve.encodings.json_lines",
    "avro": "rowsieve.encodings.avro_rows",
}
_MAX_VERSION: Final = 999_999_999


@dataclass(frozen=True, slots=True)
class Codec:
    """A pair of functions with a name and a version.

    `is_proven`: decoding gives back exactly what was encoded, for every value of every type.
    """

    name: str
    version: int
    encode: Encode
    decode: Decode
    is_proven: bool = False

    def __str__(self) -> str:
        return f"{self.name} version {self.version}"

    def encoded(self, batch: pa.RecordBatch, what: str) -> pa.Array:
        """Encode each row; InvalidData, which names `what`, if the codec fails or lies."""
        try:
            rows = self.encode(batch)
            array = rows if isinstance(rows, pa.Array) else pa.array(rows, pa.binary())
            if not is_bytes(array.type):
                raise TypeError(f"its values are {array.type}, not binary")
            array = array.cast(pa.binary())
        except MissingExtra:
            raise
        except Exception as error:
            raise InvalidData(
                f"{what}: codec {self} cannot encode {batch.num_rows:,} rows with the columns "
                f"{', '.join(batch.schema.names)}: {_said(error)}; mend the codec, or set "
                "write_encoding to 'columns'"
            ) from error
        if len(array) != batch.num_rows or array.null_count:
            raise InvalidData(
                f"{what}: codec {self} returned {len(array):,} values, {array.null_count:,} of "
                f"them NULL, for {batch.num_rows:,} rows; a codec returns one value of bytes for "
                "each row"
            )
        return array

    def decoded(self, rows: pa.Array, fields: Schema, where: str) -> pa.RecordBatch:
        """Decode each row; CorruptData, which names the place, if it returns anything else."""
        schema = arrow_schema(fields)
        batch = pa.RecordBatch.from_arrays(self._columns(rows, schema, where), schema=schema)
        for field, column in zip(fields, batch.columns, strict=True):
            if (absent := absent_values(column, field)) is not None:
                raise CorruptData(
                    f"{where}: codec {self} returned NULL in {absent.missing:,} values of "
                    f"{absent.path!r}, which is NOT NULL; it has a fault, or the bytes are of "
                    "another codec or version"
                )
        return batch

    def _columns(self, rows: pa.Array, schema: pa.Schema, where: str) -> list[pa.Array]:
        """Decode each row to arrays of these types; CorruptData if there are others."""
        try:
            batch = self.decode(rows, schema)
            if isinstance(batch, pa.Table):
                batch = batch.combine_chunks()
            names, count = batch.schema.names, batch.num_rows
            columns = [_one_array(batch.column(name)) for name in schema.names]
        except MissingExtra:
            raise
        except NotPlain as error:
            raise CorruptData(
                f"{where} has bytes that codec {self} cannot decode: {error}; they may be of "
                "another codec or version. Read with read_encoding='columns' if the file has "
                "columns, or restore it from a copy"
            ) from error
        except Exception as error:
            raise CorruptData(
                f"{where}: codec {self} cannot decode {len(rows):,} rows: {_said(error)}; the "
                "bytes may be of another codec or version, or the codec has a fault"
            ) from error
        types = [column.type for column in columns]
        if count != len(rows) or types != schema.types or len(names) != len(schema):
            raise CorruptData(
                f"{where}: codec {self} returned {count:,} rows of "
                f"{_described(names, types)} for {len(rows):,} rows of "
                f"{_described(schema.names, schema.types)}; it has a fault, or the bytes are of "
                "another codec or version"
            )
        return columns


_registered: dict[tuple[str, int], Codec] = {}
_lock = ForkSafeLock()


@checked
def register_codec(name: str, version: int, encode: Encode, decode: Decode) -> None:
    """Add a codec of rows to this process, for the table property `row_codec`.

    `encode` takes a `pyarrow.RecordBatch` and returns one value of bytes per row. `decode` takes
    these values and the schema of the batch, and returns the batch. Files name the codec and its
    version, so several versions can be registered; writers use the greatest one. The same name and
    version can be registered again only with the same functions.
    """
    if not (name.isascii() and name.replace("_", "").replace("-", "").isalnum()):
        raise InvalidInput(
            f"register_codec: {name!r} is not a name; use letters, digits, '_' and '-'"
        )
    if name in _BUILT_IN:
        raise InvalidInput(f"register_codec: {name!r} is built in; choose another name")
    if isinstance(version, bool) or not 1 <= version <= _MAX_VERSION:
        raise InvalidInput(
            f"register_codec: version must be a whole number from 1 to {_MAX_VERSION}, not "
            f"{repr_of(version)}"
        )
    if not (callable(encode) and callable(decode)):
        raise InvalidInput("register_codec: encode and decode must be functions")
    codec = Codec(name, version, encode, decode)
    with _lock:
        known = _registered.setdefault((name, version), codec)
    if known != codec:
        raise InvalidInput(
            f"register_codec: {codec} is registered with other functions; files that it encoded "
            "could not be told from those of these functions. Use another version"
        )


def codec_to_write(name: str) -> Codec:
    """The newest version of a codec; UnsupportedOperation if this process knows none."""
    if name in _BUILT_IN:
        return _built_in(name)
    with _lock:
        versions = [version for known, version in _registered if known == name]
    if not versions:
        raise UnsupportedOperation(_unknown(f"the table's row_codec is {name!r}", name))
    return _registered[name, max(versions)]


def codec_to_read(name: str, version: int, where: str) -> Codec:
    """The codec that encoded a file; UnsupportedOperation if this process does not know it."""
    codec = _built_in(name) if name in _BUILT_IN else _registered.get((name, version))
    if codec is not None and codec.version == version:
        return codec
    others = sorted(known[1] for known in _registered if known[0] == name)
    if codec is not None:
        raise UnsupportedOperation(
            f"{where} has rows of codec {name} version {version}, and this version of rowsieve "
            f"knows version {codec.version}; upgrade rowsieve"
        )
    if others:
        raise UnsupportedOperation(
            f"{where} has rows of codec {name} version {version}, and this process knows only "
            f"{', '.join(f'version {each}' for each in others)}; register it: "
            f"rs.register_codec({name!r}, {version}, encode, decode)"
        )
    raise UnsupportedOperation(
        _unknown(f"{where} has rows of codec {name} version {version}", name, version)
    )


def _unknown(what: str, name: str, version: int = 1) -> str:
    known = [*_BUILT_IN, *(each for each, _ in _registered)]
    return (
        f"{what}, which this process does not know; register it first: "
        f"rs.register_codec({name!r}, {version}, encode, decode){did_you_mean(name, known)}"
    )


def _built_in(name: str) -> Codec:
    from importlib import import_module  # noqa: PLC0415 - imported at first use, as the codec is

    module = import_module(_BUILT_IN[name])
    return Codec(name, module.VERSION, module.encode, module.decode, is_proven=True)


def _one_array(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def _described(names: list[str], types: list[pa.DataType]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in zip(names, types, strict=False)) or "none"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
