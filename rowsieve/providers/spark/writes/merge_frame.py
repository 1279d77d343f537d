"""Implements `table.merge_spark`: joins a DataFrame to the table, and commits the result once.

Tasks write the rows of a merge by key in disjoint key ranges. A table without a key gets its rows
from this process (`merging_places.py`).

Soundness: the commit is read-modify-write (invariant I7). It conflicts with every commit that added
rows since the version that was read, and then the merge runs again from the newest version. If two
rows of the source change one row of the table, one task has both and refuses them; so does the
driver for a table with an event order, where `upsert` would take the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.errors import CommitConflict, InvalidInput, UnsupportedOperation
from rowsieve.providers.spark.frames import check_rows, write_frame, write_rows
from rowsieve.providers.spark.option_values import check_reachable
from rowsieve.providers.spark.writes.batch_tokens import Labels, labels_of
from rowsieve.providers.spark.writes.clauses import Aliases, parse_clauses
from rowsieve.providers.spark.writes.merging import Merge
from rowsieve.providers.spark.writes.merging_places import merge_places
from rowsieve.providers.spark.writes.table_changes import refuse_merge_by_column
from rowsieve.statements.merge_statement import MergeClause, When
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import Retries

if TYPE_CHECKING:
    from rowsieve.table import Table


def merge_frame(
    table: Table,
    frame: Any,
    on: Sequence[str],
    clauses: Mapping[str, Any],
    retry_timeout_s: float | None,
    token: Token | None,
    metadata: Metadata | None,
) -> Commit:
    """Merge a DataFrame by clauses, by the parameters of `merge_spark`; repeats after conflicts."""
    check_reachable(table.uri)
    check_rows(frame, "merge_spark")
    parsed = [clause for when in When for clause in parse_clauses(when, clauses.get(when.value))]
    if not parsed:
        raise InvalidInput(f"merge_spark: give a clause: {', '.join(when.value for when in When)}")
    names = {name: name for name in on}
    merge = SourceMerge(lambda _: frame, names, parsed, Aliases(), depends_on_version=False)
    with labels_of(table, frame.sparkSession, "merge", token, metadata) as labels:
        return merge_source(table, merge, retry_timeout_s, labels)


@dataclass(frozen=True, slots=True)
class SourceMerge:
    """A merge before it meets a version of its table.

    `frame_at` returns the rows of the source for a merge into a version; they may differ by version
    if `depends_on_version`. `on` has the columns of the source by those of the table.
    """

    frame_at: Callable[[int], Any]
    on: Mapping[str, str]
    clauses: Sequence[MergeClause]
    aliases: Aliases
    depends_on_version: bool


def merge_source(
    table: Table, merge: SourceMerge, retry_timeout_s: float | None, labels: Labels
) -> Commit:
    """Merge in one commit; repeats after conflicts, for `retry_timeout_s` seconds.

    A merge whose token was committed returns that commit.
    """
    refuse_merge_by_column(table.handle.newest.table)
    if (done := table.handle.committed_before(labels.token)) is not None:
        return done
    frame_at, on, clauses, aliases = merge.frame_at, merge.on, merge.clauses, merge.aliases
    if not table.key:
        with _naming_time():
            return merge_places(table, frame_at, on, clauses, aliases, retry_timeout_s, labels)
    retries = Retries("merge", retry_timeout_s)
    while True:
        base = table.refresh()
        planned = Merge(table, base, frame_at(base), on, clauses, aliases)
        if planned.is_upsert and not merge.depends_on_version and not planned.order:
            rows, metadata = planned.plain_rows(), labels.metadata
            return write_frame(table, rows, "upsert", token=labels.token, metadata=metadata)
        options = {"merge": f"{base}:{planned.deletes}"}
        try:
            with _naming_time():
                return write_rows(table, planned.rows(), "merge", options, labels)
        except CommitConflict as error:
            if retries.is_over:
                raise
            retries.wait(error)


@contextmanager
def _naming_time() -> Iterator[None]:
    """Raise UnsupportedOperation if Spark refuses to compute with the table's time columns."""
    try:
        yield
    except AnalysisException as error:
        if error.getCondition() != "UNSUPPORTED_TIME_TYPE":
            raise
        raise UnsupportedOperation(
            "merge_spark: the table has a column of type time, and this session does not let "
            "Spark compute with that type; set spark.sql.timeType.enabled to true"
        ) from error
