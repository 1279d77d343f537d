"""Entries of events: decoded objects of JSON, or Arrow structs, which are read alike.

An entry is one change of one row, or a message that is none. A path such as `source.lsn` leads to a
value in each entry; a path to a row gives its columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, repeat
from operator import attrgetter, is_not
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from rowsieve.envelopes.row_structs import RowType

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JsonRows:
    """Rows as structs of `row`."""

    row: RowType
    structs: Sequence[Any]
    present: npt.NDArray[np.bool_]  # which entries have a row
    chosen: dict[int, tuple[Places, Sequence[Any]]] = field(default_factory=dict)
    """The structs at places that were asked for, by the id of the array of places."""

    def values(self, column: str, at: Places) -> Sequence[Any]:
        """Values of a column; UNSET where a row lacks it. `at` ascends."""
        structs = self.structs
        if len(at) == len(structs):
            return self.row.values(structs, column)
        if id(at) not in self.chosen:
            mask = np.zeros(len(structs), np.int8)
            mask[at] = 1
            self.chosen[id(at)] = at, list(compress(structs, mask.tobytes()))
        return self.row.values(self.chosen[id(at)][1], column)


@dataclass(frozen=True, slots=True)
class Repeated(Sequence[Any]):
    """One value in each entry."""

    value: Any
    length: int

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        return repeat(self.value, self.length)

    def __getitem__(self, place: Any) -> Any:
        return [self.value] * self.length if isinstance(place, slice) else self.value

    def __contains__(self, value: object) -> bool:
        return self.length > 0 and value == self.value

    def count(self, value: Any) -> int:
        """All entries, or none."""
        return self.length if value == self.value else 0


@dataclass(frozen=True, slots=True)
class JsonEntries:
    """Entries as msgspec decoded them; `beside`: columns and the envelope's names are in one.

    `constants` are the values that all entries have, by path.
    """

    objects: Sequence[Any]
    events: Places
    row: RowType
    beside: bool = False
    constants: Mapping[str, Any] = field(default_factory=dict)
    inner: dict[str, Sequence[Any]] = field(default_factory=dict)  # objects of the envelope
    by_path: dict[str, JsonRows] = field(default_factory=dict)

    def scalars(self, path: str) -> Sequence[Any]:
        """The value at a path in each entry."""
        if path in self.constants:
            return Repeated(self.constants[path], len(self.objects))
        if not self.beside:
            parent, _, name = path.rpartition(".")
            return list(map(attrgetter(name), self._inner(parent)))
        slot = self.row.attributes[path]
        return [None if each is UNSET else each for each in map(attrgetter(slot), self.objects)]

    def rows(self, path: str) -> JsonRows:
        """The row at a path; the entry itself if the columns are beside the envelope's names."""
        if path not in self.by_path:
            structs = self.objects if self.beside else list(map(attrgetter(path), self.objects))
            self.by_path[path] = JsonRows(self.row, structs, _not_none(structs))
        return self.by_path[path]

    def _inner(self, path: str) -> Sequence[Any]:
        """The object at a path in each entry; the entry itself without a path."""
        if not path:
            return self.objects
        if path not in self.inner:
            self.inner[path] = list(map(attrgetter(path), self.objects))
        return self.inner[path]

    def shown(self, place: int) -> Any:
        """One entry."""
        return self.objects[place]

    def take(self, at: Places) -> JsonEntries:
        """The entries at these places."""
        objects = [self.objects[place] for place in at.tolist()]
        return JsonEntries(objects, self.events[at], self.row, self.beside, self.constants)


def _not_none(structs: Sequence[Any]) -> npt.NDArray[np.bool_]:
    if None not in structs:
        return np.ones(len(structs), bool)
    return np.frombuffer(bytes(map(is_not, structs, repeat(None))), bool)


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Rows as arrays of their columns; `names` has the name that the data gives each column."""

    columns: Mapping[str, pa.Array]
    valid: npt.NDArray[np.bool_]

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which entries have a row."""
        return self.valid

    def values(self, column: str, at: Places) -> Sequence[Any] | pa.Array:
        """Values of a column; UNSET if the rows lack it."""
        array = self.columns.get(column)
        if array is None:
            return [UNSET] * len(at)
        return array if len(at) == len(array) else array.take(pa.array(at))


@dataclass(frozen=True, slots=True)
class ArrowEntries:
    """Entries as rows of a table with the envelope's columns."""

    table: pa.Table
    events: Places
    names: Mapping[str, str]  # of the table's columns, as the data spells them
    beside: bool = False
    cached: dict[str, Sequence[Any]] = field(default_factory=dict)

    def scalars(self, path: str) -> Sequence[Any]:
        """The value at a path in each entry."""
        if path not in self.cached:
            array = self._array(path)
            self.cached[path] = [None] * len(self.events) if array is None else array.to_pylist()
        return self.cached[path]

    def rows(self, path: str) -> ArrowRows:
        """The row at a path."""
        count = len(self.events)
        if self.beside:
            columns = {
                column: _whole(self.table.column(name))
                for column, name in self.names.items()
                if name in self.table.column_names
            }
            return ArrowRows(columns, np.ones(count, bool))
        array = self._array(path)
        if array is None or not pa.types.is_struct(array.type):
            return ArrowRows({}, np.zeros(count, bool))
        members = {member.name: place for place, member in enumerate(array.type)}
        flat = array.flatten()
        columns = {
            column: flat[members[name]] for column, name in self.names.items() if name in members
        }
        return ArrowRows(columns, np.asarray(array.is_valid()))

    def shown(self, place: int) -> Any:
        """One entry as a dict."""
        return self.table.slice(place, 1).to_pylist()[0]

    def _array(self, path: str) -> pa.Array | None:
        first, *rest = path.split(".") if not self.beside else [path]
        column = given_name(first, self.table.column_names)
        if column is None:
            return None
        array = _whole(self.table.column(column))
        for name in rest:
            if not pa.types.is_struct(array.type):
                return None
            member = given_name(name, [each.name for each in array.type])
            if member is None:
                return None
            array = pc.struct_field(array, member)
        return array


@dataclass(frozen=True, slots=True)
class ColumnEntries:
    """Entries of messages with one template: arrays of what differs, by path.

    `constants` are the values that all entries have, `rows_by_path` the rows that all have.
    """

    events: Places
    constants: Mapping[str, Any]
    arrays: Mapping[str, pa.Array]
    rows_by_path: Mapping[str, Mapping[str, pa.Array]]

    def scalars(self, path: str) -> Sequence[Any]:
        """The value at a path in each entry."""
        if path in self.arrays:
            values: list[Any] = self.arrays[path].to_pylist()
            return values
        return Repeated(self.constants.get(path), len(self.events))

    def rows(self, path: str) -> ArrowRows:
        """The row at a path."""
        columns = self.rows_by_path.get(path)
        return ArrowRows(columns or {}, np.full(len(self.events), columns is not None))

    def shown(self, _place: int) -> Any:
        """What all entries have."""
        return dict(self.constants)


def given_name(name: str, names: Collection[str]) -> str | None:
    """The name of a part of a path in structs: `is_ddl` may be spelled `is-ddl` or `isDdl`."""
    first, *others = name.split("_")
    spellings = (name, name.replace("_", "-"), first + "".join(map(str.capitalize, others)))
    return next((each for each in spellings if each in names), None)


Rows: TypeAlias = JsonRows | ArrowRows
"""A row in each entry, or none."""

Entries: TypeAlias = JsonEntries | ArrowEntries | ColumnEntries
"""Entries of a part of a call's messages; `events` numbers the message of each."""


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
