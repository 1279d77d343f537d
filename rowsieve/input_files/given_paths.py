"""Rows, or events, of the files that a caller of a table's method names: paths, globs, lists.

Soundness: each file is read as the command line reads it, so no digit and no character is lost. A
column that only some of the files have is refused: an absent column is not NULL.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeGuard

import pyarrow as pa

from rowsieve.disk_errors import described
from rowsieve.errors import InvalidInput, SchemaMismatch
from rowsieve.input_files.files import COMPRESSED, FORMATS, Hints, Input, read_messages, read_rows
from rowsieve.input_files.json_files import Documents
from rowsieve.input_files.store_files import is_in_store, store_files
from rowsieve.objects import Location
from rowsieve.objects.globs import has_wildcard, without_secrets
from rowsieve.objects.location import REMOTE
from rowsieve.types.conform import conform_values
from rowsieve.types.encodings import arrow_type, logical_type

_HINTS: Final = Hints(
    "its suffix",
    "create the table with a pyarrow schema that has the column, for example with pa.decimal128"
    "(38, 0) or pa.uint64(), and then write the file to it",
)
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def is_paths(data: object) -> TypeGuard[Paths]:
    """Return whether this is a path, or a list of paths."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(each, str | os.PathLike) for each in data)
    return isinstance(data, str | os.PathLike)


def names_files(events: object) -> TypeGuard[Paths]:
    """Return whether these events are paths; text is one if it ends with a format's suffix.

    JSON never ends so.
    """
    if isinstance(events, str):
        return _kind_of(events) in FORMATS
    if isinstance(events, list | tuple):
        return bool(events) and all(map(names_files, events))
    return isinstance(events, os.PathLike)


def rows_of_paths(
    paths: Paths,
    operation: str,
    schema: pa.Schema | None = None,
    check: Callable[[Documents], None] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Read the rows of all files, in the order of the paths; a glob's in the order of names.

    `schema` has the types of known columns, `check` judges JSON objects that lack names of others.
    `storage_options` are those of stores whose URIs the paths have.
    """
    files = _files_of(paths, operation, storage_options or {}, check)
    tables = [read_rows(file, schema) for file in files]
    if len(tables) == 1:
        return tables[0]
    _refuse_different_columns(files, tables, operation)
    tables = [_with_types(table, schema or ()) for table in tables]
    types = _common_types(files, tables, operation)
    return pa.concat_tables(
        [
            table.cast(pa.schema([types[name] for name in table.column_names])).select(list(types))
            for table in tables
        ]
    )


def events_of_paths(
    paths: Paths,
    operation: str,
    schema: pa.Schema,
    storage_options: Mapping[str, Any] | None = None,
) -> bytes | pa.Table:
    """Read the events of all files: lines of JSON, or the rows of one file of another format."""
    files = _files_of(paths, operation, storage_options or {})
    contents = [read_messages(file, schema) for file in files]
    if len(contents) == 1:
        return contents[0]
    texts = [each for each in contents if isinstance(each, bytes)]
    if len(texts) < len(contents):
        raise InvalidInput(
            f"{operation}: {len(files)} files of events must all be JSON lines; apply Parquet, "
            "Arrow and CSV files one by one"
        )
    return b"\n".join(texts)


def _files_of(
    paths: Paths,
    operation: str,
    storage_options: Mapping[str, Any],
    check: Callable[[Documents], None] | None = None,
) -> list[Input]:
    """The files that these paths and globs name; InvalidInput for one that names none."""
    files: list[Input] = []
    for one_path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        if isinstance(one_path, str) and is_in_store(one_path):
            files += store_files(one_path, operation, storage_options, _HINTS, check)
        else:
            local = _matching(one_path, operation)
            files += [Input(path, check=check, hints=_HINTS) for path in local]
    names = Counter(file.name for file in files)
    if twice := next((name for name, count in names.items() if count > 1), None):
        raise InvalidInput(f"{operation}: the paths name {twice} twice; name each file once")
    return files


def _matching(one_path: str | os.PathLike[str], operation: str) -> list[Path]:
    text = os.fspath(one_path)
    is_uri = isinstance(one_path, str) and _URI.match(text) is not None
    if is_uri and not text.lower().startswith("file://"):
        raise InvalidInput(
            f"{operation}: {without_secrets(text)!r} is neither a path nor in a store "
            f"({', '.join(REMOTE)}); read it first, as in "
            "pyarrow.dataset.dataset(uri).to_table()"
        )
    if not text:
        raise InvalidInput(f"{operation}: there is no file ''; nothing was written")
    path = Path(Location.parse(one_path).path)
    try:
        is_directory, exists = path.is_dir(), path.exists()
    except OSError as error:  # such as a name that is too long
        raise InvalidInput(
            f"{operation}: {text!r} cannot be read: {described(error)}; nothing was written"
        ) from error
    if is_directory:
        raise InvalidInput(
            f"{operation}: {text!r} is a directory; name its files, as in "
            f"{str(Path(text) / '*.parquet')!r}"
        )
    if exists:
        return [path]
    if not isinstance(one_path, str) or not has_wildcard(text):
        raise InvalidInput(f"{operation}: there is no file {text!r}; nothing was written")
    pattern = path if is_uri else Path(text).expanduser()
    matching = sorted(map(Path, glob.glob(str(pattern), recursive=True)))  # noqa: PTH207 - `**` and absolute patterns
    files = [Location.local(str(each)).path for each in matching if not each.is_dir()]
    if not files:
        raise InvalidInput(f"{operation}: no file matches {text!r}; nothing was written")
    return list(map(Path, files))


def _kind_of(text: str) -> str:
    name = text.lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return name.rpartition(".")[2]


def _with_types(table: pa.Table, schema: Iterable[pa.Field]) -> pa.Table:
    """Convert the columns of known types to these; SchemaMismatch if a value is lost."""
    for field in schema:
        place = table.schema.get_field_index(field.name)
        if place < 0 or table.schema.field(place).type == field.type:
            continue
        type_ = logical_type(field, lambda: 0)
        chunks = [conform_values(chunk, type_, field.name) for chunk in table.column(place).chunks]
        column = pa.chunked_array(chunks, arrow_type(type_))
        table = table.set_column(place, field.with_type(column.type), column)
    return table


def _refuse_different_columns(
    files: Sequence[Input], tables: Sequence[pa.Table], operation: str
) -> None:
    first = set(tables[0].column_names)
    for file, table in zip(files, tables, strict=True):
        if differing := sorted(first.symmetric_difference(table.column_names)):
            having, lacking = (file, files[0]) if differing[0] not in first else (files[0], file)
            raise SchemaMismatch(
                f"{operation}: {having.name} has the column {differing[0]!r} and {lacking.name} "
                "does not; "
                "nothing was written. Write files with other columns in calls of their own"
            )


def _common_types(
    files: Sequence[Input], tables: Sequence[pa.Table], operation: str
) -> Mapping[str, pa.Field]:
    """A type of each column that holds the values of all files exactly."""
    types: dict[str, pa.Field] = {}
    for name in tables[0].column_names:
        fields = [table.schema.field(name) for table in tables]
        common = fields[0]
        for file, field in zip_longest(files[1:], fields[1:]):
            if (wider := _wider(common, field)) is None:
                raise SchemaMismatch(
                    f"{operation}: the column {name!r} is {common.type} in {files[0].name} "
                    f"and {field.type} in {file.name}; nothing was written. Create the table with "
                    "a pyarrow schema, so that all files are read as its types"
                )
            common = wider.with_nullable(common.nullable or field.nullable)
        types[name] = common
    return types


def _wider(one: pa.Field, other: pa.Field) -> pa.Field | None:
    if one.type == other.type or pa.types.is_null(other.type):
        return one
    if pa.types.is_null(one.type):
        return other
    for is_kind in (pa.types.is_signed_integer, pa.types.is_unsigned_integer):
        if is_kind(one.type) and is_kind(other.type):
            return max(one, other, key=lambda field: field.type.bit_width)
    return None
