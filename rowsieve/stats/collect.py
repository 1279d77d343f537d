"""Collects the statistics of a part's columns, batch by batch.

Every field gets counts, and bounds if its type has an order. Fields of structs, elements and
lengths of lists, and keys and values of maps have their own statistics. The table's options add
statistics of numbers in text, of text in one case, and of JSON paths.

Soundness: every value of every batch lies within the bounds; see `rowsieve.stats.values`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.metrics import WriterMetrics
from rowsieve.stats.consistency import is_consistent
from rowsieve.stats.json_paths import JsonCollector
from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.named_collectors import collector_named
from rowsieve.stats.selection import NOTHING_MORE, StatisticsOptions
from rowsieve.stats.subjects import LENGTH, TEXT_FACTS, Comparable, comparables
from rowsieve.stats.text_facts import SampledTextCollector, TextCollector
from rowsieve.stats.trim import trim
from rowsieve.stats.values import Extremes, ValueCollector, Values, extremes_together
from rowsieve.types.aliases import is_opaque
from rowsieve.types.logical import Field, Int, List, Map, Struct


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
        fields: Iterable[Field],
        options: StatisticsOptions = NOTHING_MORE,
        collecting: Collecting | None = None,
    ) -> None:
        overrides = collecting.overrides if collecting else {}
        if options.enabled and options.collectors:
            named = {field: collector_named(name) for field, name in options.collectors.items()}
            overrides = {**named, **overrides}
        self._options = options
        self._metrics = collecting.metrics if collecting else WriterMetrics()
        self._rows = 0
        self._columns: list[FieldCollector] = []
        self._names: list[str] = []
        self._extra: list[tuple[Field, ColumnCollector]] = []
        for field in fields if options.enabled else ():
            if field.alias is not None and is_opaque(field.alias):
                continue
            if field.id in overrides:
                self._extra.append((field, overrides[field.id](field)))
                continue
            self._columns.append(FieldCollector(field))
            self._names.append(field.name)
            if field.id in options.text:
                self._extra.append((field, TextCollector(field.id)))
            if field.id in options.sampled_text:
                self._extra.append((field, SampledTextCollector(field.id)))
            if field.id in options.json:
                self._extra.append((field, JsonCollector(field.id, options.json[field.id])))

    def add(self, rows: Any) -> None:
        """Account for the rows of a table or batch that has all the columns."""
        begin = time.perf_counter()
        self._rows += rows.num_rows
        taken = list(map(rows.column, self._names))
        for column, values, known in zip(
            self._columns, taken, extremes_together(taken), strict=True
        ):
            column.add(values, known)
        for field, collector in self._extra:
            collector.add(rows.column(field.name))
        self._metrics.statistics_s += time.perf_counter() - begin

    def add_tombstones(self, keys: Any) -> None:
        """Widen the bounds to include deleted keys; columns that `keys` lacks do not change."""
        self._rows += keys.num_rows
        names = set(keys.schema.names)
        for column in self._columns:
            if column.field.name in names:
                column.widen(keys.column(column.field.name))
        for field, collector in self._extra:
            if field.name in names:
                collector.add(keys.column(field.name))

    def finish(self) -> dict[Subject, ColumnStatistics]:
        """Return the statistics by subject, within the budget."""
        begin = time.perf_counter()
        by_subject: dict[Subject, ColumnStatistics] = {}
        for column in self._columns:
            by_subject.update(column.finish())
        for field, collector in self._extra:
            for subject, statistics in collector.finish():
                if is_consistent(subject, statistics, field, self._rows):
                    by_subject[subject] = statistics
                else:
                    self._metrics.statistics_mismatched += 1
        budget, critical = self._options.budget(self._rows), self._options.critical
        trimmed = trim(by_subject, budget, critical, self._is_sampled)
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


class FieldCollector:
    """Collects the statistics of one field and, recursively, of its members."""

    def __init__(self, field: Field, *, repeated: bool = False) -> None:
        self.field = field
        self._values = ValueCollector(field.type, repeated=repeated)
        self._lengths: ValueCollector | None = None
        self._comparables: list[tuple[Comparable, ValueCollector]] = []
        for each in comparables(field):
            self._comparables.append((each, ValueCollector(each.type, repeated=repeated)))
        self._members: list[FieldCollector] = []
        match field.type:
            case Struct(fields=fields):
                self._members = [FieldCollector(each, repeated=repeated) for each in fields]
            case List(element=element):
                self._lengths = ValueCollector(Int(), repeated=repeated)
                self._members = [FieldCollector(element, repeated=True)]
            case Map(key=key, value=value):
                self._lengths = ValueCollector(Int(), repeated=repeated)
                self._members = [FieldCollector(each, repeated=True) for each in (key, value)]

    def add(self, values: Values, known: Extremes | None = None) -> None:
        """Account for the field's values in a batch; `known` are their extremes."""
        self._values.add(values, known)
        for each, collector in self._comparables:
            for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
                collector.add(each.kernel(chunk))
        if not self._members:
            return
        if self._lengths is not None:
            if isinstance(self.field.type, Map):
                values = as_list_of_pairs(values)
            self._lengths.add(pc.list_value_length(values).cast(pa.int64()))
            values = pc.list_flatten(values)
        if isinstance(self.field.type, List):
            self._members[0].add(values)
            return
        for index, member in enumerate(self._members):
            member.add(pc.struct_field(values, [index]))

    def widen(self, values: Values) -> None:
        """Widen the bounds to include deleted keys."""
        self._values.widen(values)

    def finish(self) -> Iterator[tuple[Subject, ColumnStatistics]]:
        """The statistics of the field, then those of its members."""
        yield self.field.id, self._values.finish()
        if self._lengths is not None:
            yield Derived(self.field.id, LENGTH), self._lengths.finish()
        for each, collector in self._comparables:
            yield Derived(self.field.id, each.what), collector.finish()
        for member in self._members:
            yield from member.finish()


def as_list_of_pairs(values: Values) -> Values:
    """Convert maps to lists of structs, whose values Arrow can access."""
    type_ = values.type
    key = pa.field("key", type_.key_type, nullable=False)
    return values.cast(pa.list_(pa.struct([key, pa.field("value", type_.item_type)])))
