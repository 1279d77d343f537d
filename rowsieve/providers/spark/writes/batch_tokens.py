"""The token and the metadata of a write; inside `foreachBatch` the token comes from the batch.

Spark repeats a batch after a failure, so a write of a batch must be committed once. Its token is
named after the query, the operation and how many writes of this operation the batch has had into
the table before, and has the number of the batch: two writes of one batch never share a token.

Soundness: a write counts only when it has returned, so a function that calls again after an error
uses the same token. The count begins anew with each run of the query, because Spark calls the
function once for each batch of a run. A function that is called again for a batch must make the
same writes in the same order. Spark tells the thread of the function which batch it is; other
threads, and clients of Spark Connect, have no such token.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rowsieve.errors import UnsupportedOperation
from rowsieve.storage.log.commit_request import CommitRequest, check_request

if TYPE_CHECKING:
    from rowsieve.table import Table

QUERY_ID: Final = "sql.streaming.queryId"  # a local property of every job of a streaming query
BATCH_ID: Final = "streaming.sql.batchId"
_APPLICATION: Final = "spark-batch:"


@dataclass(frozen=True, slots=True)
class Labels:
    """What identifies a commit: its idempotency token and its metadata."""

    token: tuple[str, int] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, str]:
        """The options of a write with this token and metadata."""
        options: dict[str, str] = {}
        if self.token is not None:
            options |= {"token_app": self.token[0], "token_sequence": str(self.token[1])}
        if self.metadata:
            options["notes"] = msgspec.json.encode(dict(self.metadata)).decode()
        return options


@dataclass(slots=True)
class _Batch:
    """The writes into one table that a batch of one run of a query has had, by operation."""

    run: str
    number: int
    writes: Counter[str] = field(default_factory=Counter)


_BATCHES: Final[dict[tuple[str, str], _Batch]] = {}  # the newest by query and table
_LOCK: Final = threading.Lock()


@contextmanager
def labels_of(
    table: Table, session: Any, operation: str, token: Any, metadata: Any
) -> Iterator[Labels]:
    """The token and metadata of a write; without a token, that of the batch that is running."""
    if token is not None or metadata:  # a procedure gives neither, and is no operation of the log
        check_request(CommitRequest(operation, metadata=dict(metadata or {}), token=token))
    batch = None if token is not None else _running_batch(session, table.handle.pinned.table.uuid)
    if batch is None:
        yield Labels(token, metadata or {})
        return
    query, state = batch
    application = f"{_APPLICATION}{query}:{operation}:{state.writes[operation]}"
    yield Labels((application, state.number), metadata or {})
    with _LOCK:
        state.writes[operation] += 1


def _running_batch(session: Any, table_uuid: str) -> tuple[str, _Batch] | None:
    """The query and the batch in whose `foreachBatch` this thread is; None outside of one."""
    if not hasattr(session, "_jsparkSession"):
        return None
    context = session.sparkContext
    query, number = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if query is None or number is None:
        return None
    run = _run_of(session, query)
    with _LOCK:
        batch = _BATCHES.get((query, table_uuid))
        if batch is None or (batch.run, batch.number) != (run, int(number)):
            batch = _BATCHES[query, table_uuid] = _Batch(run, int(number))
    return query, batch


def _run_of(session: Any, query: str) -> str:
    """The id of the run of a query; of two runs of one query, only one is active."""
    key = session._jvm.java.util.UUID.fromString(query)
    execution = session._jsparkSession.sharedState().activeStreamingQueries().get(key)
    if execution is None:
        raise UnsupportedOperation(
            f"foreachBatch: Spark does not list the query {query}, whose batch this is, so a "
            "repeated batch could be written twice; give token=(application, batch id)"
        )
    return str(execution.runId())
