"""Gives the abstract interpreter the statistics of row groups, from a file's footer.

The statistics of foreign files come from `rowsieve.parquet.statistics.foreign_statistics`. Of all
other files, only those with our writer's mark (`rowsieve.format`) have statistics here. The mark
guarantees:

- a float column with bounds has no NaN, because a column with NaN is written without statistics
  (invariant 32); a float column without bounds may have NaN;
- bounds are never truncated: columns with values too long for statistics have none.

Soundness: missing statistics, statistics that cannot be decoded and counts above the row count mean
"unknown". -0.0 and 0.0 are one value to the interpreter, so either may be a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.byte_cache import ByteCache
from rowsieve.parquet.file_mapping import mapping_of
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.foreign_footer.read_footer import foreign_footer
from rowsieve.parquet.leaf_columns import FileColumn, file_columns, schema_id_of
from rowsieve.parquet.shredded_columns import (
    PathFacts,
    path_facts,
    shredded_columns,
    value_at_path,
)
from rowsieve.parquet.statistics.foreign_chunks import stored_chunks
from rowsieve.parquet.statistics.foreign_statistics import foreign_column
from rowsieve.parquet.statistics.stored_bounds import StoredBounds, abstract_column
from rowsieve.parquet.stored_forms import FORMAT_KEY, FORMATS
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.interpretation.abstract import AbstractColumn, AbstractValue
from rowsieve.predicate.ir import BoundColumn, Operand
from rowsieve.stats.expressions import value_of
from rowsieve.stats.fills import Fill, fill_for, fills_at, fills_of
from rowsieve.stats.json_kinds import EVERYTHING
from rowsieve.stats.model import Derived, Subject
from rowsieve.stats.subjects import describe
from rowsieve.types.logical import LogicalType, is_ordered
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_schema

CACHE_BYTES: Final = 64 * 1024 * 1024
ONCE_BYTES: Final = 16 * 1024 * 1024
"""Of statistics that were not used again: those of files that a later version no longer has."""
MAX_JOINED: Final = 64  # subjects whose joined statistics are cached
_BYTES_PER_GROUP: Final = 2_048  # bounds of `MAX_JOINED` subjects in one row group
_BYTES_PER_FOOTER: Final = 16_384  # what is derived from a footer and lives as long


@dataclass(frozen=True, slots=True)
class _Footer:
    """The cache of one footer: its columns, and decoded statistics by field id and type.

    `foreign`: whether the file is foreign.
    """

    columns: dict[int, FileColumn]
    decoded: dict[tuple[int, LogicalType], AbstractColumn | None]
    foreign: bool
    paths: dict[Derived, PathFacts | None] = field(default_factory=dict)


@cached_per_footer
def _footer_of(metadata: pq.FileMetaData) -> _Footer:
    foreign = mapping_of(metadata) is not None
    marked = foreign or (metadata.metadata or {}).get(FORMAT_KEY) in FORMATS
    return _Footer(file_columns(metadata) if marked else {}, {}, foreign)


class RowGroupStatistics:
    """`AbstractColumns` over the row groups of one file; decodes a column at its first use.

    `known`: the field ids that may be used; None for all. Decoded statistics are cached with the
    footer. Decoding one column of 80 row groups takes about 0.15 ms.
    """

    def __init__(
        self, metadata: pq.FileMetaData, schema: Schema, known: Collection[int] | None = None
    ) -> None:
        self.part_count = int(metadata.num_row_groups)
        self._metadata = metadata
        self._types = _types_of(schema)
        self._fills = fills_of(schema)
        self._known = None if known is None else frozenset(known)
        self._footer = _footer_of(metadata)

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """The statistics of a column in every row group; None if unknown."""
        return self.subject(column.field_id)

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """The statistics of a column or struct field in every row group; None if unknown."""
        if isinstance(subject, Derived):
            known = value_at_path(subject, self.path_facts)
            return known or self.filled(subject, self.part_count)
        type_ = self.type_of(subject)
        if type_ is None:
            return None
        if self.file_column(subject) is None:
            return self.filled(subject, self.part_count)
        decoded = self._footer.decoded
        if (subject, type_) not in decoded:
            decoded[subject, type_] = self._decode(subject, type_)
        return decoded[subject, type_]

    def kinds(self, subject: Derived) -> npt.NDArray[np.int64] | None:
        """The kinds at a JSON path in every row group; None if the file has no column for it."""
        facts = self.path_facts(subject)
        return self.filled_kinds(subject, self.part_count) if facts is None else facts.kinds

    def path_columns(self, path: Derived) -> Mapping[str, FileColumn] | None:
        """The hidden columns of a JSON path; None if it has none or they may not be used."""
        if not self._footer.columns or self._footer.foreign:
            return None
        if self._known is not None and path.field_id not in self._known:
            return None
        return shredded_columns(self._metadata).get(path)

    def path_facts(self, path: Derived) -> PathFacts | None:
        """The facts of a JSON path in every row group; None if unknown."""
        columns = self.path_columns(path)
        if columns is None:
            return None
        known = self._footer.paths
        if path not in known:
            known[path] = path_facts(columns, partial(read_chunks, self._metadata))
        return known[path]

    def filled(self, subject: Subject, count: int) -> AbstractColumn | None:
        """The statistics of `count` row groups or pages without a column that was added later.

        None if the column may not be used, or it is not known that the file is older.
        """
        fill = self._fill(subject)
        return None if fill is None or not is_ordered(fill.type) else fill.repeated(count)

    def filled_kinds(self, path: Derived, count: int) -> npt.NDArray[np.int64] | None:
        """The kinds at a JSON path in `count` row groups or pages without the column."""
        fill = self._fill(path)
        return None if fill is None else np.full(count, fill.kinds, dtype=np.int64)

    def _fill(self, subject: Subject) -> Fill | None:
        field_id = subject if isinstance(subject, int) else subject.field_id
        usable = self._known is None or field_id in self._known
        mapping = mapping_of(self._metadata)
        if mapping is not None and field_id in mapping.constants:
            return None
        if not (usable and self._footer.columns) or self.file_column(field_id) is not None:
            return None
        written_with = schema_id_of(self._metadata)
        if written_with is None:
            return None
        return fill_for(fills_at(self._fills, subject), written_with)

    def type_of(self, subject: Subject) -> LogicalType | None:
        """The type of a column or struct field; None for other subjects."""
        return self._types.get(subject)

    def file_column(self, field_id: int) -> FileColumn | None:
        """The column in the file; None if it may not be used or the file lacks it."""
        if self._known is not None and field_id not in self._known:
            return None
        return self._footer.columns.get(field_id)

    def _decode(self, field_id: int, type_: LogicalType) -> AbstractColumn | None:
        column = self.file_column(field_id)
        if column is None or not is_ordered(type_):
            return None
        if (checked := foreign_footer(self._metadata)) is not None:
            return foreign_column(stored_chunks(checked, column.index), column, type_)
        return abstract_column(read_chunks(self._metadata, column), column, type_)


@cached_by_schema
def _types_of(schema: Schema) -> dict[Subject, LogicalType]:
    """The types of columns and struct fields, by field id."""
    return {each.subject: each.type for each in describe(schema) if not each.repeated}


class FileStatistics(Protocol):
    """The statistics of the row groups or pages of one file."""

    @property
    def part_count(self) -> int:
        """The number of row groups or pages."""

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """The statistics of a subject in each of them; None if unknown."""

    def kinds(self, subject: Derived) -> npt.NDArray[np.int64] | None:
        """The kinds at a JSON path in each of them; None if unknown."""


class JoinedStatistics:
    """`AbstractColumns` over the row groups or pages of several files, one file after another."""

    def __init__(self, files: Sequence[FileStatistics]) -> None:
        self._files = files
        self.part_counts = [file.part_count for file in files]
        self._known: dict[Subject, AbstractColumn | None] = {}
        self.part_count = sum(self.part_counts)

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """The statistics of a column in every row group; None if no file has any."""
        return self.subject(column.field_id)

    def expression(self, operand: Operand) -> AbstractValue | None:
        """The value of a struct field or JSON path in every row group; None for others."""
        return value_of(operand, self)

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """The statistics of a subject in every row group; None if no file has any.

        They are read once for the first `MAX_JOINED` subjects, however many conditions use them.
        """
        if subject in self._known:
            return self._known[subject]
        joined = self._joined(subject)
        if len(self._known) < MAX_JOINED:
            self._known[subject] = joined
        return joined

    def kinds(self, subject: Derived) -> npt.NDArray[np.int64] | None:
        """(n,) bits of `JsonKind`: what a JSON path may hold; None if no file knows."""
        by_file = [file.kinds(subject) for file in self._files]
        if all(kinds is None for kinds in by_file):
            return None
        return np.concatenate(
            [
                np.full(count, EVERYTHING, dtype=np.int64) if kinds is None else kinds
                for kinds, count in zip(by_file, self.part_counts, strict=True)
            ]
        )

    def _joined(self, subject: Subject) -> AbstractColumn | None:
        by_file = [file.subject(subject) for file in self._files]
        first = next((one for one in by_file if one is not None), None)
        if first is None:
            return None
        type_ = first.lower.type
        alone = by_file[0] if len(by_file) == 1 else None
        if alone and (alone.may_be_nan is not None or not pa.types.is_floating(type_)):
            return alone
        known = [
            _unknown(file.part_count, type_) if one is None else one
            for one, file in zip(by_file, self._files, strict=True)
        ]
        nan = [_all(one) if one.may_be_nan is None else one.may_be_nan for one in known]
        return AbstractColumn(
            pa.concat_arrays([one.lower for one in known]),
            pa.concat_arrays([one.upper for one in known]),
            np.concatenate([one.empty for one in known]),
            np.concatenate([one.may_be_null for one in known]),
            np.concatenate(nan) if pa.types.is_floating(type_) else None,
        )


def joined_row_groups(
    footers: Sequence[pq.FileMetaData], schema: Schema, known: frozenset[int] | None = None
) -> tuple[JoinedStatistics, Sequence[RowGroupStatistics]]:
    """The statistics of the row groups of several files, joined and by file; cached.

    `known` is that of `RowGroupStatistics`. The key has the identities of the footers. The entry
    keeps the footers, so no other footer gets their identities while it exists.
    """
    key = (tuple(map(id, footers)), schema, known)
    if (entry := _JOINED.get(key)) is None:
        files = [RowGroupStatistics(footer, schema, known) for footer in footers]
        entry = JoinedStatistics(files), files
        footer_bytes = sum(int(footer.serialized_size) + _BYTES_PER_FOOTER for footer in footers)
        _JOINED.put(key, entry, footer_bytes + entry[0].part_count * _BYTES_PER_GROUP)
    return entry


_JOINED: Final[
    ByteCache[tuple[object, ...], tuple[JoinedStatistics, Sequence[RowGroupStatistics]]]
] = ByteCache(CACHE_BYTES, "row group statistics", once_bytes=ONCE_BYTES)
"""Joined statistics by footers, schema and usable columns."""


def _unknown(count: int, type_: pa.DataType) -> AbstractColumn:
    nothing = pa.nulls(count, type_)
    unsure = np.ones(count, dtype=np.bool_)
    return AbstractColumn(nothing, nothing, ~unsure, unsure, unsure)


def _all(column: AbstractColumn) -> Mask:
    return np.ones(len(column.empty), dtype=np.bool_)


def read_chunks(metadata: pq.FileMetaData, column: FileColumn) -> StoredBounds:
    """Read one column's statistics of every row group of a file of our writer."""
    count = metadata.num_row_groups
    rows, nulls = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    bounded = np.zeros(count, dtype=np.bool_)
    lower: list[Any] = [None] * count
    upper: list[Any] = [None] * count
    for i in range(count):
        group = metadata.row_group(i)
        rows[i] = group.num_rows
        statistics = group.column(column.index).statistics
        if statistics is None:
            continue
        if statistics.has_null_count:
            nulls[i] = statistics.null_count
        if statistics.has_min_max:
            bounded[i] = True
            lower[i], upper[i] = statistics.min_raw, statistics.max_raw
    return StoredBounds(rows, nulls, bounded, lower, upper)
