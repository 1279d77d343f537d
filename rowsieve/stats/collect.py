"""Taking the statistics of a part's columns, batch by batch.

Every field gets counts, and bounds where its type has an order; members of structs, elements and
lengths of lists, keys and values of maps are subjects of their own. A table's options add what text
spells and what stands at paths in JSON.

Soundness: every value of every batch lies within the bounds; see `rowsieve.stats.values`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.stats.json_paths import JsonCollector
from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.options import NOTHING_MORE, StatisticsOptions
from rowsieve.stats.subjects import LENGTH
from rowsieve.stats.text_facts import TextCollector
from rowsieve.stats.values import ValueCollector, Values
from rowsieve.types.logical import Field, Int, List, Map, Struct


class ColumnCollector(Protocol):
    """Gathers statistics of one column of one part."""

    def add(self, values: Values) -> None:
        """Account for the column's values in a batch."""
        ...

    def finish(self) -> Iterable[tuple[Subject, ColumnStatistics]]:
        """The statistics of all values so far, by subject."""
        ...


class StatisticsCollector:
    """Gathers the statistics of the columns of one part, in as many batches as it takes."""

    def __init__(self, fields: Iterable[Field], options: StatisticsOptions = NOTHING_MORE) -> None:
        columns = list(fields) if options.enabled else []
        self._columns = [FieldCollector(field) for field in columns]
        self._extra: list[tuple[str, ColumnCollector]] = []
        for field in columns:
            if field.id in options.text:
                self._extra.append((field.name, TextCollector(field.id)))
            if field.id in options.json:
                self._extra.append((field.name, JsonCollector(field.id, options.json[field.id])))

    def add(self, rows: Any) -> None:
        """Account for the rows of a table or batch that has all the columns."""
        for column in self._columns:
            column.add(rows.column(column.field.name))
        for name, collector in self._extra:
            collector.add(rows.column(name))

    def add_tombstones(self, keys: Any) -> None:
        """Widen the bounds by deleted keys; columns that `keys` lacks are as they were."""
        names = set(keys.schema.names)
        for column in self._columns:
            if column.field.name in names:
                column.widen(keys.column(column.field.name))
        for name, collector in self._extra:
            if name in names:
                collector.add(keys.column(name))

    def finish(self) -> dict[Subject, ColumnStatistics]:
        """Return the statistics by subject."""
        collectors = [*self._columns, *(collector for _, collector in self._extra)]
        return {
            subject: statistics
            for collector in collectors
            for subject, statistics in collector.finish()
        }


class FieldCollector:
    """One field, and beneath it those of its members."""

    def __init__(self, field: Field, *, repeated: bool = False) -> None:
        self.field = field
        self._values = ValueCollector(field.type, repeated=repeated)
        self._lengths: ValueCollector | None = None
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

    def add(self, values: Values) -> None:
        """Account for the field's values in a batch."""
        self._values.add(values)
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
        """Widen the bounds by deleted keys."""
        self._values.widen(values)

    def finish(self) -> Iterator[tuple[Subject, ColumnStatistics]]:
        """The statistics of the field, then those of its members."""
        yield self.field.id, self._values.finish()
        if self._lengths is not None:
            yield Derived(self.field.id, LENGTH), self._lengths.finish()
        for member in self._members:
            yield from member.finish()


def as_list_of_pairs(values: Values) -> Values:
    """Maps as lists of structs, which Arrow can take apart."""
    type_ = values.type
    key = pa.field("key", type_.key_type, nullable=False)
    return values.cast(pa.list_(pa.struct([key, pa.field("value", type_.item_type)])))
