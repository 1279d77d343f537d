"""Rows with the version of the commit that last changed them, of those changed since a version.

Parts of commits up to that version are not read: they have no such row, and hide none. The feed is
not needed, so the versions between may have expired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidInput, UnsupportedOperation, VersionNotFound
from rowsieve.executor.execute import Execution
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import table_columns
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.parts.row_versions import (
    KEPT_SINCE,
    RESTORED,
    ROW_VERSION,
    keeps_versions,
    with_versions,
)
from rowsieve.storage.snapshot import Snapshot


def last_changes(
    store: ObjectStore,
    snapshot: Snapshot,
    since: int,
    *,
    columns: Sequence[str] | None,
    predicate: Predicate,
    semantics: Semantics,
    now_us: int,
) -> pa.RecordBatchReader:
    """The rows that commits after `since` have changed, and as the last column their version.

    A row that a restore brought back was changed by it.
    """
    _check(snapshot, since)
    restored = int(snapshot.table.properties.get(RESTORED, 0))
    ages = snapshot.parts.numbers("commit_ts_max")
    newer = np.flatnonzero((ages > since) | (restored > since))
    only = replace(with_versions(snapshot), parts=snapshot.parts.take(newer))
    names = snapshot.schema.names if columns is None else tuple(columns)
    plan = plan_scan(
        only,
        store.uri,
        predicate=predicate,
        columns=table_columns((*names, ROW_VERSION.name)),
        semantics=semantics,
        now_us=now_us,
    )
    execution = Execution(plan, store)
    schema = execution.schema

    def changed() -> Iterator[pa.RecordBatch]:
        for batch in execution.read():
            place = batch.num_columns - 1
            versions = pc.max_element_wise(batch.column(place), pa.scalar(restored, pa.int64()))
            rows = batch.set_column(place, schema.field(place), versions)
            newer = rows.filter(pc.greater(versions, since))
            if newer.num_rows:
                yield newer

    return pa.RecordBatchReader.from_batches(schema, changed())


def _check(snapshot: Snapshot, since: int) -> None:
    properties = snapshot.table.properties
    if not keeps_versions(properties):
        raise UnsupportedOperation(
            "last_changed: rewrites of the table do not keep the version of each row; set the "
            "property row_versions = 'kept', from which on they do"
        )
    if since < 0:
        raise InvalidInput(f"last_changed: since={since} is below 0; give the number of a version")
    if since > snapshot.version:
        raise VersionNotFound(
            f"last_changed: the newest version is {snapshot.version}, and since={since} is after it"
        )
    first = int(properties.get(KEPT_SINCE, 0))
    if since < first:
        raise UnsupportedOperation(
            f"last_changed: versions of rows are kept since version {first}, when row_versions was "
            f"set, and since={since} is before it; read all rows, or the changes of these versions"
        )
