"""Chooses what DataFusion reads for a statement that runs as it is, as a `ClosedFrame`.

Such a frame checks the files of DataFusion's scans. So our dataset reads only the other parts, and
none of a table that DataFusion reads whole. DataFusion also scans parts with hidden rows, if no
condition of the statement can fail. For a LIMIT without an order, it reads as many parts as needed.
A statement that only counts rows reads as many rows as are visible, whichever.

Soundness: `plan_checks` says which statements allow it. The answer here only decides who reads, and
which of the rows that a LIMIT may take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rowsieve.providers.datafusion.closed_frame import ClosedFrame
from rowsieve.providers.datafusion.plan_checks import PlanFacts, facts_of, numbers_rows_in_scans
from rowsieve.providers.datafusion.session_settings import (
    BATCH_SIZE,
    MAX_PASSES,
    ROUND_ROBIN,
    SPLIT_FILES,
    TOP_FILTERS,
)
from rowsieve.providers.native_files.present_files import check_files

if TYPE_CHECKING:
    import datafusion

    from rowsieve.providers.datafusion.hybrid_table import HybridTable
    from rowsieve.providers.datafusion.own_table import OwnTable


# Each batch of a file with hidden rows costs a call of Python.
_LONG_BATCH_ROWS: Final = 65_536  # those of our row groups
_SHORT_BATCH_ROWS: Final = 256  # a LIMIT of few rows reads no more
_ONE_PASS: Final = {MAX_PASSES: 1, ROUND_ROBIN: "false"}


@dataclass(slots=True)
class ClosedReads:
    """What to register for the tables of a statement while its closed plan is made.

    `most_taken`: a LIMIT takes at most so many rows; None if there is none. `only_counts`: the
    tables have the right numbers of rows, but not the right rows. `has_conditions`: the statement
    has conditions, which DataFusion may move into those that leave out hidden rows. `takes_first`:
    it takes the first rows of an order without joins, and DataFusion skips row groups by the rows
    that it has so far.
    """

    hybrids: dict[str, HybridTable] = field(default_factory=dict)
    checks: list[Callable[[], None]] = field(default_factory=list)
    most_taken: int | None = None
    only_counts: bool = False
    has_conditions: bool = True
    takes_first: bool = False

    @property
    def has_bitmaps(self) -> bool:
        """Whether DataFusion reads a part with hidden rows."""
        return any(hybrid.bitmap_parts for hybrid in self.hybrids.values())

    @property
    def is_worthwhile(self) -> bool:
        """Whether the plan reads otherwise than that of the open frame."""
        return self.has_bitmaps or bool(self.checks)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for the plan."""
        return self._batch_settings | ({TOP_FILTERS: "true"} if self.takes_first else {})

    @property
    def _batch_settings(self) -> dict[str, Any]:
        if not self.has_bitmaps or self.only_counts:
            return {}
        if self.most_taken is None:
            return {BATCH_SIZE: _LONG_BATCH_ROWS}
        rows = max(_SHORT_BATCH_ROWS, 2 * self.most_taken)
        return {BATCH_SIZE: rows, SPLIT_FILES: "false"} if rows < _LONG_BATCH_ROWS else {}

    def add(self, name: str, own: OwnTable, hybrid: HybridTable | None) -> None:
        """Read a table like this."""
        if hybrid is None:
            return
        check = partial(check_files, own.table.store, own.snapshot.version, hybrid.files)
        if hybrid.bitmap_parts:
            check()  # the open frame does not read all of them
        self.hybrids[name] = hybrid
        if not hybrid.checks_files:
            self.checks.append(check)

    def check_files(self) -> None:
        """Raise if a file is missing that DataFusion reads and our dataset does not check."""
        for check in self.checks:
            check()


def closed_reads(
    hybrid: Callable[..., HybridTable | None],
    named: Mapping[str, OwnTable],
    chosen: Mapping[str, frozenset[str]],
    frame: datafusion.DataFrame,
    *,
    has_limit: bool,
) -> ClosedReads:
    """What DataFusion reads of these tables for a statement; `frame` is the statement, open.

    `hybrid` makes what to register for the parts of a table and visible rows of them; with
    `only_counts`, for as many rows. `has_limit`: the statement may have a LIMIT.
    """
    asked = {name: own for name, own in named.items() if own.has_other_parts(chosen.get(name))}
    has_limit &= any(len(own.snapshot.parts) > 1 for own in named.values())
    facts = PlanFacts(is_total=False)
    if asked or has_limit:
        facts = facts_of(frame.optimized_logical_plan())
    if len(named) == 1 and facts.most_taken is not None:
        ((name, own),) = named.items()
        if (enough := own.enough_rows(facts.most_taken)) is not None:
            found = ClosedReads(most_taken=facts.most_taken, has_conditions=facts.has_conditions)
            found.add(name, own, hybrid(own, *enough))
            return found
    has_bitmaps = _may_have_bitmaps(facts, asked)
    found = ClosedReads(
        only_counts=has_bitmaps and facts.only_counts, has_conditions=facts.has_conditions
    )
    for name, own in named.items():
        wanted = chosen.get(name)
        visible = own.visible_rows(wanted) if has_bitmaps and name in asked else {}
        found.add(name, own, hybrid(own, wanted, visible, only_counts=found.only_counts))
    return found


def _may_have_bitmaps(facts: PlanFacts, asked: Mapping[str, OwnTable]) -> bool:
    """Whether DataFusion should read parts with hidden rows, if it may.

    Not if the dataset reads less: it skips pages by conditions on the first column of a key, and it
    stops at a LIMIT without an order before it has found all hidden rows.
    """
    if not facts.is_total or facts.has_limit:
        return False
    return not any(facts.columns.intersection(own.snapshot.table.key[:1]) for own in asked.values())


def closed_frame(
    frame: datafusion.DataFrame,
    reads: ClosedReads,
    plan: Callable[[Mapping[str, Any]], datafusion.DataFrame],
) -> datafusion.DataFrame:
    """The frame of a statement, which runs as `plan` plans it with some settings, if that is right.

    DataFusion 55.0 may move a condition between a scan and the numbers of its rows, if an
    expression occurs twice in it, and then fails to number them. The plan is made once more, with
    one pass of the rules, which does not move it there.
    """
    for settings in (reads.settings, reads.settings | _ONE_PASS):
        try:
            closed = plan(settings)
        except Exception:  # SELECT … INTO has made its table when it was planned
            break
        made = ClosedFrame(frame, closed, reads.check_files)
        if not reads.has_bitmaps or not (reads.has_conditions or reads.only_counts):
            return made
        facts = facts_of(closed.optimized_logical_plan())
        if not facts.is_total or (reads.only_counts and not facts.only_counts):
            break
        is_right = settings == reads.settings or numbers_rows_in_scans(closed)
        if facts.numbers_at_scans and is_right:
            return made
    return frame
