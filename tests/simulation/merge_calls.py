"""Calls of engines that change rows: a merge, and a batch of a stream.

The engine's own part, which joins a source with one version, is done here row by row. Reading the
version, the conflicts of the commit and its repetition are those of `Table`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowsieve import Table
from rowsieve.changes.change import Change
from rowsieve.changes.computed import changes_rows, keyed_change
from rowsieve.changes.data.ingest import Changes, prepare_appended, prepare_keys, prepare_rows
from rowsieve.changes.hiding import hide_places, part_starts
from rowsieve.changes.mutation import Check, Mutation, TouchesKeys, key_columns_of
from rowsieve.errors import KeyViolation
from rowsieve.executor.execute import Execution
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import TRUE
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema
from tests.simulation.calls import KEYS, Actor, Call, operation
from tests.simulation.model import Row, State, table_of
from tests.simulation.writer_calls import GONE, OTHER_COLUMNS


@dataclass(frozen=True)
class Source:
    """The rows of a merge: a matched row becomes the sum of both, or goes if that is odd."""

    pairs: tuple[tuple[int, int], ...]
    inserts: bool

    def applied(self, row: Row | None, key: int, value: int) -> tuple[str, int | None]:
        """Return what becomes of a row of the table, None if there is none, and its new v."""
        if row is None:
            return ("insert" if self.inserts else "keep"), value
        total = None if row["v"] is None else row["v"] + value
        return ("delete" if (key + value) % 4 == 0 else "update"), total


@operation("write", keyed=3, unkeyed=3)
def merge(actor: Actor) -> Call | None:
    """Merge a source, whose rows are matched by k."""
    draws, table, mark = actor.draws, actor.table, actor.mark
    if set(table.schema.names) != {"k", "v"}:
        return None
    known = KEYS if actor.keyed else actor.keys
    keys = sorted(draws.sample(known, draws.randint(1, 4)))
    pairs = tuple((key, draws.randrange(20)) for key in keys)
    source = Source(pairs, inserts=actor.keyed and draws.random() < 0.7)
    reads_rows = draws.random() < 0.4  # beyond those with its keys
    run = (_merged if actor.keyed else _merged_places)(table, source, mark, reads_rows=reads_rows)

    def effect(state: State, *_: object) -> State:
        for key, value in pairs:
            done, total = source.applied(state.rows.get(key), key, value)
            if done in ("insert", "update"):
                state = state.with_rows([(key, total)])
            elif done == "delete":
                state = state.without([key])
        return state

    return Call(run, effect, (*GONE, *OTHER_COLUMNS, KeyViolation))


def _execution(table: Table, snapshot: Snapshot) -> Execution:
    options = {"semantics": Semantics.SQL, "now_us": 0}
    return Execution(plan_scan(snapshot, table.uri, predicate=TRUE, **options), table.handle.store)  # type: ignore[arg-type]


def _merged(table: Table, source: Source, mark: str, *, reads_rows: bool) -> Any:
    def build(change: Change, snapshot: Snapshot) -> Mutation | None:
        schema, order = snapshot.schema, KeyOrder.of(snapshot.schema, snapshot.table.key)
        batches = _execution(table, snapshot).read()
        rows = {row["k"]: row for batch in batches for row in batch.to_pylist()}
        done = {key: source.applied(rows.get(key), key, value) for key, value in source.pairs}
        written = [(k, total) for k, (act, total) in done.items() if act in ("insert", "update")]
        gone = [key for key, (act, _) in done.items() if act == "delete"]
        changes = Changes(
            prepare_rows(_data(written), schema, order, "error", "merge") if written else None,
            prepare_keys(_keys(gone), schema, order, "merge") if gone else None,
        )
        reads = changes_rows if reads_rows else _touches(table, schema, order, source)
        return keyed_change(_marked(change, mark), snapshot, order, changes, reads)

    return lambda: table.handle.commit_computed("merge", build)


def _touches(table: Table, schema: Schema, order: KeyOrder, source: Source) -> Check:
    keys = prepare_keys(_keys([key for key, _ in source.pairs]), schema, order, "merge")
    return TouchesKeys(table.handle.store, schema, order, key_columns_of([keys], order))


def _merged_places(table: Table, source: Source, mark: str, *, reads_rows: bool) -> Any:
    del reads_rows  # it depends on all rows, always

    def build(change: Change, snapshot: Snapshot) -> Mutation | None:
        places, written = [], []
        values = dict(source.pairs)
        for place, row in _placed(table, snapshot):
            if row["k"] in values:
                places.append(place)
                act, total = source.applied(row, row["k"], values[row["k"]])
                written += [(row["k"], total)] if act == "update" else []
        rows = prepare_appended(_data(written), snapshot.schema) if written else None
        numbers = np.array(places, np.int64)
        return hide_places(_marked(change, mark), snapshot, numbers, rows, changes_rows)

    return lambda: table.handle.commit_computed("merge", build)


def _placed(table: Table, snapshot: Snapshot) -> list[tuple[int, dict[str, Any]]]:
    """The visible rows and their places among all rows of the version."""
    starts, placed = part_starts(snapshot), []
    for source, visible, batches in _execution(table, snapshot).visible_rows(snapshot.schema):
        start = starts[source.part.part_id]
        for first, batch in batches:
            shown = visible.slice(first, first + batch.num_rows).to_mask()
            rows = batch.to_pylist()
            placed += [(start + first + int(i), rows[i]) for i in np.flatnonzero(shown)]
    return placed


def _marked(change: Change, mark: str) -> Change:
    return replace(change, metadata={"mark": mark})


def _data(pairs: list[tuple[int, int | None]]) -> pa.Table:
    return table_of(pairs)


def _keys(keys: list[int]) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


@operation("stream", keyed=3, unkeyed=3)
def stream_batch(actor: Actor) -> Call | None:
    """Write a batch of a stream, with its token: the tasks' rows, then the commit."""
    from pyspark.sql.types import LongType, StructField, StructType

    from rowsieve.providers.spark.source_options import WriteOptions
    from rowsieve.providers.spark.writes import stream_sink

    if set(actor.table.schema.names) != {"k", "v"}:
        return None
    pairs, table, query, number = actor.pairs(4), actor.table, actor.name, actor.number
    mode = "upsert" if actor.keyed else "append"
    texts = {"path": "/simulation", "mode": mode, "metadata.mark": actor.mark}
    options = replace(WriteOptions.parse_stream(texts), uri=table.uri)  # options refuse memory
    columns = StructType(
        [StructField("k", LongType(), nullable=False), StructField("v", LongType())]
    )
    tasks = [pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]]

    def run() -> StreamCommit:
        writer = stream_sink.RowsieveStreamWriter.begin(options, columns)
        messages = [_sent(writer, each, query) for each in tasks if each]
        writer.commit(messages, number)
        table.refresh()
        token = table.handle.pinned.tokens[f"spark-stream:{query}"]
        return StreamCommit(token.version)

    return Call(
        run,
        lambda state, versions, entry: state.with_rows(pairs),
        (*GONE, *OTHER_COLUMNS),
        has_token=True,
    )


@dataclass(frozen=True)
class StreamCommit:
    """The version that has a batch; `committed` as of a `Commit`."""

    version: int
    committed: bool = True


def _sent(writer: Any, pairs: list[tuple[int, int | None]], query: str) -> Any:
    """Return what a task sends, which learns the id of its query from Spark."""
    from rowsieve.providers.spark.writes import stream_sink

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_sink, "_query_id", lambda: query)
        return writer.write(iter(table_of(pairs).to_batches()))
