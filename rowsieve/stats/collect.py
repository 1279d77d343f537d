"""Collects the statistics of a part's columns, batch by batch.

Every field gets counts, and bounds if its type has an order. Fields of structs, elements and
lengths of lists, and keys and values of maps have their own statistics. The table's options add
statistics of numbers in text, of text in one case, and of JSON paths.

Soundness: every value of every batch lies within the bounds; see `rowsieve.stats.values`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Final, Protocol, TypeAlias

from rowsieve.metrics import WriterMetrics
from rowsieve.stats.consistency import is_consistent
from rowsieve.stats.json_paths import JsonCollector
from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.named_collectors import collector_named
from rowsieve.stats.selection import NOTHING_MORE, StatisticsOptions
from rowsieve.stats.subjects import TEXT_FACTS, Described, describe
from rowsieve.stats.text_facts import SampledTextCollector, TextCollector
from rowsieve.stats.trim import trim
from rowsieve.stats.values import ValueCollector, Values, extremes_together
from rowsieve.types.aliases import is_opaque
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_schema


class ColumnCollector(Protocol):
    """Collects statistics of one column of one part."""

    def add(self, values: Values) -> None:
        """Account for the column's values in a batch."""

    def finish(self) -> Iterable[tuple[Subject, ColumnStatistics]]:
        """The statistics of all values so far, by subject."""


MakeCollector: TypeAlias = Callable[[Field], ColumnCollector]


@dataclass(frozen=True, slots=True)
class Collecting:
    """Custom collectors by field id, which replace the built-in ones, and the metrics."""

    overrides: dict[int, MakeCollector] = dataclass_field(default_factory=dict)
    metrics: WriterMetrics = dataclass_field(default_factory=WriterMetrics)


class StatisticsCollector:
    """Collects the statistics of the columns of one part, from any number of batches."""

    def __init__(
        self,
        schema: Schema,
        options: StatisticsOptions = NOTHING_MORE,
        collecting: Collecting | None = None,
    ) -> None:
        overrides = collecting.overrides if collecting else {}
        if options.enabled and options.collectors:
            named = {column: collector_named(name) for column, name in options.collectors.items()}
            overrides = {**named, **overrides}
        self._options = options
        self._metrics = collecting.metrics if collecting else WriterMetrics()
        self._rows = 0
        self._subjects = _subjects(schema, frozenset(overrides)) if options.enabled else _NONE
        self._collectors: list[ValueCollector] = []
        for each in self._subjects.described:
            self._collectors.append(ValueCollector(each.type, repeated=each.repeated))
        self._extra: list[tuple[Field, ColumnCollector]] = []
        for column in schema if options.enabled else ():
            if column.id not in self._subjects.columns:
                if column.id in overrides and not _is_opaque(column):
                    self._extra.append((column, overrides[column.id](column)))
                continue
            if column.id in options.text:
                self._extra.append((column, TextCollector(column.id)))
            if column.id in options.sampled_text:
                self._extra.append((column, SampledTextCollector(column.id)))
            if column.id in options.json:
                self._extra.append((column, JsonCollector(column.id, options.json[column.id])))

    def add(self, rows: Any) -> None:
        """Account for the rows of a table or batch that has all the columns."""
        begin = time.perf_counter()
        self._rows += rows.num_rows
        values: dict[Subject, Values] = {}
        for id_, name in self._subjects.columns.items():
            values[id_] = rows.column(name)
        known = dict(zip(values, extremes_together([*values.values()]), strict=True))
        for each, collector in zip(self._subjects.described, self._collectors, strict=True):
            if each.parent is not None:
                values[each.subject] = each.of_parent(values[each.parent])
            collector.add(values[each.subject], known.get(each.subject))
        for column, other in self._extra:
            other.add(rows.column(column.name))
        self._metrics.statistics_s += time.perf_counter() - begin

    def add_tombstones(self, keys: Any) -> None:
        """Widen the bounds to include deleted keys; columns that `keys` lacks do not change."""
        self._rows += keys.num_rows
        names = set(keys.schema.names)
        for each, collector in zip(self._subjects.described, self._collectors, strict=True):
            if each.parent is None and (name := self._subjects.columns[each.subject]) in names:
                collector.widen(keys.column(name))
        for column, other in self._extra:
            if column.name in names:
                other.add(keys.column(column.name))

    def finish(self) -> dict[Subject, ColumnStatistics]:
        """Return the statistics by subject, within the budget."""
        begin = time.perf_counter()
        by_subject: dict[Subject, ColumnStatistics] = {}
        for each, collector in zip(self._subjects.described, self._collectors, strict=True):
            by_subject[each.subject] = collector.finish()
        for column, other in self._extra:
            for subject, statistics in other.finish():
                if is_consistent(subject, statistics, column, self._rows):
                    by_subject[subject] = statistics
                else:
                    self._metrics.statistics_mismatched += 1
        budget = self._options.budget
        trimmed = trim(by_subject, budget.bytes_for(self._rows), budget.critical, self._is_sampled)
        self._metrics.statistics_trimmed += trimmed.count
        self._metrics.statistics_bytes += trimmed.size_bytes
        self._metrics.statistics_s += time.perf_counter() - begin
        return trimmed.statistics

    def _is_sampled(self, subject: Subject) -> bool:
        """Return whether a sample of the text, not a table property, selected these statistics."""
        return (
            isinstance(subject, Derived)
            and subject.field_id in self._options.sampled_text
            and subject.what in TEXT_FACTS
        )


@dataclass(frozen=True, slots=True)
class _Subjects:
    """The columns whose values are collected, names by id, and all their subjects in order."""

    columns: Mapping[Subject, str]
    described: tuple[Described, ...]


_NONE: Final = _Subjects({}, ())


@cached_by_schema
def _subjects(schema: Schema, replaced: frozenset[int]) -> _Subjects:
    """What is collected of a schema, without columns that other collectors replace."""
    columns = [each for each in schema if each.id not in replaced and not _is_opaque(each)]
    return _Subjects({each.id: each.name for each in columns}, tuple(describe(columns)))


def _is_opaque(column: Field) -> bool:
    return column.alias is not None and is_opaque(column.alias)
