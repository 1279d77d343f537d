"""Stores the statistics of all parts as Arrow columns `stats.<subject>.<fact>`, one row per part.

A subject is a field id, or a field id and the name of derived values (`7.length`). Facts:
`null_count` of every subject; `lower` and `upper` in its storage type, `lower_exact` and
`upper_exact` if its type has an order; `nan_count` of floats; `value_count` inside lists and maps;
`kinds` of JSON paths. NULL and a missing column both mean "unknown".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from rowsieve.stats.model import UNKNOWN, ColumnStatistics, Derived, Subject
from rowsieve.stats.subjects import Described, derived, describe
from rowsieve.types.schema import Schema

_BOUNDS: Final = frozenset({"lower", "upper"})


def statistics_columns(
    parts: Sequence[Mapping[Subject, ColumnStatistics]], schema: Schema
) -> dict[str, pa.Array]:
    """Tabulate the subjects with a known fact in some part; NULL for the other parts.

    Other subjects have no columns: the budget drops the statistics of most columns of a wide
    table.
    """
    columns: dict[str, pa.Array] = {}
    alike: dict[tuple[bool, pa.DataType], tuple[list[str], list[Any]]] = {}
    for described in _subjects(parts, schema):
        known = [part.get(described.subject, UNKNOWN) for part in parts]
        prefix = statistics_name(described.subject, "")
        for fact, type_ in described.facts:
            name = prefix + fact
            columns[name] = None  # keeps its place
            kind = (fact in _BOUNDS, type_)
            if (group := alike.get(kind)) is None:
                group = alike[kind] = ([], [])
            group[0].append(name)
            group[1].extend([getattr(statistics, fact) for statistics in known])
    for (is_bound, type_), (names, cells) in alike.items():
        values = scalar_array(cells, type_) if is_bound else pa.array(cells, type_)
        columns.update(slices(names, values))
    return columns


def slices(names: Sequence[str], values: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """One array as columns of equal length, one after another.

    Making an array costs the same for one value as for thousands: wide tables have thousands of
    columns of one value.
    """
    rows = len(values) // len(names) if names else 0
    for place, name in enumerate(names):
        yield name, values.slice(place * rows, rows)


def statistics_name(subject: Subject, fact: str) -> str:
    """The name of the manifest's column for one fact of one subject."""
    return f"stats.{subject}.{fact}"


def scalar_array(scalars: Sequence[pa.Scalar | None], type_: pa.DataType) -> pa.Array:
    """Build an array from scalars of one type, with NULL for None; exact for every type."""
    return pa.array(scalars, type_)


def _subjects(
    parts: Sequence[Mapping[Subject, ColumnStatistics]], schema: Schema
) -> Iterator[Described]:
    """The known subjects, those of the schema first."""
    others = {subject for part in parts for subject in part}
    for of_schema in describe(schema):
        if of_schema.subject in others:
            others.remove(of_schema.subject)
            yield of_schema
    for subject in sorted(each for each in others if isinstance(each, Derived)):
        described = derived(subject)
        if described is not None:
            yield described
