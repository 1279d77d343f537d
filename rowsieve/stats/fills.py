"""Statistics of columns that were added after a part was written: those of their fill default.

Soundness (trap T20): all rows that are older than a column have its fill default, so the statistics
are exact. Fields of an added struct are NULL there, and added lists and maps have no items. A field
that was added to a struct has its fill default or, where the struct is NULL, NULL. Values that
conditions derive from the column are those of the default: the length of an interval, the bytes of
an unbounded number, the extent of a geometry, the values at a JSON path. A JSON path that a
collector of statistics would not describe is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.text_cache import cached_by_text
from rowsieve.stats.json_kinds import EVERYTHING, JsonKind, parsed_path
from rowsieve.stats.json_paths import JsonCollector
from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.subjects import LENGTH, comparables, derived
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field, Float, Int, Json, List, LogicalType, Map, Struct
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_schema
from rowsieve.types.stored_defaults import constant, is_nan


@dataclass(frozen=True, slots=True)
class Fill:
    """The statistics of a subject in files of schemas older than `added`: bounds, and NULLs.

    `is_null`: all rows are NULL. `maybe_null`: rows may also have NULL, because a struct around the
    field may be NULL. The bounds are NULL for NULL and NaN, and where nothing is known. `kinds` has
    bits of `JsonKind` for a JSON path.
    """

    added: int
    type: LogicalType
    lower: pa.Scalar
    upper: pa.Scalar
    is_null: bool = False
    is_nan: bool = False
    maybe_null: bool = False
    kinds: int = EVERYTHING

    @classmethod
    def of(
        cls, added: int, type_: LogicalType, value: pa.Scalar, *, maybe_null: bool = False
    ) -> Fill:
        """The fill of rows that all have one value, or NULL."""
        nan = is_nan(value)
        bound = pa.scalar(None, value.type) if nan else value
        return cls(added, type_, bound, bound, not value.is_valid, nan, maybe_null)

    def repeated(self, count: int) -> AbstractColumn:
        """The statistics of `count` row groups or pages whose rows all have the fill."""
        yes, no = np.ones(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        null = yes if self.is_null else no
        maybe = yes if self.maybe_null else null
        nan = (yes if self.is_nan else no) if isinstance(self.type, Float) else None
        lower, upper = pa.repeat(self.lower, count), pa.repeat(self.upper, count)
        return AbstractColumn(lower, upper, empty=null, may_be_null=maybe, may_be_nan=nan)


Fills: TypeAlias = tuple[Fill, ...]
"""The fills of one subject, oldest first: the first one that applies is the value."""


def fill_for(fills: Fills, written_with: int) -> Fill | None:
    """Return the fill for a file of this schema; None if the file has the column itself."""
    return next((fill for fill in fills if written_with < fill.added), None)


@cached_by_schema
def fills_of(schema: Schema) -> Mapping[Subject, Fills]:
    """Return the fills of each field that was added, or is inside one; see `fills_at`."""
    return {subject: fills for field in schema for subject, fills in _fills(field, ())}


def fills_at(fills: Mapping[Subject, Fills], subject: Subject) -> Fills:
    """Return the fills of a subject, which may be a JSON path, from those of its schema."""
    of_subject = fills.get(subject)
    if of_subject is not None or isinstance(subject, int):
        return of_subject or ()
    documents = fills.get(subject.field_id, ())
    if not documents or not isinstance(documents[0].type, Json):
        return ()
    return tuple(fill for each in documents if (fill := _at_path(each, subject)) is not None)


def _fills(field: Field, around: Fills, *, inside: bool = False) -> Iterator[tuple[Subject, Fills]]:
    """`around`: the fills of the struct that the field is in."""
    fills = tuple(Fill.of(each.added, field.type, constant(None, field.type)) for each in around)
    if field.added > (around[-1].added if around else 0):
        value = constant(field.fill, field.type)
        fills = (*fills, Fill.of(field.added, field.type, value, maybe_null=inside))
    if fills:
        yield field.id, fills
        yield from _derived_fills(field, fills)
    match field.type:
        case Struct(fields=members):
            for member in members:
                yield from _fills(member, fills, inside=True)
        case List(element=element) if fills:
            yield from _no_items(element, fills)
        case Map(key=key, value=value) if fills:
            yield from _no_items(key, fills)
            yield from _no_items(value, fills)


def _derived_fills(field: Field, fills: Fills) -> Iterator[tuple[Subject, Fills]]:
    """The fills of the subjects with bounds that are derived from a field; NULL gives NULL."""
    for each in comparables(field):
        values = pa.concat_arrays([pa.repeat(fill.lower, 1) for fill in fills])
        yield (
            Derived(field.id, each.what),
            tuple(
                Fill.of(fill.added, each.type, value, maybe_null=fill.maybe_null)
                for fill, value in zip(fills, each.kernel(values), strict=True)
            ),
        )
    if isinstance(field.type, List | Map):
        none = constant(None, Int())
        lengths = (Fill.of(fill.added, Int(), none) for fill in fills)
        yield Derived(field.id, LENGTH), tuple(lengths)


def _no_items(field: Field, fills: Fills) -> Iterator[tuple[Subject, Fills]]:
    """The fills of fields inside a list or map that is NULL in older files: no values at all."""
    none = constant(None, field.type)
    yield field.id, tuple(Fill(each.added, field.type, none, none) for each in fills)
    if isinstance(field.type, Struct):
        for member in field.type.fields:
            yield from _no_items(member, fills)


def _at_path(document: Fill, subject: Derived) -> Fill | None:
    """The fill of a JSON path, or of its values of one kind; None if nothing is known."""
    described, text = derived(subject), document.lower.as_py()
    if described is None:
        return None
    statistics = _described(text, subject)
    if statistics is None:
        return None
    kinds = EVERYTHING if statistics.kinds is None else statistics.kinds
    if document.maybe_null and kinds != EVERYTHING:
        kinds |= JsonKind.MISSING
    none = pa.scalar(None, arrow_type(described.type))
    lower, upper = statistics.lower or none, statistics.upper or none
    return Fill(document.added, described.type, lower, upper, maybe_null=True, kinds=kinds)


@cached_by_text
def _described(text: str | None, subject: Derived) -> ColumnStatistics | None:
    """The statistics of a JSON path in one document, or NULL; None if they are not collected."""
    path = parsed_path(subject)
    if path is None:
        return None
    if text is None:
        return ColumnStatistics(kinds=int(JsonKind.MISSING))
    keys = path[:-1] if isinstance(path[-1], int) else path
    collector = JsonCollector(subject.field_id, [keys])
    collector.add(pa.array([text], pa.string()))
    return dict(collector.finish()).get(subject)
