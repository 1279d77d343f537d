"""A table registered in DataFusion: a Dataset whose fragments are the splits of our plan.

DataFusion requests fragments with the pushed filter and reads each fragment as a partition. It does
not apply a pushed filter again, so we translate and evaluate the filter exactly, under DataFusion's
semantics; a filter that we cannot translate is an error, it is never dropped. COUNT(*) is answered
from the manifest if that is exact. Reads use the version that the table has pinned.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowsieve import clock
from rowsieve.bridges.extras import imported
from rowsieve.errors import RowsieveError, UnsupportedOperation
from rowsieve.executor.execute import Execution
from rowsieve.executor.read_ahead import CORES, NETWORK_THREADS
from rowsieve.executor.read_settings import ReadSwitches
from rowsieve.executor.text_views import has_views, with_views
from rowsieve.metrics import Reporter, ScanMetrics
from rowsieve.planner.cache import PLANS
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.splits import split_bytes_for_cores
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.nested_slices import without_slices
from rowsieve.providers.datafusion.open_reads import OPEN_READS
from rowsieve.providers.datafusion.pushdown_dataset import (
    PushdownDataset,
    PushdownFragment,
    pushed_filter,
)
from rowsieve.providers.datafusion.statement import StatementScan
from rowsieve.providers.native_files.planned_parts import only_parts
from rowsieve.providers.native_files.present_files import check_files
from rowsieve.types.encodings import relabelled, zoned_schema

if TYPE_CHECKING:
    from rowsieve.storage.manifests.manifest import FileRef
    from rowsieve.storage.snapshot import Snapshot
    from rowsieve.table import Table

COUNT_BATCH_ROWS = 1_000_000
SMALLEST_SPLIT_BYTES = 1024 * 1024
SPLIT_THREADS = max(2, NETWORK_THREADS // CORES)  # DataFusion reads about CORES splits at a time


@dataclass(frozen=True, slots=True)
class ReadOptions(ReadSwitches):
    """Pruning, audit and report settings of one registered table."""

    reporter: Reporter | None = None


def catalog_table(table: Table, **options: Any) -> Any:
    """Return the object to register in DataFusion; the options are the fields of `ReadOptions`.

    A differential table is read at its latest complete time of now.
    """
    return registrable(table_dataset(table, **options))


def table_dataset(table: Table, **options: Any) -> TableDataset:
    """The Dataset of a table, as `catalog_table` registers it."""
    read_options = ReadOptions(**options)  # rejects invalid values now
    OPEN_READS.wait_at_exit()
    return TableDataset(table.read_at(), read_options)


def registrable(dataset: TableDataset) -> Any:
    """The object to register in DataFusion for a Dataset."""
    return imported("datafusion.catalog", "datafusion").Table(dataset)


class TableDataset(PushdownDataset):
    """The Dataset that DataFusion reads; reads other than DataFusion's raise.

    `part_ids` limits it to these parts, and so does `choose`, for a dataset of one statement. With
    `views`, text and bytes have the view types that DataFusion's own scans return. A read first
    checks that `files` exist: those that DataFusion scans itself in the same query.
    """

    def __init__(
        self,
        table: Table,
        options: ReadOptions,
        part_ids: frozenset[str] | None = None,
        *,
        views: bool = False,
        files: Sequence[FileRef] = (),
    ) -> None:
        schema = zoned_schema(table.handle.pinned.schema)
        super().__init__(with_views(schema) if views else schema)
        self._table = table
        self._registered_schema = schema
        self._options = options
        self._part_ids = part_ids
        self._files = files

    def choose(self, part_ids: frozenset[str]) -> None:
        """Limit the plans that are made from now on to these parts.

        DataFusion asks for fragments when it makes the physical plan. So the conditions of the
        logical plan of a statement can choose the parts of the datasets in it.
        """
        self._part_ids = part_ids

    def get_fragments(self, filter: Any = None) -> list[SplitFragment]:  # noqa: A002
        """Return one fragment per split of the plan, at least one."""
        OPEN_READS.check_planning()
        snapshot, predicate = self._table.handle.pinned, pushed_filter(filter)
        self._check_columns(snapshot)
        now_us = clock.now_us()
        split_bytes = split_bytes_for_cores(snapshot.parts, least=SMALLEST_SPLIT_BYTES)

        def plan(*, pruning: bool) -> ScanPlan:
            scan_plan = PLANS.plan(  # called several times per query
                snapshot,
                self._table.uri,
                predicate=predicate,
                semantics=Semantics.DATAFUSION,
                now_us=now_us,
                split_bytes=split_bytes,
                pruning=pruning,
            )[0]
            return scan_plan if self._part_ids is None else only_parts(scan_plan, self._part_ids)

        options, started_s = self._options, time.perf_counter()
        settings = options.settings(snapshot.table)
        planned = plan(pruning=settings.skips)
        reporter = options.reporter or self._table.handle.reporter
        scan = StatementScan(
            self._table,
            planned,
            settings,
            reporter,
            partial(plan, pruning=True),
            partial(plan, pruning=False),
            time.perf_counter() - started_s,
        )
        return [
            SplitFragment(self._table, scan, i, () if i else self._files)
            for i in range(scan.fragments)
        ]

    def _check_columns(self, snapshot: Snapshot) -> None:
        """Raise UnsupportedOperation if the columns have changed since the registration."""
        if zoned_schema(snapshot.schema) == self._registered_schema:
            return
        error = UnsupportedOperation(
            f"the columns of {self._table.uri} have changed since the table was registered in "
            f"DataFusion: version {snapshot.version} has ({', '.join(snapshot.schema.names)}); "
            "deregister the table and register it again"
        )
        self._table.handle.engine_error = error
        raise error


class SplitFragment(PushdownFragment):
    """One partition: a split of the plan, or no rows if the plan has no split.

    The read raises unless `files` exist.
    """

    __slots__ = ("_files", "_number", "_scan", "_table")

    def __init__(
        self, table: Table, scan: StatementScan, number: int, files: Sequence[FileRef]
    ) -> None:
        super().__init__()
        self._table = table
        self._scan = scan
        self._number = number
        self._files = files

    def _read(self, output: pa.Schema) -> Iterator[pa.RecordBatch]:
        metrics, ended_by = ScanMetrics(), None
        try:
            if self._files:
                version = self._table.handle.pinned.version
                check_files(self._table.handle.store, version, self._files)
            plan = self._scan.plan_of(self._number)
            if plan is not None:
                projected_plan = plan.project(output.names)
                execution = Execution(
                    projected_plan,
                    self._table.handle.store,
                    metrics,
                    threads=SPLIT_THREADS if self._table.handle.store.overlaps else 1,
                    views=has_views(output),
                    small_start=True,
                )
                tasks = self._scan.shared_tasks(self._number, output)
                if not output.names:
                    count = execution.count() if tasks is None else execution.count_tasks(tasks)
                    yield from counted(count)
                    return
                for batch in execution.read() if tasks is None else execution.read_tasks(tasks):
                    yield relabelled(without_slices(batch), output)
        except BaseException as error:
            ended_by = type(error).__name__
            if isinstance(error, RowsieveError):
                self._table.handle.engine_error = error
            raise
        finally:
            self._scan.note_end(metrics, ended_by)


def counted(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches without columns that have `rows` rows in total."""
    while rows > 0:
        size = min(rows, COUNT_BATCH_ROWS)
        yield pa.RecordBatch.from_arrays([pa.nulls(size)], ["row"]).select([])
        rows -= size
