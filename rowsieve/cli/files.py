"""Rows from a file, by its suffix.

Soundness: text formats have no types of their own, so columns that the table has are read as the
table's types and never guessed ("007" stays text); what does not fit is an error that names the
file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from rowsieve.errors import InvalidData, InvalidInput

_COMPRESSED = (".gz", ".bz2", ".zst")


def read_rows(path: Path, schema: pa.Schema | None = None, nulls: Sequence[str] = ()) -> pa.Table:
    """All rows of a file; `schema` gives the types of the columns that it knows."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    kind = suffixes[-1] if suffixes else ""
    if kind not in _READERS:
        raise InvalidInput(
            f"{path}: what the file holds is told by its suffix, and {kind or 'none'!r} is not one "
            f"of {', '.join(_READERS)}"
        )
    try:
        return _READERS[kind](path, schema, nulls)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidData(f"{path} cannot be read as {kind}: {error}") from error


def _read_parquet(path: Path, _schema: pa.Schema | None, _nulls: Sequence[str]) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return file.read()


def _read_ipc(path: Path, _schema: pa.Schema | None, _nulls: Sequence[str]) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()


def _read_csv(path: Path, schema: pa.Schema | None, nulls: Sequence[str]) -> pa.Table:
    """An empty field is NULL, `""` is empty text."""
    options = pyarrow.csv.ConvertOptions(
        column_types={field.name: field.type for field in _flat(schema)},
        null_values=["", *nulls],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    with pa.input_stream(str(path), compression="detect") as source:
        return pyarrow.csv.read_csv(source, convert_options=options)


def _read_json(path: Path, schema: pa.Schema | None, _nulls: Sequence[str]) -> pa.Table:
    fields = [field.remove_metadata() for field in _known(schema)]
    options = pyarrow.json.ParseOptions(
        explicit_schema=pa.schema(fields) if fields else None,
        unexpected_field_behavior="infer",
    )
    with pa.input_stream(str(path), compression="detect") as source:
        return pyarrow.json.read_json(source, parse_options=options)


def _known(schema: pa.Schema | None) -> list[pa.Field]:
    """Columns that text can say; UUIDs are bytes, which no text is."""
    fields: list[pa.Field] = list(schema or ())
    return [field for field in fields if not pa.types.is_fixed_size_binary(field.type)]


def _flat(schema: pa.Schema | None) -> list[pa.Field]:
    return [field for field in _known(schema) if not pa.types.is_nested(field.type)]


_READERS: Mapping[str, Callable[[Path, pa.Schema | None, Sequence[str]], pa.Table]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
    ".arrow": _read_ipc,
    ".ipc": _read_ipc,
    ".feather": _read_ipc,
}
