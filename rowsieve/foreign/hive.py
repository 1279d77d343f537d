"""Hive directories: `year=2024/month=01/` are constant columns of the files below.

Names and values are percent-decoded once; `__HIVE_DEFAULT_PARTITION__` is NULL. Without given
types, a column of whole numbers of up to 64 bits is int64, one of days is date, any other is text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidInput
from rowsieve.foreign.paths import FoundFile
from rowsieve.types.encodings import arrow_type, logical_type
from rowsieve.types.schema import named_type
from rowsieve.types.stored_defaults import constant_text

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Partitions:
    """The constant columns of files: a type by name, and per file the text of each value.

    The text has the form of `rowsieve.types.stored_defaults`; None is NULL.
    """

    types: Mapping[str, pa.DataType]
    values: Sequence[Mapping[str, str | None]]


def no_partitions(count: int) -> Partitions:
    """Return the partitions of files without constant columns."""
    return Partitions({}, [{}] * count)


def partitions_of(
    files: Sequence[FoundFile],
    hive: bool | Mapping[str, Any] | None,
    types: Mapping[str, pa.DataType] | None = None,
) -> Partitions:
    """Read the directories of the files; InvalidInput if they differ in their columns.

    `hive`: False reads none, None those below the given folder, True those of the whole path, and
    a mapping those with their types. `types`: the only columns that directories may have.
    """
    if hive is False:
        return no_partitions(len(files))
    whole = hive is not None
    directories = [_pairs(file.path if whole else file.below) for file in files]
    names = list(directories[0]) if directories else []
    for file, pairs in zip(files, directories, strict=True):
        if list(pairs) != names:
            raise InvalidInput(
                f"{file.uri} lies in directories for ({', '.join(pairs)}), and {files[0].uri} in "
                f"directories for ({', '.join(names)}); give files with the same, or hive=False"
            )
    if types is not None and (unknown := [name for name in names if name not in types]):
        raise InvalidInput(
            f"{files[0].uri} lies in a directory for {unknown[0]!r}, which is not a column of the "
            f"table ({', '.join(types)}); add the column, or do not read the directories"
        )
    stated = _given_types(hive, names)
    chosen: dict[str, pa.DataType] = {}
    texts: dict[str, list[str | None]] = {}
    for name in names:
        values = [pairs[name] for pairs in directories]
        wanted = stated.get(name) if types is None else types[name]
        chosen[name], texts[name] = _column(name, values, wanted)
    rows = [{name: texts[name][i] for name in names} for i in range(len(files))]
    return Partitions(chosen, rows)


def _given_types(hive: bool | Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, Any]:
    """The types in `hive=`; InvalidInput if the directories do not have these columns."""
    stated = dict(hive) if isinstance(hive, Mapping) else {}
    if missing := [name for name in stated if name not in names]:
        raise InvalidInput(
            f"hive= has the column {missing[0]!r}, and the directories have ({', '.join(names)})"
        )
    if hive is True and not names:
        raise InvalidInput(
            "hive=True, but no directory of the files is named column=value; leave hive= out"
        )
    return stated


def _pairs(path: str) -> dict[str, str | None]:
    pairs: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if not (equals and name):
            continue
        key = _decoded(name)
        if key in pairs:
            raise InvalidInput(
                f"the path {path!r} has two directories for the column {key!r}; rename one of them"
            )
        pairs[key] = None if value == NULL else _decoded(value)
    return pairs


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeError as error:
        raise InvalidInput(
            f"the directory name {text!r} is not UTF-8 when decoded; rename the directory"
        ) from error


def _column(
    name: str, values: Sequence[str | None], stated: Any
) -> tuple[pa.DataType, list[str | None]]:
    """The type of a column, and the stored text of each value."""
    type_ = _inferred(values) if stated is None else _stated_type(stated, name)
    known: dict[str, str | None] = dict.fromkeys(value for value in values if value is not None)
    logical = logical_type(pa.field(name, type_), lambda: 0)
    for value in known:
        try:
            scalar = pc.cast(pa.scalar(value), type_)
        except pa.ArrowException as error:
            raise InvalidInput(
                f"the directory {name}={value} has no value of type {type_}: {error}; give the "
                f"right type in hive={{{name!r}: …}}"
            ) from error
        known[value] = constant_text(scalar, logical, name)
    return arrow_type(logical), [None if value is None else known[value] for value in values]


def _stated_type(stated: Any, name: str) -> pa.DataType:
    if isinstance(stated, pa.DataType):
        return stated
    if isinstance(stated, str):
        return arrow_type(named_type(stated))
    raise InvalidInput(f"hive= gives {name!r} the type {stated!r}; give a pyarrow type or its name")


def _inferred(values: Sequence[str | None]) -> pa.DataType:
    known = [value for value in values if value is not None]
    if known and all(_NUMBER.fullmatch(value) for value in known):
        return pa.int64()
    if known and all(_DAY.fullmatch(value) and _is_day(value) for value in known):
        return pa.date32()
    return pa.string()


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
