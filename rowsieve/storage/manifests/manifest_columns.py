"""Columns of the manifest, partly in memory and partly in files; file columns load on demand.

`Columns` is a sequence of blocks: rows of a `ColumnSource`, or an Arrow table. A source reads the
requested columns for the requested rows and caches them; it never reads other columns.

Soundness: a row index means the same part in every column, regardless of when a column was read.
Blocks therefore keep their order, and a source never reorders its rows. A column that a block lacks
is NULL there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Final, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.errors import CorruptData
from rowsieve.types.widening import unified, widened

Indices: TypeAlias = npt.NDArray[np.int64]
_MIN_RUN: Final = 4_096  # average rows per run; shorter runs are copied by `take`


class ColumnSource(Protocol):
    """Columns stored in files. Thread-safe."""

    @property
    def row_count(self) -> int:
        """Number of rows."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, without reading them."""

    @property
    def unreadable(self) -> Mapping[str, int]:
        """Requested rows whose columns could not be read, by prefix of the column names."""

    @property
    def unreachable(self) -> bool:
        """True if columns are unreadable because the store failed, so that a retry may help."""

    def read(self, names: Sequence[str], rows: Indices | None) -> pa.Table:
        """Read some columns of all rows, or of the rows at ascending indices."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """All rows of a source, or those at ascending indices; of a table always all rows.

    `names` are the columns that were selected of a source, None for all; of a table always all.
    """

    source: ColumnSource | pa.Table
    rows: Indices | None = None
    names: frozenset[str] | None = None

    def __len__(self) -> int:
        if isinstance(self.source, pa.Table):
            return int(self.source.num_rows)
        return self.source.row_count if self.rows is None else len(self.rows)

    def _has(self, name: str) -> bool:
        if self.names is not None:
            return name in self.names
        return bool(self.source.schema.get_field_index(name) >= 0)

    def read(self, schema: pa.Schema) -> pa.Table:
        """Read a schema's columns: narrower ones are cast, those that the source lacks are NULL."""
        names = [name for name in schema.names if self._has(name)]
        if isinstance(self.source, pa.Table):
            table = self.source.select(names)
        else:
            table = self.source.read(names, self.rows)
        if table.schema.equals(schema):
            return table
        present = frozenset(names)
        return pa.table(
            [
                widened(table.column(field.name), field.type)
                if field.name in present
                else _nulls(len(self), field.type)
                for field in schema
            ],
            schema=schema,
        )

    def take(self, rows: Indices) -> Block:
        """Select the rows at ascending indices within this block."""
        if isinstance(self.source, pa.Table):
            return Block(self.source.take(pa.array(rows)))
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def select(self, names: Sequence[str]) -> Block:
        """Select columns by name; those that the block lacks are left out."""
        present = [name for name in names if self._has(name)]
        if isinstance(self.source, pa.Table):
            return Block(self.source.select(present))
        return replace(self, names=frozenset(present))


class Columns:
    """An immutable sequence of blocks; methods that change it return a new object of its class.

    `derived` has facts that others derived from this object; they are freed with it. Code that adds
    one must bound their number, and the key must have everything else that they depend on.
    """

    __slots__ = ("_length", "_read", "_table", "blocks", "derived", "schema")

    def __init__(
        self, rows: pa.Table | ColumnSource | tuple[Block, ...], schema: pa.Schema | None = None
    ) -> None:
        """Wrap all rows of a table or a source, or blocks with the columns of a schema."""
        blocks = rows if isinstance(rows, tuple) else (Block(rows),)
        only = blocks[0].source if len(blocks) == 1 else None
        self.schema: Final = blocks[0].source.schema if schema is None else schema
        self.blocks: Final = blocks
        is_whole = isinstance(only, pa.Table) and only.schema.equals(self.schema)
        table: Any = only if is_whole else None
        self._table: Final[pa.Table | None] = table
        """The only table in memory, if it has exactly this schema."""
        self._length: Final[int] = sum(map(len, blocks)) if table is None else table.num_rows
        self._read: dict[str, pa.ChunkedArray] = {}
        self.derived: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return self._length

    @property
    def in_memory(self) -> bool:
        """True if no column is read on demand."""
        return all(isinstance(block.source, pa.Table) for block in self.blocks)

    def placed_blocks(self) -> Iterator[tuple[int, Block]]:
        """Pairs of a block's first row index and the block."""
        start = 0
        for block in self.blocks:
            yield start, block
            start += len(block)

    def without_facts(self) -> Self:
        """Return another object of the same rows, which shares what was read of them."""
        same = type(self)(self.blocks, self.schema)
        same._read = self._read
        return same

    def unreadable(self, *prefixes: str) -> int:
        """Count requested rows with unreadable columns of these prefixes, summed over subjects."""
        lost = [each for source in self._sources() for each in source.unreadable.items()]
        return sum(count for group, count in lost if f"{group}.".startswith(prefixes))

    @property
    def unreachable(self) -> bool:
        """True if columns are unreadable because the store failed, so that a retry may help."""
        return any(source.unreachable for source in self._sources())

    def has_column(self, name: str) -> bool:
        """Return whether there is a column of this name, without a list of all names."""
        return bool(self.schema.get_field_index(name) >= 0)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column; KeyError for an unknown name."""
        if self._table is not None:
            return self._table.column(name)
        if name not in self._read:
            if not self.has_column(name):
                raise KeyError(name)
            self.read([name])
        return self._read[name]

    def read(self, names: Sequence[str]) -> pa.Table:
        """Read some columns as a table; columns already read come from the cache."""
        if self._table is not None:
            return self._table.select(list(names))
        schema = pa.schema([self.schema.field(name) for name in names])
        if missing := [field for field in schema if field.name not in self._read]:
            wanted = pa.schema(missing)
            tables = [block.read(wanted) for block in self.blocks]
            table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
            self._read.update(zip(table.column_names, table.columns, strict=True))
        return pa.table([self._read[name] for name in names], schema=schema)

    @property
    def table(self) -> pa.Table:
        """All columns, in the order of the rows; reads the columns not read yet."""
        return self.read(self.schema.names) if self._table is None else self._table

    def only(self, wanted: Callable[[str], bool]) -> Self:
        """Keep only the columns whose names `wanted` accepts."""
        names = [name for name in self.schema.names if wanted(name)]
        if self._table is not None:
            return type(self)(self._table.select(names))
        blocks = tuple([block.select(names) for block in self.blocks])
        subset = type(self)(blocks, pa.schema([self.schema.field(name) for name in names]))
        subset._read.update((k, v) for k, v in self._read.items() if wanted(k))
        return subset

    def append(self, *others: Self) -> Self:
        """Concatenate these rows and the others'; a column that one side lacks is NULL there.

        CorruptData if they have other types for a column.
        """
        if not others:
            return self
        every = (self, *others)
        blocks: list[Block] = []
        tables: list[pa.Table] = []  # since the last block of a source
        try:
            schema = _joint_schema(every)
            for block in chain.from_iterable(map(_BLOCKS, every)):
                if isinstance(block.source, pa.Table):
                    tables += [block.source] if block.source.num_rows else []
                elif len(block):
                    blocks += [*_as_blocks(tables, schema), block]
                    tables = []
            blocks += _as_blocks(tables, schema)
        except pa.ArrowException as error:
            raise CorruptData(f"manifests disagree on the type of a column: {error}") from error
        return type(self)(tuple(blocks) or (Block(schema.empty_table()),), schema)

    def take(self, rows: Any) -> Self:
        """Select rows by index, in the order given.

        Columns in files stay unread if the indices ascend; otherwise all columns are read.
        """
        rows = np.asarray(rows, dtype=np.int64)
        make = type(self)
        if self.in_memory:
            return make(self.table.take(pa.array(rows)))
        if (np.diff(rows) > 0).all():
            return make(tuple(self._at(rows)) or (Block(self.schema.empty_table()),), self.schema)
        distinct, places = np.unique(rows, return_inverse=True)
        return make(self.take(distinct).table.take(pa.array(places)))

    def in_one_chunk(self) -> Self:
        """Return the same columns with each in-memory block combined into one chunk."""
        blocks = [
            Block(block.source.combine_chunks()) if isinstance(block.source, pa.Table) else block
            for block in self.blocks
        ]
        return type(self)(tuple(blocks), self.schema)

    def _sources(self) -> list[ColumnSource]:
        return [each.source for each in self.blocks if not isinstance(each.source, pa.Table)]

    def _at(self, rows: Indices) -> Iterator[Block]:
        for start, block in self.placed_blocks():
            first, stop = np.searchsorted(rows, [start, start + len(block)])
            if first < stop:
                whole = stop - first == len(block)
                yield block if whole else block.take(rows[first:stop] - start)


_BLOCKS: Final = attrgetter("blocks")


def _joint_schema(every: Sequence[Columns]) -> pa.Schema:
    """A schema with the columns of all; that of the first if the others have no further columns.

    Arrow unifies thousands of schemas slowly, so that is left out where possible.
    """
    first = every[0].schema
    types = dict(zip(first.names, first.types, strict=True))
    for other in every[1:]:
        schema = other.schema
        if not schema.equals(first):
            joint = {**types, **dict(zip(schema.names, schema.types, strict=True))}
            if joint != types:
                return unified([each.schema for each in every])
    return first


def _as_blocks(tables: Sequence[pa.Table], schema: pa.Schema) -> list[Block]:
    """The rows of tables as one block, with columns in the order of the schema; [] of no tables."""
    if not tables:
        return []
    if len(tables) == 1 and tables[0].schema.equals(schema):
        return [Block(tables[0])]
    alike = list(map(_in_types, tables, repeat(schema)))
    table = pa.concat_tables(alike, promote_options="default")
    available = frozenset(table.schema.names)
    return [Block(table.select(list(filter(available.__contains__, schema.names))))]


def at_places(table: pa.Table, rows: Indices) -> pa.Table:
    """Select rows at ascending indices; long contiguous runs are slices without a copy."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    if len(breaks) * _MIN_RUN >= len(rows):
        return table.take(pa.array(rows))
    starts, stops = np.append(0, breaks), np.append(breaks, len(rows))
    runs = zip(rows[starts].tolist(), (stops - starts).tolist(), strict=True)
    return pa.concat_tables([table.slice(start, count) for start, count in runs])


def _in_types(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast columns to the types that the schema has for them, which hold all their values."""
    if table.schema.equals(schema):
        return table
    types = [schema.field(name).type for name in table.column_names]
    if table.schema.types == types:
        return table
    columns = list(map(widened, table.columns, types))
    return pa.table(columns, names=table.column_names)


def _nulls(count: int, type_: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(count, type_)], type_)
