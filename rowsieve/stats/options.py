"""Which statistics a table wants, read from its properties.

Names of columns and paths are separated by commas, steps of a path by dots; a name with a comma, a
dot or a space in it stands in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from rowsieve.errors import InvalidInput
from rowsieve.stats.json_kinds import Path, is_plain
from rowsieve.types.logical import Field, Json, LogicalType, String, type_name
from rowsieve.types.schema import Schema

_STEP = re.compile(r'"((?:[^"]|"")+)"|([^\s",.]+)')


@dataclass(frozen=True, slots=True)
class StatisticsOptions:
    """What is collected besides counts and bounds of every field.

    `text`: ids of columns whose text may spell numbers or be compared in one case. `json`: paths by
    column id; the empty path lets the paths be found. With `enabled` false nothing is collected at
    all; keys keep their ranges, which the merge needs.
    """

    enabled: bool = True
    text: frozenset[int] = frozenset()
    json: Mapping[int, tuple[Path, ...]] = field(default_factory=dict)


def statistics_options(properties: Mapping[str, str], schema: Schema) -> StatisticsOptions:
    """Read the properties; InvalidInput where they do not fit the schema."""
    switch = properties.get("statistics", "on")
    if switch not in ("on", "off"):
        raise InvalidInput(f"property statistics is {switch!r}; it is 'on' or 'off'")
    text = _columns(properties, "text_statistics", schema, String, "text")
    for column, path in text:
        if path:
            raise InvalidInput(
                f"property text_statistics names {column.name!r} with a path, "
                f"{'.'.join(map(str, path))}; it takes whole columns"
            )
    json: dict[int, tuple[Path, ...]] = {}
    for column, path in _columns(properties, "json_statistics", schema, Json, "JSON"):
        for key in path:
            if not is_plain(str(key)):
                raise InvalidInput(
                    f"property json_statistics names the key {key!r}; keys with quotes, "
                    "backslashes or control characters have no statistics"
                )
        json[column.id] = (*json.get(column.id, ()), path)
    return StatisticsOptions(switch == "on", frozenset(column.id for column, _ in text), json)


def _columns(
    properties: Mapping[str, str],
    name: str,
    schema: Schema,
    kind: Callable[..., LogicalType],
    what: str,
) -> list[tuple[Field, Path]]:
    found: list[tuple[Field, Path]] = []
    for column_name, *path in _paths(properties.get(name, ""), name):
        column = next((each for each in schema if each.name == column_name), None)
        if column is None:
            raise InvalidInput(
                f"property {name} names {column_name!r}, which is no column; "
                f"columns are {', '.join(schema.names)}"
            )
        if not isinstance(column.type, kind):  # type: ignore[arg-type]
            raise InvalidInput(
                f"property {name} names {column_name!r}, a {type_name(column.type)}; it is for "
                f"{what} columns"
            )
        found.append((column, tuple(path)))
    return found


def _paths(text: str, name: str) -> list[list[str]]:
    """`a, b.c, "d,e".f` as lists of steps."""
    found: list[list[str]] = []
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
        found.append(steps)
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
    return found


NOTHING_MORE: Final = StatisticsOptions()
