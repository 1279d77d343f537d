"""The statistics of whole foreign files, for the manifest: by column of the table.

The statistics of the row groups of all files are decoded together, and joined by file. Soundness:
that of `rowsieve.parquet.statistics.foreign_statistics`; a file has a bound only if each of its row
groups has one, or only NULLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.foreign.footers import Footer
from rowsieve.foreign.hive import Partitions
from rowsieve.foreign.joined_columns import JoinedColumns
from rowsieve.parquet.foreign_footer.footer_fields import PHYSICAL
from rowsieve.parquet.leaf_columns import FileColumn
from rowsieve.parquet.statistics.foreign_chunks import stored_chunks
from rowsieve.parquet.statistics.foreign_statistics import foreign_column
from rowsieve.parquet.statistics.stored_bounds import StoredBounds, joined_bounds
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.manifests.manifest_columns import Indices, at_places
from rowsieve.types import logical
from rowsieve.types.encodings import arrow_type
from rowsieve.types.stored_defaults import constant, is_nan

Counts = npt.NDArray[np.int64]


class FileStatistics:
    """Columns of the manifest with the statistics of these files; decodes a column when asked.

    `places`: those of the files in `partitions`.
    """

    def __init__(
        self,
        footers: Sequence[Footer],
        joined: JoinedColumns,
        partitions: Partitions,
        places: Sequence[int],
    ) -> None:
        self._footers = footers
        self._joined = joined
        self._partitions = partitions
        self._constants = [partitions.values[place] for place in places]
        self._leaves: dict[int, Mapping[str, int]] = {}
        self._counts = np.array([footer.checked.row_count for footer in footers], np.int64)

    def __len__(self) -> int:
        """The number of files."""
        return len(self._footers)

    @property
    def columns(self) -> list[logical.Field]:
        """The columns of the table that have statistics."""
        return [each for each in self._joined.schema if logical.is_ordered(each.type)]

    def of(self, column: logical.Field) -> dict[str, pa.Array]:
        """The facts of one column in each file, by their names in the manifest."""
        names = [self._joined.names_of(footer).get(column.id) for footer in self._footers]
        present = [name is not None for name in names]
        stored = [
            None if name is None else self._flat_column(footer, name)
            for footer, name in zip(self._footers, names, strict=True)
        ]
        chunks = _gathered(self._footers, stored)
        facts = dict(_of_column(column, chunks, self._counts, np.array(present, np.bool_)))
        if self.is_constant(column):
            here = pa.array([column.name in row for row in self._constants], pa.bool_())
            for name, values in _of_constant(column, self._constants, self._counts):
                facts[name] = pc.if_else(here, values, facts[name])
        return facts

    def all(self) -> dict[str, pa.Array]:
        """The facts of all columns."""
        return {name: values for each in self.columns for name, values in self.of(each).items()}

    def is_constant(self, column: logical.Field) -> bool:
        """Return whether the column has one value in some file, by the names of directories."""
        return column.name in self._partitions.types

    def _flat_column(self, footer: Footer, name: str) -> FileColumn | None:
        """The column of a file with this name; None if it has fields or items."""
        schema = footer.schema  # files of one schema share the leaves
        if (leaves := self._leaves.get(id(schema))) is None:
            leaves = self._leaves[id(schema)] = {
                leaf.path[0]: i
                for i, leaf in enumerate(footer.checked.leaves)
                if len(leaf.path) == 1 and not leaf.repetitions
            }
        index, type_ = leaves.get(name), schema.field(name).type
        if index is None or type_.num_fields:
            return None
        leaf = footer.checked.leaves[index]
        return FileColumn(index, name, type_, PHYSICAL[leaf.physical], leaf.width)


class StatisticsOnDemand:
    """A manifest's columns, with the statistics of a column decoded at their first use.

    Thread-safe: concurrent readers may decode a column twice.
    """

    unreadable: Final[Mapping[str, int]] = {}
    unreachable: Final = False

    def __init__(self, fixed: pa.Table, statistics: FileStatistics) -> None:
        self._fixed = fixed
        self._statistics = statistics
        self._owners: dict[str, logical.Field] = {}
        fields = list(fixed.schema)
        kinds: dict[tuple[logical.LogicalType, bool], Sequence[tuple[str, pa.DataType]]] = {}
        for column in statistics.columns:
            kind = column.type, statistics.is_constant(column)
            if kind not in kinds:
                kinds[kind] = [*_facts_of(column.type, is_constant=kind[1]).items()]
            prefix = statistics_name(column.id, "")
            for fact, type_ in kinds[kind]:
                self._owners[name := prefix + fact] = column
                fields.append(pa.field(name, type_))
        self.schema = pa.schema(fields)
        self._known: dict[int, dict[str, pa.Array]] = {}

    @property
    def row_count(self) -> int:
        """The number of files."""
        return int(self._fixed.num_rows)

    def read(self, names: Sequence[str], rows: Indices | None) -> pa.Table:
        """Read some columns of all files, or of those at ascending places."""
        columns = [
            self._of(owner)[name]
            if (owner := self._owners.get(name)) is not None
            else self._fixed.column(name)
            for name in names
        ]
        table = pa.table(columns, schema=pa.schema([self.schema.field(name) for name in names]))
        return table if rows is None else at_places(table, rows)

    def _of(self, column: logical.Field) -> dict[str, pa.Array]:
        if column.id not in self._known:
            self._known[column.id] = self._statistics.of(column)
        return self._known[column.id]


def _facts_of(type_: logical.LogicalType, *, is_constant: bool) -> dict[str, pa.DataType]:
    """The facts that may be known of a column, and their types.

    Bounds are exact only where the column is a constant of files.
    """
    counts = ["null_count", *(["nan_count"] if isinstance(type_, logical.Float) else [])]
    facts: dict[str, pa.DataType] = dict.fromkeys(counts, pa.int64())
    facts |= dict.fromkeys(("lower", "upper"), arrow_type(type_))
    return facts | dict.fromkeys(("lower_exact", "upper_exact") if is_constant else (), pa.bool_())


@dataclass(frozen=True, slots=True)
class _Chunks:
    """Statistics of one column, by row group, of files that store it in one physical form.

    `files`, shape (n,): the place of the row group's file.
    """

    column: FileColumn
    files: Counts
    stored: StoredBounds


def _gathered(footers: Sequence[Footer], columns: Sequence[FileColumn | None]) -> Sequence[_Chunks]:
    """The statistics of a column in all files that have it, by physical form."""
    forms: dict[Any, list[tuple[int, FileColumn, StoredBounds]]] = {}
    for number, (footer, column) in enumerate(zip(footers, columns, strict=True)):
        if column is not None:
            form = column.physical, column.type, column.width
            stored = stored_chunks(footer.checked, column.index)
            forms.setdefault(form, []).append((number, column, stored))
    return [
        _Chunks(
            group[0][1],
            np.repeat([number for number, *_ in group], [len(each.rows) for *_, each in group]),
            joined_bounds([each for *_, each in group]),
        )
        for group in forms.values()
    ]


def _of_column(
    column: logical.Field, chunks: Sequence[_Chunks], counts: Counts, present: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, pa.Array]]:
    """The facts of one column: joined over the row groups of each file; NULL means unknown."""
    count = len(counts)
    nulls = np.where(present, np.int64(-1), counts)  # a column that a file lacks is NULL
    type_ = arrow_type(column.type)
    bounds = {"lower": pa.nulls(count, type_), "upper": pa.nulls(count, type_)}
    for each in chunks:
        stored, files = each.stored, each.files
        known = foreign_column(stored, each.column, column.type)
        sane = (stored.nulls >= 0) & (stored.nulls <= stored.rows)
        unsure = np.bincount(files[~sane], minlength=count) > 0
        summed = np.bincount(files, weights=np.where(sane, stored.nulls, 0), minlength=count)
        here = np.zeros(count, np.bool_)
        here[files] = True
        nulls = np.where(here, np.where(unsure, np.int64(-1), summed.astype(np.int64)), nulls)
        for side, values, least in (
            ("lower", known.lower, "min"),
            ("upper", known.upper, "max"),
        ):
            open_ = np.asarray(values.is_null()) & ~known.empty & (stored.rows > 0)
            file_bounds = _by_file(files, values, least, open_, count)
            if here.all():
                bounds[side] = file_bounds
            else:
                bounds[side] = pc.if_else(pa.array(here), file_bounds, bounds[side])
    yield statistics_name(column.id, "null_count"), pa.array(nulls, mask=nulls < 0)
    if isinstance(column.type, logical.Float):
        yield statistics_name(column.id, "nan_count"), pa.nulls(count, pa.int64())
    for side, values in bounds.items():
        yield statistics_name(column.id, side), values
        yield statistics_name(column.id, f"{side}_exact"), pa.array(np.zeros(count, np.bool_))


def _by_file(
    files: Counts, values: pa.Array, least: str, open_: npt.NDArray[np.bool_], count: int
) -> pa.Array:
    """(count,) the least or greatest value of each file; NULL where a row group is unbounded.

    `files`: ascending.
    """
    unbounded = np.bincount(files[open_], minlength=count) > 0
    owners, bounds = _grouped(files, values, least)
    if len(owners) == count == 1 and not unbounded[0]:
        return bounds
    places = np.full(count, -1, np.int64)
    places[owners] = np.arange(len(owners))
    places[unbounded] = -1
    taken = bounds.take(pa.array(places, mask=places < 0))
    return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken


def _grouped(files: Counts, values: pa.Array, least: str) -> tuple[Counts, pa.Array]:
    """The files that have row groups, and the least or greatest value of each."""
    if len(files) < 2 or (files[1:] != files[:-1]).all():
        return files, values  # also of types that Arrow cannot group
    try:
        if files[0] == files[-1]:  # grouping takes twenty times as long
            return files[:1], pa.array([pc.min_max(values)[least]], values.type)
        table = pa.table({"file": files, "value": values})
        grouped = table.group_by("file", use_threads=False).aggregate([("value", least)])
    except pa.ArrowException:  # no order in Arrow: unknown
        owners = np.unique(files)
        return owners, pa.nulls(len(owners), values.type)
    return np.asarray(grouped.column("file")), grouped.column(f"value_{least}")


def _of_constant(
    column: logical.Field, rows: Sequence[Mapping[str, str | None]], counts: Counts
) -> Iterator[tuple[str, pa.Array]]:
    """The facts of a constant column, which are exact; of files where it is constant."""
    type_ = arrow_type(column.type)
    scalars = [constant(each.get(column.name), column.type) for each in rows]
    nan = np.array([is_nan(each) for each in scalars], np.bool_)
    null = np.array([not each.is_valid for each in scalars], np.bool_)
    values = pa.array([None if is_nan(each) else each.as_py() for each in scalars], type_)
    yield statistics_name(column.id, "null_count"), pa.array(np.where(null, counts, 0))
    if isinstance(column.type, logical.Float):
        yield statistics_name(column.id, "nan_count"), pa.array(np.where(nan, counts, 0))
    for side in ("lower", "upper"):
        yield statistics_name(column.id, side), values
        yield statistics_name(column.id, f"{side}_exact"), pa.array(~(null | nan))
