"""Chooses the reader of each part for a statement that runs unchanged, as a `FinalFrame`.

A `FinalFrame` checks the files of DataFusion's scans itself. So our dataset reads only parts that
DataFusion does not scan; if DataFusion scans all parts of a table, our dataset reads nothing.
DataFusion also scans parts with hidden rows, if no condition of the statement can fail.

Soundness: `plan_checks` decides which statements may be read like this. This module decides only
which reader gets a part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rowsieve.providers.datafusion.final_frame import FinalFrame
from rowsieve.providers.datafusion.plan_checks import PlanFacts, facts_of, numbers_rows_in_scans
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.providers.datafusion.session_settings import (
    BATCH_SIZE,
    MAX_PASSES,
    ROUND_ROBIN,
    TARGET_PARTITIONS,
    TOP_FILTERS,
)
from rowsieve.providers.native_files.present_files import check_files

if TYPE_CHECKING:
    import datafusion

    from rowsieve.providers.datafusion.hybrid_table import HybridTable
    from rowsieve.providers.datafusion.own_table import OwnTable
    from rowsieve.providers.datafusion.reads_by_table import TableRead


# DataFusion calls Python once for each batch of a file with hidden rows. Its filters allocate whole
# batches in advance, so batches of many columns have fewer rows.
_LONG_BATCH_ROWS: Final = 65_536  # as many as a row group of ours has
_LONG_BATCH_VALUES: Final = 4_194_304  # 32 MiB of numbers
_SHORT_BATCH_ROWS: Final = 256
_ONE_PASS: Final = {MAX_PASSES: 1, ROUND_ROBIN: "false"}


@dataclass(slots=True)
class FinalReads:
    """The tables to register while DataFusion plans the statement of a `FinalFrame`.

    `has_conditions`: DataFusion may merge conditions of the statement with the filters on visible
    rows. `takes_first`: the statement is a top-k query without joins, and DataFusion may skip row
    groups that cannot have rows among the first k. `widest_scan`: the number of columns that one
    scan reads, at most.
    """

    hybrids: dict[str, HybridTable] = field(default_factory=dict)
    checks: list[Callable[[], None]] = field(default_factory=list)
    has_conditions: bool = True
    takes_first: bool = False
    widest_scan: int = 1

    @property
    def has_bitmaps(self) -> bool:
        """True if DataFusion scans a part with hidden rows."""
        return any(hybrid.bitmap_parts for hybrid in self.hybrids.values())

    def changes(self, name: str, read: TableRead) -> bool:
        """Return whether a table is read in another way than in the open frame."""
        return name in self.hybrids or (read.hybrid is not None and read.parts is not None)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings under which to plan the statement."""
        return self._batch_settings | ({TOP_FILTERS: "true"} if self.takes_first else {})

    @property
    def _batch_settings(self) -> dict[str, Any]:
        if not self.has_bitmaps:
            return {}
        fitting = max(_SHORT_BATCH_ROWS, _LONG_BATCH_VALUES // max(1, self.widest_scan))
        return {BATCH_SIZE: min(_LONG_BATCH_ROWS, fitting)}

    def add(self, name: str, own: OwnTable, hybrid: HybridTable | None) -> None:
        """Read the table through `hybrid`; None: only through our dataset."""
        if hybrid is None:
            return
        check = partial(check_files, own.table.handle.store, own.snapshot.version, hybrid.files)
        if hybrid.bitmap_parts:
            check()  # the open frame, which was planned before, has not checked all of these files
        self.hybrids[name] = hybrid
        if not hybrid.checks_files:
            self.checks.append(check)

    def check_files(self) -> None:
        """Raise if a file of DataFusion's scans is missing, for files that our dataset ignores."""
        for check in self.checks:
            check()


def final_reads(
    session: OwnSession, reads: Mapping[str, TableRead], frame: datafusion.DataFrame
) -> FinalReads:
    """Choose a reader for the parts of these tables; `frame` is the statement as planned so far.

    `reads` decide which parts are read.
    """
    partitions = int(session.setting(TARGET_PARTITIONS) or 1)
    asked = {n: r.own for n, r in reads.items() if r.own.may_have_hidden_rows(r.parts)}
    facts = facts_of(frame.optimized_logical_plan()) if asked else PlanFacts(is_total=False)
    has_bitmaps = _may_have_bitmaps(facts, asked)
    readers = FinalReads(has_conditions=facts.has_conditions, widest_scan=facts.widest_scan)
    for name, read in reads.items():
        own, parts = read.own, read.parts
        visible = own.visible_rows(parts) if has_bitmaps and name in asked else {}
        readers.add(name, own, own.hybrid(session, parts, partitions, visible, is_checked=True))
    return readers


def _may_have_bitmaps(facts: PlanFacts, asked: Mapping[str, OwnTable]) -> bool:
    """Return whether DataFusion should scan parts with hidden rows, if the plan allows it.

    False if our dataset reads less than DataFusion would: it skips pages by conditions on the first
    key column, at a LIMIT without ORDER BY it stops before it knows all hidden rows, and it counts
    rows without reading any.
    """
    if not facts.is_total or facts.has_limit or facts.only_counts:
        return False
    return not any(facts.columns.intersection(own.snapshot.table.key[:1]) for own in asked.values())


def final_frame(
    frame: datafusion.DataFrame,
    reads: FinalReads,
    plan: Callable[[Mapping[str, Any]], datafusion.DataFrame],
) -> datafusion.DataFrame:
    """Plan the statement again and return a `FinalFrame`; return `frame` if a check fails.

    `plan` plans the statement under some settings. DataFusion 55.0 may push a condition with a
    repeated subexpression between a scan and its row numbers, and then fails to number the rows. So
    a plan that fails the check is made once more with a single optimiser pass, which does not push
    the condition there.
    """
    for settings in (reads.settings, reads.settings | _ONE_PASS):
        try:
            final = plan(settings)
        except Exception:  # of DataFusion; the open frame has the same rows
            break
        unchanged = FinalFrame(frame, final, reads.check_files)
        if not (reads.has_bitmaps and reads.has_conditions):
            return unchanged
        facts = facts_of(final.optimized_logical_plan())
        if not facts.is_total:
            break
        has_row_numbers = settings == reads.settings or numbers_rows_in_scans(final)
        if facts.numbers_at_scans and has_row_numbers:
            return unchanged
    return frame
