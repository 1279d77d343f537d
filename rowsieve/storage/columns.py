"""Named columns of parts, some in memory and some in files, which are read when they are named.

`Columns` is a sequence of pieces: rows of a `Source`, or an Arrow table. A source reads whole
columns of the rows asked for and remembers what it read; what is never named is never read.

Soundness: a row is one part in all columns, whichever was read when. So pieces keep their order,
and a source never changes the order of its rows. A column that a piece lacks is NULL there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Indices: TypeAlias = npt.NDArray[np.int64]
_LEAST_RUN: Final = 4_096  # rows on average, below which they are taken one by one


class Source(Protocol):
    """Columns that lie in files; safe to share between threads."""

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, known without reading them."""
        ...

    @property
    def unreadable(self) -> Mapping[str, int]:
        """Of how many rows the columns that start so could not be read, of those asked for."""
        ...

    @property
    def unreachable(self) -> bool:
        """Whether a store that failed is why: another look may find them."""
        ...

    def read(self, names: Sequence[str], rows: Indices | None) -> pa.Table:
        """Some columns, of all rows or of those at ascending places."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Rows of a source: all of it, or those at ascending places. A table is always whole."""

    source: Source | pa.Table
    rows: Indices | None = None

    def __len__(self) -> int:
        if isinstance(self.source, pa.Table):
            return int(self.source.num_rows)
        return self.source.row_count if self.rows is None else len(self.rows)

    def read(self, schema: pa.Schema) -> pa.Table:
        """The columns of a schema; those that the source lacks are NULL."""
        here = set(self.source.schema.names)
        names = [name for name in schema.names if name in here]
        if isinstance(self.source, pa.Table):
            found = self.source.select(names)
        else:
            found = self.source.read(names, self.rows)
        if len(names) == len(schema):
            return found
        return pa.table(
            [
                found.column(field.name) if field.name in here else _nulls(len(self), field.type)
                for field in schema
            ],
            schema=schema,
        )

    def take(self, rows: Indices) -> Piece:
        """The rows at ascending places of these."""
        if isinstance(self.source, pa.Table):
            return Piece(self.source.take(pa.array(rows)))
        return Piece(self.source, rows if self.rows is None else self.rows[rows])


class Columns:
    """An immutable sequence of pieces; every method that changes it returns another."""

    __slots__ = ("_pieces", "_read", "_table", "schema")

    def __init__(self, pieces: Sequence[Piece], schema: pa.Schema) -> None:
        self._pieces: Final = tuple(pieces)
        self._read: dict[str, pa.ChunkedArray] = {}
        self._table: Final = _only_table(self._pieces, schema)
        self.schema: Final = schema

    @classmethod
    def of(cls, source: Source | pa.Table) -> Columns:
        """All of a source or a table."""
        return cls([Piece(source)], source.schema)

    def __len__(self) -> int:
        return sum(map(len, self._pieces))

    @property
    def pieces(self) -> Iterator[tuple[int, Piece]]:
        """The pieces, each after the place of its first row."""
        start = 0
        for piece in self._pieces:
            yield start, piece
            start += len(piece)

    def unreadable(self, *prefixes: str) -> int:
        """Of how many rows columns that start so were asked for and lost, a subject each."""
        lost = [each for source in self._sources() for each in source.unreadable.items()]
        return sum(count for group, count in lost if f"{group}.".startswith(prefixes))

    @property
    def unreachable(self) -> bool:
        """Whether a store that failed is why: another look may find them."""
        return any(source.unreachable for source in self._sources())

    def column(self, name: str) -> pa.ChunkedArray:
        """One column; KeyError if there is none of the name."""
        if self._table is not None:
            return self._table.column(name)
        if name not in self._read:
            if self.schema.get_field_index(name) < 0:
                raise KeyError(name)
            self.read([name])
        return self._read[name]

    def read(self, names: Sequence[str]) -> pa.Table:
        """Some columns as a table; what was read before is not read again."""
        if self._table is not None:
            return self._table.select(list(names))
        schema = pa.schema([self.schema.field(name) for name in names])
        if missing := [field for field in schema if field.name not in self._read]:
            wanted = pa.schema(missing)
            tables = [piece.read(wanted) for piece in self._pieces]
            found = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
            self._read.update(zip(found.column_names, found.columns, strict=True))
        return pa.table([self._read[name] for name in names], schema=schema)

    def table(self) -> pa.Table:
        """All columns."""
        return self.read(self.schema.names) if self._table is None else self._table

    def select(self, wanted: Callable[[str], bool]) -> Columns:
        """Only the columns whose names are wanted."""
        names = [name for name in self.schema.names if wanted(name)]
        if self._table is not None:
            return Columns.of(self._table.select(names))
        found = Columns(self._pieces, pa.schema([self.schema.field(name) for name in names]))
        found._read.update((k, v) for k, v in self._read.items() if wanted(k))
        return found

    def append(self, others: Sequence[Columns]) -> Columns:
        """These rows, then the others'; pa.ArrowException where types of a name differ."""
        if not others:
            return self
        schemas = [self.schema, *(other.schema for other in others)]
        is_one = all(other.equals(self.schema) for other in schemas)  # thousands unify slowly
        schema = self.schema if is_one else pa.unify_schemas(schemas)
        pieces: list[Piece] = []
        every = [piece for each in (self, *others) for piece in each._pieces if len(piece)]
        for lies, run in groupby(every, key=lambda piece: not isinstance(piece.source, pa.Table)):
            if lies:
                pieces += run
            else:
                tables = [each.source for each in run]
                if len(tables) == 1 and tables[0].schema.equals(schema):
                    pieces.append(Piece(tables[0]))
                    continue
                table = pa.concat_tables(tables, promote_options="default")
                here = set(table.schema.names)
                pieces.append(Piece(table.select([n for n in schema.names if n in here])))
        return Columns(pieces or [Piece(schema.empty_table())], schema)

    def take(self, rows: Indices) -> Columns:
        """The rows at these places, in the order given; in files only ascending ones stay there."""
        if all(isinstance(piece.source, pa.Table) for piece in self._pieces):
            return Columns.of(self.table().take(pa.array(rows, pa.int64())))
        if (np.diff(rows) > 0).all():
            return Columns(list(self._at(rows)) or [Piece(self.schema.empty_table())], self.schema)
        distinct, places = np.unique(rows, return_inverse=True)
        return Columns.of(self.take(distinct).table().take(pa.array(places)))

    def in_one_chunk(self) -> Columns:
        """The same with what is in memory joined."""
        pieces = [
            Piece(piece.source.combine_chunks()) if isinstance(piece.source, pa.Table) else piece
            for piece in self._pieces
        ]
        return Columns(pieces, self.schema)

    def _sources(self) -> list[Source]:
        return [each.source for each in self._pieces if not isinstance(each.source, pa.Table)]

    def _at(self, rows: Indices) -> Iterator[Piece]:
        for start, piece in self.pieces:
            first, stop = np.searchsorted(rows, [start, start + len(piece)])
            if first < stop:
                whole = stop - first == len(piece)
                yield piece if whole else piece.take(rows[first:stop] - start)


def at_places(table: pa.Table, rows: Indices) -> pa.Table:
    """The rows at ascending places; of long runs without a gap nothing is copied."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    if len(breaks) * _LEAST_RUN >= len(rows):
        return table.take(pa.array(rows))
    starts, stops = np.append(0, breaks), np.append(breaks, len(rows))
    runs = zip(rows[starts].tolist(), (stops - starts).tolist(), strict=True)
    return pa.concat_tables([table.slice(start, count) for start, count in runs])


def _only_table(pieces: Sequence[Piece], schema: pa.Schema) -> pa.Table | None:
    """All columns, where they are one table in memory already."""
    source = pieces[0].source if len(pieces) == 1 else None
    return source if isinstance(source, pa.Table) and source.schema.equals(schema) else None


def _nulls(count: int, type_: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(count, type_)], type_)
