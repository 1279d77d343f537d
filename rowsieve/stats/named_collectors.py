"""Collectors of statistics by name: every writer of a table uses those that its property names.

A name is that of `Config(collectors=…)` of the process that writes, else an entry point of an
installed package. Soundness: a name selects among what is registered, and never names code to
import. A writer that does not have the collector fails, because its statistics would not be what
the table promises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from rowsieve.config import current
from rowsieve.errors import InvalidInput, did_you_mean
from rowsieve.types.schema import Schema

COLLECTORS: Final = "collectors"
"""The property: `age: tens, "odd name": places`."""
GROUP: Final = "rowsieve.collectors"
"""The group of entry points whose names the property may have."""

_PAIR: Final = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s",:]+))\s*:\s*([A-Za-z_][\w.-]*)\s*')


def collector_names(properties: Mapping[str, str], schema: Schema) -> dict[int, str]:
    """The names of collectors by field id; InvalidInput if the property does not fit the schema."""
    names: dict[int, str] = {}
    for column, collector in _pairs(properties.get(COLLECTORS, "")):
        field = next((each for each in schema if each.name == column), None)
        if field is None:
            raise InvalidInput(
                f"property {COLLECTORS} names {column!r}, which is not a column; the columns are "
                f"{', '.join(schema.names)}"
            )
        if field.id in names:
            raise InvalidInput(f"property {COLLECTORS} names column {column!r} twice")
        names[field.id] = collector
    return names


def collector_named(name: str) -> Any:
    """The function that makes collectors, by its name; InvalidInput if there is none."""
    registered, points = current().collectors, _points()
    if name in registered:
        return registered[name]
    if name not in points:
        known = sorted({*points, *registered})
        raise InvalidInput(
            f"property {COLLECTORS} names the collector {name!r}, which this process does not "
            f"have; registered are: {', '.join(known) or 'none'}{did_you_mean(name, known)}. "
            f"Register it in each process that writes, by an entry point of the group {GROUP} or "
            "by Config(collectors=...)"
        )
    try:
        return points[name].load()
    except Exception as error:  # the package's module may raise anything
        raise InvalidInput(
            f"property {COLLECTORS}: the entry point {name} = {points[name].value} of group "
            f"{GROUP} cannot be loaded: {type(error).__name__}: {error}"
        ) from error


@lru_cache(maxsize=1)
def _points() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while text.strip():
        pair = _PAIR.match(text, position)
        if pair is None or (pair.end() < len(text) and text[pair.end()] != ","):
            raise InvalidInput(
                f"property {COLLECTORS} is {text!r}, which has no column and collector at "
                f"character {position + 1}; write them as 'age: tens, \"odd name\": places'"
            )
        yield pair[1].replace('""', '"') if pair[1] else pair[2], pair[3]
        position = pair.end() + 1
        if position > len(text):
            return
