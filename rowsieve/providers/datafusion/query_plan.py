"""Plans one query over our tables: which parts it needs, and who reads them.

1. DataFusion plans the query over all parts. From this open frame users may build others.
2. The conditions in the optimised plan choose the parts of each table (`part_choice`). Datasets
   of ours that belong to the statement then read only these.
3. If DataFusion may scan files otherwise in a query that runs unchanged, it plans it once more, as
   a `FinalFrame`: without skipped parts, with parts that have hidden rows, or without us.

`TableRead` is the decision for one table. Workarounds of DataFusion's faults in joins and orders
are here: `pushdown_barriers`, and SELECT … INTO, which is planned once, over views behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import datafusion

from rowsieve.providers.datafusion.final_reads import FinalReads, final_frame, final_reads
from rowsieve.providers.datafusion.open_reads import OPEN_READS
from rowsieve.providers.datafusion.part_choice.pruned_parts import pruned_parts
from rowsieve.providers.datafusion.part_choice.subquery_values import SubqueryValues
from rowsieve.providers.datafusion.plan_checks import (
    has_outer_joins,
    joins_nothing,
    pushes_bytes,
    pushes_constants,
)
from rowsieve.providers.datafusion.pushdown_barriers import behind_barrier, views_behind_barriers
from rowsieve.providers.datafusion.reads_by_table import TableRead, open_read, with_explain_row
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.providers.datafusion.session_settings import temporary_settings, unless_changed
from rowsieve.statements import query_words as words
from rowsieve.statements.comments import blanked
from rowsieve.statements.queries import Query

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.own_table import OwnTable
    from rowsieve.providers.datafusion.session.kept_query import KeptQuery

_SELECTS: Final = Query()


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query, the tables of ours that it may read, and how DataFusion plans it.

    `named` has the tables by name. `inner` are views and prepared statements that it may read.
    `asks`: DataFusion asks catalogs of ours for more tables.
    """

    session: OwnSession
    query: str
    named: Mapping[str, OwnTable]
    inner: Sequence[KeptQuery]
    plan: Callable[..., datafusion.DataFrame]
    asked: Query = _SELECTS
    asks: bool = False

    def frame(self) -> datafusion.DataFrame:
        """Plan the query."""
        written = " ".join([self.query, *(each.query for each in self.inner)])
        text = blanked(written)
        chooses = words.may_choose(text) and self.session.skips
        reads = {
            name: open_read(self.session, own, chooses=chooses)
            for name, own in self.named.items()
            if own.catalog is None
        }
        if words.INTO.search(written):  # planning SELECT … INTO creates a table: it is planned once
            return self._planned_over(self._behind_barriers(reads))
        frame = self._planned_over(_providers(reads))
        if self.asks:
            tables = self.session.asked_tables()
            reads |= {n: open_read(self.session, o, chooses=chooses) for n, o in tables.items()}
        if chooses:
            named = {name: read.own for name, read in reads.items()}
            for name, parts in self.chosen_parts(frame, named).items():
                reads[name] = reads[name].of(parts)
        fenced = words.MAY_FOLD.search(written) is not None and pushes_constants(frame)
        fenced = fenced or (self.asked.explains and pushes_bytes(frame))
        if fenced or (words.MAY_JOIN.search(written) and has_outer_joins(frame)):
            reads = {name: read.limited(self.session) for name, read in reads.items()}
            return self._explained(
                self._planned_over(self._behind_barriers(reads, fenced=fenced)), reads
            )
        final = self._final_reads(reads, frame)
        is_first = words.takes_first(text) and words.UNION.search(text) is None
        final.takes_first = is_first and joins_nothing(frame)
        if reads and not (words.ORDER.search(text) or self.asked.explains):
            frame = behind_barrier(self.session, frame)
        again = {name: read for name, read in reads.items() if final.changes(name, read)}
        if again:
            reads |= {name: read.by(final.hybrids.get(name)) for name, read in again.items()}
            with self.session.registered_for_now(_providers(reads), self.inner):
                frame = self._final(frame, final)
        return self._explained(frame, reads)

    def chosen_parts(
        self, frame: datafusion.DataFrame, named: Mapping[str, OwnTable]
    ) -> dict[str, frozenset[str]]:
        """The ids of the parts to read, for each table that has parts to skip."""
        values = SubqueryValues(self.session) if self.asked.runs else None
        return pruned_parts(frame.logical_plan(), named, self.session.scanned_table, values)

    def _planned_over(self, registered: Mapping[str, Any]) -> datafusion.DataFrame:
        with self.session.registered_for_now(registered, self.inner):
            return self.plan()

    def _behind_barriers(
        self, reads: Mapping[str, TableRead], *, fenced: bool = False
    ) -> dict[str, Any]:
        """Views of the tables behind barriers, for a frame from which users may build others."""
        providers = {name: read.provider for name, read in reads.items()}
        providers |= self.session.other_providers
        return views_behind_barriers(self.session, providers, fenced=fenced)

    def _final_reads(
        self, reads: Mapping[str, TableRead], frame: datafusion.DataFrame
    ) -> FinalReads:
        """Choose readers for a query that runs unchanged; empty if that is not possible."""
        if not self.session.reads_files or OPEN_READS.has_ended:
            return FinalReads()
        return final_reads(self.session, reads, frame)

    def _final(self, frame: datafusion.DataFrame, reads: FinalReads) -> datafusion.DataFrame:
        """Plan the statement over the registered readers; return `frame` if a check fails."""
        session = self.session

        def run(statement: str) -> Any:
            return datafusion.SessionContext.sql(session, statement)

        def planned(settings: Mapping[str, Any]) -> datafusion.DataFrame:
            values = unless_changed(settings, session.settings)
            with temporary_settings(values, session.settings, run):
                return self.plan()

        return final_frame(frame, reads, planned)

    def _explained(
        self, frame: datafusion.DataFrame, reads: Mapping[str, TableRead]
    ) -> datafusion.DataFrame:
        """Return the frame; add a row about our tables if the statement is EXPLAIN."""
        if not (reads and self.asked.explains and self.session.skips):
            return frame
        return self.session.read_batches(with_explain_row(frame, reads).to_batches())


def _providers(reads: Mapping[str, TableRead]) -> dict[str, Any]:
    return {name: read.provider for name, read in reads.items() if not read.is_registered}
