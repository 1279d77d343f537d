"""Audits and reports a Spark read, with the settings of its options and its table.

The planning process audits before it hands out a split. If the audit finds that pruning is wrong
and only logs it, the splits are those of the plan without pruning. The planning process reports the
plan, and each task reports its read; together they equal the report of a scan in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Final

import pyarrow as pa

from rowsieve.config import current
from rowsieve.errors import InvalidInput
from rowsieve.executor.audit import Auditor
from rowsieve.executor.execute import Execution, resolve
from rowsieve.executor.read_settings import ReadSettings
from rowsieve.flags.resolution import flags_as_dict
from rowsieve.metrics import Reporter, ScanMetrics, ScanReport, send
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import ScanPlan
from rowsieve.scan import planned_metrics

ENGINE: Final = "spark"
REPORTERS: Final = "rowsieve.reporters"
"""The group of entry points whose names the option `reporter` may have."""


def audited_plan(
    pruned: Callable[[], ScanPlan],
    whole: Callable[[], ScanPlan],
    settings: ReadSettings,
    store: ObjectStore,
    reporter: Reporter | None,
) -> ScanPlan:
    """Choose the plan to read, with or without pruning, and resolve it.

    The audit may raise UnsoundPruning. The plan and the audit are reported, even if one fails.
    """
    started_s = time.perf_counter()
    planned = pruned() if settings.skips else whole()
    planning_s = time.perf_counter() - started_s
    auditor = Auditor(
        (lambda: planned) if settings.skips else pruned,
        whole if settings.skips else (lambda: planned),
        lambda audited: Execution(audited, store),
        settings.audited_percent,
        settings.on_violation,
    )
    try:
        outcome = auditor.run()
        if outcome.violations and settings.skips:
            planned = whole()
        audited_s = time.perf_counter()
        if planned.consolidation is None:  # sums are no rows of files
            planned = resolve(planned, store)
        planning_s += time.perf_counter() - audited_s
    except BaseException as error:
        metrics = planned_metrics(planned)
        metrics.flags = flags_as_dict(settings.flags)
        _report(reporter, planned, metrics, type(error).__name__, started_s)
        raise
    metrics = planned_metrics(planned)
    metrics.flags = flags_as_dict(settings.flags)
    metrics.planning_s = planning_s
    outcome.count_in(metrics)
    _report(reporter, planned, metrics, None, started_s)
    return planned


def reported_rows(
    plan: ScanPlan, store: ObjectStore, reporter: Reporter | None
) -> Iterator[pa.RecordBatch]:
    """The rows of one split, in a task; reports the read at its end."""
    metrics, error, started_s = ScanMetrics(), None, time.perf_counter()
    try:
        yield from Execution(plan, store, metrics, threads=1).read()
    except BaseException as raised:
        error = type(raised).__name__
        raise
    finally:
        _report(reporter, plan, metrics, error, started_s)


def reporter_of(name: str | None) -> Reporter | None:
    """The reporter that the option names, else the process's; InvalidInput if none is registered.

    An option may come from whoever writes a query. So it selects among the reporters of `Config`
    and the entry points of installed packages, and never names code to import.
    """
    if name is None or (registered := current().reporters.get(name)) is None:
        return current().reporter if name is None else _of_entry_point(name)
    return registered


@lru_cache(maxsize=16)
def _of_entry_point(name: str) -> Reporter:
    """Load the reporter of an installed package: an object, or a function that makes one."""
    points = {point.name: point for point in entry_points(group=REPORTERS)}
    if (point := points.get(name)) is None:
        known = ", ".join(sorted({*points, *current().reporters})) or "none"
        raise InvalidInput(
            f"option reporter: no reporter is registered as {name!r}; registered are: {known}. "
            f"Register it in each Spark process, by an entry point of the group {REPORTERS} or by "
            "Config(reporters=...)"
        )
    where = f"the entry point {name} = {point.value} of group {REPORTERS}"
    try:
        entry = point.load()
        entry_reporter = (
            entry() if isinstance(entry, type) or not hasattr(entry, "report") else entry
        )
    except Exception as error:  # the package's module or function may raise anything
        raise InvalidInput(
            f"option reporter: {where} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not callable(getattr(entry_reporter, "report", None)):
        raise InvalidInput(f"option reporter: {where} has no method report")
    reporter: Reporter = entry_reporter
    return reporter


def _report(
    reporter: Reporter | None,
    plan: ScanPlan,
    metrics: ScanMetrics,
    error: str | None,
    started_s: float,
) -> None:
    elapsed_s = time.perf_counter() - started_s
    send(reporter, ScanReport(plan.table_uri, plan.version, metrics, error, ENGINE, elapsed_s))
