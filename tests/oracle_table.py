"""The obvious table: a dictionary per version, and a merge that takes one row after the other.

Rows are dictionaries of physical values, as `tests/oracle.py` wants them: days, microseconds,
bytes, `decimal.Decimal`. `frozen` turns a row into something hashable that tells -0.0 from 0.0 and
has one NaN, so that comparing two reads is exact.
"""

from __future__ import annotations

import math
import struct
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve import Table
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.types.encodings import arrow_field, arrow_schema
from rowsieve.types.logical import Date, Time, Timestamp
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

Row = dict[str, Any]
Frozen = tuple[Any, ...]
Matches = Callable[[Row], bool]


def to_arrow(rows: Sequence[Mapping[str, Any]], schema: Schema) -> pa.Table:
    """Physical rows as Arrow data in the schema's storage types."""
    columns = []
    for column in schema:
        target = arrow_field(column).type
        values = [row[column.name] for row in rows]
        match column.type:
            case Date():
                array = pa.array(values, pa.int32()).view(target)
            case Time() | Timestamp():
                array = pa.array(values, pa.int64()).view(target)
            case _:
                array = pa.array(values, target)
        columns.append(array)
    return pa.Table.from_arrays(columns, schema=arrow_schema(schema))


def to_rows(table: pa.Table, schema: Schema) -> list[Row]:
    """Arrow data of these columns as physical rows, in their order."""
    columns = {}
    for column in schema:
        array = table.column(column.name)
        match column.type:
            case Date():
                array = array.cast(pa.int32())
            case Time() | Timestamp():
                array = array.cast(pa.int64())
        columns[column.name] = array.to_pylist()
    return [{name: columns[name][i] for name in columns} for i in range(table.num_rows)]


def frozen(value: Any) -> Any:
    """A hashable form in which two values are equal if they are the same stored value."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else struct.pack(">d", value))
    if isinstance(value, dict):
        return tuple((name, frozen(value[name])) for name in sorted(value))
    if isinstance(value, list | tuple):
        return ("list", *map(frozen, value))
    return (type(value).__name__, value)


def bag(rows: Iterable[Row]) -> Counter[Any]:
    """The rows without their order, to be compared."""
    return Counter(frozen(row) for row in rows)


def canonical_key_value(value: Any) -> Any:
    """What a key column stores (invariant I5)."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value


@dataclass
class Model:
    """All versions of a table. A version is {key: row}; without a key, {running number: row}."""

    schema: Schema
    key: tuple[str, ...]
    versions: list[dict[Any, Row]] = field(default_factory=lambda: [{}])
    serial: int = 0

    @property
    def head(self) -> dict[Any, Row]:
        return self.versions[-1]

    def key_of(self, row: Mapping[str, Any]) -> Frozen:
        return tuple(frozen(canonical_key_value(row[name])) for name in self.key)

    def stored(self, row: Mapping[str, Any]) -> Row:
        """The row as it reads back."""
        return {
            name: canonical_key_value(value) if name in self.key else value
            for name, value in row.items()
        }

    def write(self, rows: Iterable[Row]) -> None:
        """Upsert, or append to a table without a key, as a new version."""
        self.commit(self._with(dict(self.head), rows))

    def delete_keys(self, keys: Iterable[Row]) -> None:
        gone = {self.key_of(row) for row in keys}
        self.commit({key: row for key, row in self.head.items() if key not in gone})

    def replace(self, matches: Matches, rows: Iterable[Row]) -> None:
        """Take the matching rows away, then write."""
        kept = {key: row for key, row in self.head.items() if not matches(row)}
        self.commit(self._with(kept, rows))

    def update(self, matches: Matches, change: Callable[[Row], Row]) -> None:
        self.commit({k: change(row) if matches(row) else row for k, row in self.head.items()})

    def commit(self, state: dict[Any, Row]) -> None:
        self.versions.append(state)

    def matching(self, matches: Matches, version: int | None = None) -> list[Row]:
        state = self.head if version is None else self.versions[version]
        return [row for row in state.values() if matches(row)]

    def _with(self, state: dict[Any, Row], rows: Iterable[Row]) -> dict[Any, Row]:
        for row in rows:
            self.serial += 1
            state[self.key_of(row) if self.key else self.serial] = self.stored(row)
        return state


def merge_by_row(table: Table) -> list[Row]:
    """The pinned version, read straight from its files and its log, and merged one row at a time.

    Of a keyed table: whatever has the highest commit_ts says what its key is. It knows no planner,
    no statistics and no windows, and so is a second opinion on all three.
    """
    snapshot = table.handle.pinned
    schema = snapshot.schema
    entries = [snapshot.parts.entry(i) for i in range(len(snapshot.parts))]
    if not table.key:
        return [row for entry in entries for row in _visible(table, entry, schema)]
    order = KeyOrder.of(schema, table.key)
    key = schema.select(order.names)
    newest: dict[Any, tuple[int, Row | None]] = {}
    for entry in entries:
        assert entry.commit_ts_min == entry.commit_ts_max
        rows = [] if entry.data is None else _read(table, entry.data, schema)
        gone = [] if entry.deletes is None else _read(table, entry.deletes, key)
        for row, value in [(row, row) for row in rows] + [(row, None) for row in gone]:
            name = tuple(frozen(row[column]) for column in order.names)
            seen = newest.get(name)
            assert seen is None or seen[0] != entry.commit_ts_max, "one commit has a key twice"
            if seen is None or seen[0] < (entry.commit_ts_max or 0):
                newest[name] = (entry.commit_ts_max or 0, value)
    return [row for _, row in newest.values() if row is not None]


def _visible(table: Table, entry: Any, schema: Schema) -> list[Row]:
    from pyroaring import BitMap

    rows = _read(table, entry.data, schema)
    if entry.dv is None:
        return rows
    inside = entry.dv.path.removeprefix("data:") if entry.dv.in_manifest else None
    content = b64decode(inside) if inside else table.handle.store.get(entry.dv.path)
    hidden = set(BitMap.deserialize(content))
    return [row for i, row in enumerate(rows) if i not in hidden]


def _read(table: Table, file: FileRef, schema: Schema) -> list[Row]:
    if file.content is None:
        read = pq.read_table(pa.BufferReader(table.handle.store.get(file.path)))
    else:
        read = pa.ipc.open_stream(file.content).read_all()
    return to_rows(read.select(list(schema.names)).cast(arrow_schema(schema)), schema)
