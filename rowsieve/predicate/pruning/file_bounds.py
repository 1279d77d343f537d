"""`FileBounds`: the facts of a list of files as `prune` takes them, by keyword."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import pyarrow as pa

from rowsieve.errors import InvalidInput
from rowsieve.predicate.bind import as_schema
from rowsieve.types.logical import Field, Struct
from rowsieve.types.schema import Schema


class FileBounds(TypedDict):
    """Bounds and counts by column, one value a file: `prune(predicate, schema, **bounds)`."""

    min: Mapping[str, Any]
    max: Mapping[str, Any]
    nulls: Mapping[str, Any]
    nans: Mapping[str, Any]
    rows: Any


def frame_bounds(
    frame: Any,
    schema: Schema | pa.Schema,
    *,
    min: str | None = "{}_min",  # noqa: A002 - the words of the field
    max: str | None = "{}_max",  # noqa: A002
    nulls: str | None = "{}_nulls",
    nans: str | None = "{}_nans",
    rows: str | None = "rows",
) -> FileBounds:
    """Return the facts in a frame of pandas, polars or Arrow with one row a file.

    Each argument is the name of a column of the frame, with `{}` where the name of a column of
    `schema` stands, or None if the frame has no such facts. Columns that the frame lacks are
    unknown. InvalidInput if it has none of them.
    """
    patterns = {"min": min, "max": max, "nulls": nulls, "nans": nans}
    for argument, pattern in patterns.items():
        if pattern is not None and "{}" not in pattern:
            raise InvalidInput(
                f"frame_bounds: {argument}={pattern!r} has no {{}} for the name of a column; write "
                f"it as in {argument}='{{}}_{argument}'"
            )
    columns = _table(frame)
    known = set(columns.column_names)
    names = list(leaves(schema))

    def facts(pattern: str | None) -> dict[str, Any]:
        if pattern is None:
            return {}
        wanted = {name: pattern.replace("{}", name) for name in names}
        return {name: columns[theirs] for name, theirs in wanted.items() if theirs in known}

    bounds = FileBounds(
        min=facts(min),
        max=facts(max),
        nulls=facts(nulls),
        nans=facts(nans),
        rows=columns[rows] if rows in known else None,
    )
    if not any(bounds.values()) and bounds["rows"] is None:
        raise InvalidInput(
            f"frame_bounds: the frame has the columns {', '.join(sorted(known))}, and none of "
            f"them is called like a column of the schema in {min!r}, {max!r} or {nulls!r}; name "
            "them by min=, max=, nulls=, nans= and rows="
        )
    return bounds


def leaves(schema: Schema | pa.Schema) -> dict[str, tuple[tuple[str, ...], Field]]:
    """Return the path and field of every column and field of a struct, by its name with dots.

    A name that means two of them is left out.
    """
    candidates: dict[str, list[tuple[tuple[str, ...], Field]]] = {}
    stack: list[tuple[tuple[str, ...], Field]] = [
        ((field.name,), field) for field in reversed(as_schema(schema).fields)
    ]
    while stack:
        path, field = stack.pop()
        candidates.setdefault(".".join(path), []).append((path, field))
        if isinstance(field.type, Struct):
            stack.extend(((*path, each.name), each) for each in reversed(field.type.fields))
    return {name: known[0] for name, known in candidates.items() if len(known) == 1}


def _table(frame: Any) -> pa.Table:
    try:
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidInput(
            f"frame_bounds: a frame of pandas, polars or Arrow is needed, not "
            f"{type(frame).__name__}: {error}"
        ) from error
