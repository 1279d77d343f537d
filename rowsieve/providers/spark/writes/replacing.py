"""Overwrites of the rows that match a condition: the option `replaceWhere`.

Tasks check that every new row matches. The commit reads the keys of the new parts and of the rows
that match, deletes the rest of these, and refuses a key of a row that stays: all keys of the new
rows are in the memory of the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from rowsieve import clock
from rowsieve.bridges.where import to_predicate
from rowsieve.changes.change import Change, Question
from rowsieve.changes.mutation import Mutation, Stale, commit_mutation
from rowsieve.changes.operations import NewParts, overwrite_where_by_parts
from rowsieve.changes.vector_building import with_eager_vectors
from rowsieve.errors import CommitConflict, InvalidInput
from rowsieve.executor.part_sources import PartSource
from rowsieve.objects import ObjectStore
from rowsieve.planner.pieces import planned_part
from rowsieve.predicate.bind import bind
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.spark.session_settings import session_independent
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes.job import WriteJob
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.retries import Retries
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

RETRY_S = 600.0  # how long an overwrite is repeated after conflicts


def replaced_rows(options: WriteOptions, schema: Schema) -> Question | None:
    """The condition of a conditional overwrite; None if the write has none."""
    if not options.is_conditional:
        return None
    semantics = options.semantics or Semantics.SPARK
    if options.predicate is not None:
        predicate = options.predicate
    elif options.semantics is not None:
        text = options.replace_where
        predicate = to_predicate(text, "spark", schema, semantics, names_checked=True)
    else:
        predicate, is_whole = session_independent(options.replace_where or "", schema)
        if not is_whole:
            raise InvalidInput(
                f"option replaceWhere: {options.replace_where} depends on the settings of the "
                "session, which a write does not see; give the options time_zone and ansi"
            )
    question = Question(predicate, semantics, clock.now_us())
    bind(predicate, schema, semantics, now_us=question.now_us)
    return question


def commit_replacing(
    job: WriteJob,
    log: CommitLog,
    head: Snapshot,
    store: ObjectStore,
    new: NewParts,
    check: Callable[[Snapshot], None],
) -> None:
    """Commit an overwrite of the rows that match; computed again after a conflicting commit."""
    assert job.replaces is not None
    retries = Retries(job.operation, RETRY_S)
    change = Change(store, job.operation, job.metadata, job.token, None, retries)
    question = job.replaces

    def build(snapshot: Snapshot) -> Mutation:
        check(snapshot)
        return overwrite_where_by_parts(change, snapshot, question, new)

    complete = partial(with_eager_vectors, store)
    try:
        commit_mutation(log, build, head, retries, complete=complete)
    except Stale as error:
        raise CommitConflict(
            f"overwrite of {job.table_uri}: other commits changed the replaced rows for "
            f"{RETRY_S:.0f} seconds; nothing was committed; repeat the write"
        ) from error


def keys_of_parts(
    store: ObjectStore, parts: PartTable, schema: Schema, order: KeyOrder | None
) -> pa.Table:
    """The keys of all rows of uncommitted parts; of a table without a key, no columns."""
    names = () if order is None else order.names
    key = schema.select(names)
    if order is None:
        return arrow_schema(key).empty_table()
    fresh = parts.with_commit_ts(0)  # uncommitted parts have none; any value works here
    batches = [
        batch
        for entry in fresh.entries(range(len(fresh)))
        for _, batch in PartSource(store, planned_part(entry), schema).rows(key)
    ]
    return pa.Table.from_batches(batches, arrow_schema(key))
