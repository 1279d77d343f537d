"""Reads a table's properties that select which statistics to collect.

Commas separate columns and paths; dots separate the steps of a path. Names with a comma, a dot or a
space are written in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rowsieve.errors import InvalidInput
from rowsieve.stats.json_kinds import Path, is_plain
from rowsieve.stats.named_collectors import COLLECTORS, collector_names
from rowsieve.stats.trim import (
    DEFAULT_BYTES,
    DEFAULT_BYTES_PER_1000_ROWS,
    Budget,
    critical_ids,
)
from rowsieve.types.logical import Field, Json, LogicalType, String, Struct, type_name
from rowsieve.types.schema import Schema

MAX_SHREDDED: Final = 32  # paths of a table

PROPERTIES_WITH_COLUMNS: Final = (
    "critical_columns",
    "text_statistics",
    "json_statistics",
    "json_shredding",
    COLLECTORS,
)
"""The properties that name columns."""

_STEP = re.compile(r'"((?:[^"]|"")+)"|([^\s",.]+)')


@dataclass(frozen=True, slots=True)
class StatisticsOptions:
    """The statistics to collect in addition to counts and bounds of every field.

    `text`: ids of columns that get statistics of numbers in text and of text in one case.
    `sampled_text`: ids of columns where a sample decides; these statistics are dropped first if
    they exceed the budget. `json`: paths by column id; the empty path requests the paths that
    occur. Without `enabled`, nothing is collected, but parts keep their key ranges, which merges
    need. `collectors`: names of collectors by column id, which replace the built-in ones.
    """

    enabled: bool = True
    budget: Budget = field(default_factory=Budget)
    text: frozenset[int] = frozenset()
    sampled_text: frozenset[int] = frozenset()
    json: Mapping[int, tuple[Path, ...]] = field(default_factory=dict)
    collectors: Mapping[int, str] = field(default_factory=dict)


def statistics_options(
    properties: Mapping[str, str], schema: Schema, key: Iterable[Field] = ()
) -> StatisticsOptions:
    """Read the properties; InvalidInput if they do not fit the schema. Keys are critical."""
    switch = properties.get("statistics", "on")
    if switch not in ("on", "off"):
        raise InvalidInput(f"property statistics is {switch!r}; it must be 'on' or 'off'")
    text = _columns(properties, "text_statistics", schema, String, "text")
    for column, path in text:
        if path:
            raise InvalidInput(
                f"property text_statistics names {column.name!r} with a path, "
                f"{'.'.join(map(str, path))}; name whole columns only"
            )
    json: dict[int, tuple[Path, ...]] = {}
    for column, path in _json_paths(properties, "json_statistics", schema):
        json[column.id] = (*json.get(column.id, ()), path)
    named = [column.id for column in (*key, *_critical(properties, schema))]
    return StatisticsOptions(
        enabled=switch == "on",
        budget=Budget(
            _count(properties, "statistics_bytes", DEFAULT_BYTES),
            _count(properties, "statistics_bytes_per_1000_rows", DEFAULT_BYTES_PER_1000_ROWS),
            critical_ids(schema, named),
        ),
        text=frozenset(column.id for column, _ in text),
        sampled_text=frozenset(
            column.id
            for column in schema
            if isinstance(column.type, String) and "text_statistics" not in properties
        ),
        json=json,
        collectors=collector_names(properties, schema),
    )


def shredded_paths(
    properties: Mapping[str, str], schema: Schema
) -> tuple[tuple[Field, tuple[Path, ...]], ...]:
    """Read the property `json_shredding`: each JSON column it names, with its paths.

    InvalidInput if it does not fit the schema, or the table's JSON is stored as opaque bytes.
    """
    by_column: dict[Field, dict[Path, None]] = {}
    for column, path in _json_paths(properties, "json_shredding", schema):
        if not path:
            raise InvalidInput(
                f"property json_shredding names {column.name!r} without a path; name the paths to "
                f"store as columns, such as {column.name}.user.id"
            )
        by_column.setdefault(column, {})[path] = None
    count = sum(map(len, by_column.values()))
    if count > MAX_SHREDDED:
        raise InvalidInput(
            f"property json_shredding names {count} paths; at most {MAX_SHREDDED} are stored as "
            "columns, so name those that conditions use most"
        )
    if by_column and properties.get("value_forms") == "opaque":
        raise InvalidInput(
            "property json_shredding stores values of JSON as columns with statistics, but "
            "value_forms is 'opaque', which hides them; unset one of the two"
        )
    return tuple((column, tuple(paths)) for column, paths in by_column.items())


def named_ids(properties: Mapping[str, str], schema: Schema) -> tuple[int, ...]:
    """Return the ids that the properties name, in their order; InvalidInput for other names."""
    text = _columns(properties, "text_statistics", schema, String, "text")
    json = _columns(properties, "json_statistics", schema, Json, "JSON")
    json += _columns(properties, "json_shredding", schema, Json, "JSON")
    named = (*_critical(properties, schema), *(column for column, _ in (*text, *json)))
    return (*(column.id for column in named), *collector_names(properties, schema))


def _json_paths(
    properties: Mapping[str, str], name: str, schema: Schema
) -> list[tuple[Field, Path]]:
    """The JSON columns and paths that a property names."""
    paths = _columns(properties, name, schema, Json, "JSON")
    for step in (step for _, path in paths for step in path):
        if not is_plain(str(step)):
            raise InvalidInput(
                f"property {name} names the key {step!r}; keys with quotes, backslashes or control "
                "characters have no statistics"
            )
    return paths


def _count(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name, str(default))
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(
            f"property {name} is {text!r}; it must be a number of bytes, such as {default}"
        )
    return int(text)


def _critical(properties: Mapping[str, str], schema: Schema) -> Iterator[Field]:
    """The named columns, and fields of structs by path."""
    for first, *path in _paths(properties.get("critical_columns", ""), "critical_columns"):
        column = next((field for field in schema if field.name == first), None)
        for step in path:
            members = column.type.fields if column and isinstance(column.type, Struct) else ()
            column = next((member for member in members if member.name == step), None)
        if column is None:
            raise InvalidInput(
                f"property critical_columns names {'.'.join((first, *path))!r}, "
                f"which is not a column; the columns are {', '.join(schema.names)}"
            )
        yield column


def _columns(
    properties: Mapping[str, str],
    name: str,
    schema: Schema,
    kind: Callable[..., LogicalType],
    what: str,
) -> list[tuple[Field, Path]]:
    columns: list[tuple[Field, Path]] = []
    for column_name, *path in _paths(properties.get(name, ""), name):
        column = next((each for each in schema if each.name == column_name), None)
        if column is None:
            raise InvalidInput(
                f"property {name} names {column_name!r}, which is not a column; "
                f"the columns are {', '.join(schema.names)}"
            )
        if not isinstance(column.type, kind):  # type: ignore[arg-type]
            raise InvalidInput(
                f"property {name} names {column_name!r} of type {type_name(column.type)}; it "
                f"accepts {what} columns only"
            )
        columns.append((column, tuple(path)))
    return columns


def _paths(text: str, name: str) -> list[list[str]]:
    """Parse `a, b.c, "d,e".f` to lists of steps."""
    paths: list[list[str]] = []
    position, steps = 0, []
    text = text.strip()
    while text:
        match = _STEP.match(text, position)
        if match is None:
            raise InvalidInput(
                f"property {name} is {text!r}, which has no name at character {position + 1}; "
                "write names with dots between the steps of a path and commas between paths, such "
                'as payload.user.id, payload."odd name"'
            )
        steps.append(match[1].replace('""', '"') if match[1] else match[2])
        rest = text[match.end() :]
        if rest.startswith("."):
            position = match.end() + 1
            continue
        paths.append(steps)
        steps = []
        if not rest:
            break
        blank = len(rest) - len(rest.lstrip())
        if not rest.lstrip().startswith(","):
            position = match.end() + blank
            raise InvalidInput(
                f"property {name} is {text!r}, which lacks a comma or a dot at character "
                f"{position + 1}"
            )
        after = rest.lstrip()[1:]
        position = len(text) - len(after.lstrip())
    return paths


NOTHING_MORE: Final = StatisticsOptions()
