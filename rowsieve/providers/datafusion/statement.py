"""The shared state of one DataFusion plan's fragments: pruning, audit and a single report.

DataFusion reads the splits of a plan on several threads, may read only some of them, and does not
notify us at the end. The fragments of a plan share a `StatementScan`. The first fragment that is
read runs the audit before any fragment returns a row. If the audit finds that pruning is wrong and
only logs it, the first fragment returns all rows without pruning, and the others return none, so
that no row is returned twice. The report is sent when every fragment has been read, or when
DataFusion drops the plan.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowsieve.executor.audit import Auditor
from rowsieve.executor.audit import Outcome as AuditOutcome
from rowsieve.executor.execute import Execution
from rowsieve.executor.read_settings import ReadSettings
from rowsieve.executor.text_views import has_views
from rowsieve.flags.resolution import flags_as_dict
from rowsieve.metrics import Reporter, ScanMetrics, ScanReport, send
from rowsieve.metrics.running_operations import Operation, opened
from rowsieve.planner.plan import ScanPlan
from rowsieve.providers.datafusion.open_reads import EngineUse
from rowsieve.providers.datafusion.shared_splits import SharedSplits
from rowsieve.scan import planned_metrics

if TYPE_CHECKING:
    from rowsieve.table import Table

ENGINE: Final = "datafusion"


class StatementScan(EngineUse):
    """The shared state of one plan's fragments; thread-safe.

    `pruned` and `whole` plan the same scan with and without pruning.
    """

    __slots__ = (
        "_audit_error",
        "_audited",
        "_context",
        "_ended",
        "_error",
        "_lock",
        "_metrics",
        "_operation",
        "_plan",
        "_planning_s",
        "_pruned",
        "_reporter",
        "_settings",
        "_shared",
        "_started_s",
        "_table",
        "_unpruned",
        "_whole",
    )

    def __init__(
        self,
        table: Table,
        plan: ScanPlan,
        settings: ReadSettings,
        reporter: Reporter | None,
        pruned: Callable[[], ScanPlan],
        whole: Callable[[], ScanPlan],
        planning_s: float,
    ) -> None:
        super().__init__()
        self._table = table
        self._plan = plan
        self._settings = settings
        self._reporter = reporter
        self._context = copy_context()  # a thread of DataFusion begins and ends the read
        self._operation: Operation | None = None
        self._pruned = pruned
        self._whole = whole
        self._planning_s = planning_s
        self._lock = threading.RLock()  # a GC run may end a fragment
        self._metrics = self._planned()
        self._started_s: float | None = None
        self._ended = 0
        self._error: str | None = None
        self._audited: AuditOutcome | None = None
        self._audit_error: Exception | None = None
        self._unpruned: ScanPlan | None = None
        self._shared: dict[tuple[str, ...], SharedSplits] = {}  # by columns, of reads not reported

    @property
    def fragments(self) -> int:
        """The number of fragments: one per split, and one if there is no split."""
        return max(1, len(self._plan.splits))

    def plan_of(self, fragment: int) -> ScanPlan | None:
        """Audit, then return what the fragment reads; None: nothing. May raise UnsoundPruning."""
        with self._lock:
            if self._started_s is None:
                self._started_s = time.perf_counter()
                self._operation = self._context.copy().run(
                    opened, "scan", "scan", self._plan.table_uri, self._reporter, self._planning_s
                )
        self._audit()
        if self._unpruned is not None:
            return self._unpruned if fragment == 0 else None
        return self._plan.only(fragment) if self._plan.splits else self._plan

    def shared_tasks(self, fragment: int, output: pa.Schema) -> Iterator[Any] | None:
        """What a fragment decodes if all splits prefetch together; None: it reads alone.

        Together where the store is across a network, and once for each fragment. Without columns,
        the tasks count.
        """
        store = self._table.handle.store
        if not store.overlaps or self._unpruned is not None or len(self._plan.splits) < 2:
            return None
        names = tuple(output.names)
        with self._lock:
            if names not in self._shared:
                plan, views = self._plan.project(output.names), has_views(output)
                self._shared[names] = SharedSplits(plan, store, views=views)
            return self._shared[names].of(fragment)

    def note_end(self, metrics: ScanMetrics, error: str | None) -> None:
        """Note the end of one fragment's read; the last one sends the report."""
        with self._lock:
            self._metrics.add(metrics)
            self._error = self._error if error is None else error
            self._ended += 1
            is_last = self._ended == self.fragments
        if is_last:
            self._report()

    def __del__(self) -> None:
        if getattr(self, "_started_s", None) is not None:
            self._error = self._error or "GeneratorExit"
            self._report()

    def _audit(self) -> None:
        """Audit once; the threads of other fragments wait for the outcome."""
        if not self._settings.audited_percent:
            return
        with self._lock:
            if self._audited is None and self._audit_error is None:
                try:
                    self._audited = self._auditor().run()
                    self._audited.count_in(self._metrics)
                    if self._audited.violations and self._plan.pruning:
                        self._unpruned = self._whole()
                except Exception as error:
                    self._audit_error = error
        if self._audit_error is not None:
            raise self._audit_error

    def _auditor(self) -> Auditor:
        plan = self._plan
        return Auditor(
            (lambda: plan) if plan.pruning else self._pruned,
            self._whole if plan.pruning else (lambda: plan),
            lambda audited: Execution(audited, self._table.handle.store, threads=1),
            self._settings.audited_percent,
            self._settings.on_violation,
        )

    def _report(self) -> None:
        """Report the reads since the last report."""
        with self._lock:
            if self._started_s is None:
                return
            elapsed_s = self._planning_s + time.perf_counter() - self._started_s
            metrics, error = self._metrics, self._error
            for shared in self._shared.values():
                metrics.add(shared.metrics)
            self._shared = {}
            self._metrics, self._error = self._planned(), None
            self._started_s, self._ended = None, 0
            operation, self._operation = self._operation, None
        uri, version = self._plan.table_uri, self._plan.version
        assert operation is not None
        operation.run(
            lambda: send(
                self._reporter, ScanReport(uri, version, metrics, error, ENGINE, elapsed_s)
            )
        )
        operation.end()

    def _planned(self) -> ScanMetrics:
        metrics = planned_metrics(self._plan)
        metrics.planning_s = self._planning_s
        metrics.flags = flags_as_dict(self._settings.flags)
        return metrics
