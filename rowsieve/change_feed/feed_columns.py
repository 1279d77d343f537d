"""The columns of the change feed, and the request of its reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rowsieve.bridges.session import Session
from rowsieve.bridges.where import locating_errors, semantics_of, to_predicate
from rowsieve.change_feed.changed_rows import Narrowing
from rowsieve.change_feed.images import CHANGE_TYPES, Labelled
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import (
    TRUE,
    BoundColumn,
    Column,
    Opaque,
    Predicate,
    conjoin,
    conjuncts,
    walk,
)
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Field, Float, Int, LogicalType, String, Timestamp
from rowsieve.types.schema import Schema

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"
ADDED: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
"""The columns that every row of the feed has after those of the table."""


@dataclass(frozen=True, slots=True)
class FeedColumns:
    """The request of a reader of the feed, bound to the schema of one version.

    `schema`: the columns of the output; `names`: those of the table among them. `to_read`: these,
    the key and those of the condition. `everything`: all columns of the table.
    """

    names: tuple[str, ...]
    to_read: tuple[str, ...]
    everything: tuple[str, ...]
    schema: Schema
    filter: BoundPredicate | None
    narrowing: Narrowing

    @classmethod
    def of(
        cls,
        target: Snapshot,
        columns: Sequence[str] | None,
        where: Any,
        dialect: str,
        session: Session | None,
        now_us: int,
    ) -> FeedColumns:
        """Bind a request to the schema of a version."""
        semantics = semantics_of(dialect, where, session)
        schema = feed_schema(target)
        with locating_errors(where, dialect, schema, semantics):
            predicate = to_predicate(where, dialect, schema, semantics, session)
            return cls.bound(target, columns, predicate, semantics, now_us)

    @classmethod
    def bound(
        cls,
        target: Snapshot,
        columns: Sequence[str] | None,
        predicate: Predicate,
        semantics: Semantics,
        now_us: int,
    ) -> FeedColumns:
        """Bind a request whose condition is a tree with names of the feed."""
        schema, feed = target.schema, feed_schema(target)
        names = schema.names if columns is None else _chosen(schema, columns)
        predicate = normalize(predicate, semantics)
        bound = None
        if predicate != TRUE:
            bound = bind(predicate, feed, semantics, now_us=now_us)
        asked = set() if bound is None else {column.name for column in bound.columns}
        needed = {*names, *target.table.key, *asked}
        return cls(
            names,
            tuple(name for name in schema.names if name in needed),
            schema.names,
            feed.select((*names, *ADDED)),
            bound,
            _narrowing(predicate, target, feed, semantics, now_us),
        )

    @property
    def output(self) -> pa.Schema:
        """The Arrow schema of every batch."""
        return arrow_schema(self.schema)

    def package(self, labelled: Labelled, version: int, timestamp_us: int) -> pa.RecordBatch:
        """The output of labelled rows of one commit, which may be empty."""
        output = self.output
        rows, labels = labelled
        count = rows.num_rows
        types = pa.array(CHANGE_TYPES).take(pa.array(labels))
        times = pa.array(np.full(count, timestamp_us, dtype=np.int64))
        added = [
            types,
            pa.array(np.full(count, version, dtype=np.int64)),
            times.cast(output.field(COMMIT_TIMESTAMP).type),
        ]
        if self.filter is not None:
            wide = pa.RecordBatch.from_arrays(
                [*rows.columns, *added], names=[*rows.schema.names, *ADDED]
            )
            matches = matching(self.filter, wide)
            if not matches.all():
                places = pa.array(np.flatnonzero(matches))
                rows, added = rows.take(places), [column.take(places) for column in added]
        columns = [rows.column(name) for name in self.names]
        return pa.RecordBatch.from_arrays([*columns, *added], schema=output)


def feed_schema(target: Snapshot) -> Schema:
    """The table's columns and those of the feed."""
    taken = [name for name in target.schema.names if name.lower() in ADDED]
    if taken:
        raise UnsupportedOperation(
            f"changes: the table has a column {taken[0]!r}, which is a name of the change feed; "
            "rename the column with rename_column"
        )
    types: tuple[LogicalType, ...] = (String(), Int(64), Timestamp(utc=True))
    added = tuple(
        Field(target.next_field_id + i, name, type_, nullable=False)
        for i, (name, type_) in enumerate(zip(ADDED, types, strict=True))
    )
    return Schema(target.schema.id, (*target.schema, *added))


def _chosen(schema: Schema, columns: Sequence[str]) -> tuple[str, ...]:
    if isinstance(columns, str):
        raise InvalidInput(f"changes: columns= must be a list of names; write [{columns!r}]")
    names = tuple(schema.field(name).name for name in columns if name not in ADDED)
    if len(set(names)) < len(names):
        raise InvalidInput(
            f"changes: columns= contains a column twice: {', '.join(names)}; remove the duplicate"
        )
    return names


def _narrowing(
    predicate: Predicate, target: Snapshot, feed: Schema, semantics: Semantics, now_us: int
) -> Narrowing:
    """The terms of a condition that exclude rows or keys of the table.

    Ignores float keys: 0.0 and -0.0 are one key, but a condition may distinguish them.
    """
    of_table = set(target.schema.names)
    of_key = {
        name for name in target.table.key if not isinstance(target.schema.field(name).type, Float)
    }
    on_rows, on_keys = [], []
    for term in conjuncts(predicate):
        nodes = list(walk(term))
        if any(isinstance(node, Opaque) for node in nodes):
            continue
        names = {
            feed.field(node.name).name for node in nodes if isinstance(node, Column | BoundColumn)
        }
        if names <= of_table:
            on_rows.append(term)
        if names <= of_key:
            on_keys.append(term)
    return Narrowing(conjoin(on_rows), conjoin(on_keys), semantics, now_us)
