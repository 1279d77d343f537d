"""Stores the statistics of all parts as Arrow columns `stats.<subject>.<fact>`, one row per part.

A subject is a field id, or a field id and the name of derived values (`7.length`). Facts:
`null_count` of every subject; `lower` and `upper` in its storage type, `lower_exact` and
`upper_exact` if its type has an order; `nan_count` of floats; `value_count` inside lists and maps;
`kinds` of JSON paths. NULL and a missing column both mean "unknown".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from rowsieve.stats.model import UNKNOWN, ColumnStatistics, Derived, Subject
from rowsieve.stats.subjects import Described, derived, describe
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_schema

_Fact: TypeAlias = tuple[str, str, pa.DataType]
"""The manifest's column of a fact, the fact, and the type of the column."""
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
    for subject, facts in _subjects(parts, schema):
        for name, fact, type_ in facts:
            columns[name] = None  # keeps its place
            kind = (fact in _BOUNDS, type_)
            if (group := alike.get(kind)) is None:
                group = alike[kind] = ([], [])
            group[0].append(name)
            group[1].extend([getattr(part.get(subject, UNKNOWN), fact) for part in parts])
    for (_, type_), (names, cells) in alike.items():
        # An array costs the same for one value as for thousands: wide tables have thousands of
        # columns of one value.
        values = pa.array(cells, type_)
        for place, name in enumerate(names):
            columns[name] = values.slice(place * len(parts), len(parts))
    return columns


def statistics_name(subject: Subject, fact: str) -> str:
    """The name of the manifest's column for one fact of one subject."""
    return f"stats.{subject}.{fact}"


def _subjects(
    parts: Sequence[Mapping[Subject, ColumnStatistics]], schema: Schema
) -> Iterator[tuple[Subject, Sequence[_Fact]]]:
    """The known subjects with their facts, those of the schema first."""
    others = set().union(*parts)
    for subject, facts in _facts_by_subject(schema).items():
        if subject in others:
            others.remove(subject)
            yield subject, facts
    if not others:
        return
    for other in sorted(each for each in others if isinstance(each, Derived)):
        if (described := derived(other)) is not None:
            yield other, _facts_of(described)


@cached_by_schema
def _facts_by_subject(schema: Schema) -> Mapping[Subject, Sequence[_Fact]]:
    """The facts that the subjects of a schema may have, in its order."""
    return {described.subject: _facts_of(described) for described in describe(schema)}


def _facts_of(described: Described) -> Sequence[_Fact]:
    prefix = statistics_name(described.subject, "")
    return [(prefix + fact, fact, type_) for fact, type_ in described.facts]
