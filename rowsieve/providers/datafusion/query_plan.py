"""Plans one query over our tables: which parts it needs, and who reads them.

1. If conditions may leave only some parts, the query is planned over scans of no file; the
   conditions that reach each scan choose its parts (`part_choice`).
2. It is planned over the open reads of its tables. From this frame users may build others.
3. If that changes who reads a part, it is planned once more, as a `ClosedFrame` that runs it
   unchanged: DataFusion then also scans parts with hidden rows, or all files alone.

`TableRead` is the decision for one table. Workarounds of DataFusion's faults in joins and orders
are here: seals (`sealed_frames`), and SELECT … INTO, which is planned over sealed views once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import datafusion

from rowsieve.providers.datafusion.changes.statement_queries import read_only
from rowsieve.providers.datafusion.closed_reads import ClosedReads, closed_frame, closed_reads
from rowsieve.providers.datafusion.open_reads import OPEN_READS
from rowsieve.providers.datafusion.part_choice.pruned_parts import pruned_parts
from rowsieve.providers.datafusion.part_choice.subquery_values import SubqueryValues
from rowsieve.providers.datafusion.plan_checks import has_outer_joins, joins_nothing
from rowsieve.providers.datafusion.reads_by_table import TableRead, open_reads, with_explain_row
from rowsieve.providers.datafusion.sealed_frames import sealed, sealed_views
from rowsieve.providers.datafusion.session_settings import temporary_settings, unless_changed
from rowsieve.statements import query_words as words
from rowsieve.statements.comments import blanked
from rowsieve.statements.queries import Query

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.kept_queries import KeptQuery
    from rowsieve.providers.datafusion.own_table import OwnTable
    from rowsieve.providers.datafusion.sql_session import SessionContext

_SELECTS: Final = Query()


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query, the tables of ours that it may read, and how DataFusion plans it.

    `named` has the tables by name. `kept` are views and prepared statements that it may read.
    """

    session: SessionContext
    query: str
    named: Mapping[str, OwnTable]
    kept: Sequence[KeptQuery]
    plan: Callable[..., datafusion.DataFrame]
    asked: Query = _SELECTS

    def frame(self) -> datafusion.DataFrame:
        """Plan the query."""
        written = " ".join([self.query, *(each.query for each in self.kept)])
        text = blanked(written)
        session, reads = self.session, self._open_reads(text)
        registered = {name: each.provider for name, each in reads.items() if each.is_chosen}
        if words.INTO.search(written):  # planning SELECT … INTO creates a table: it is planned once
            registered = self._sealed(reads)
        frame = self._planned_over(registered)
        if words.MAY_JOIN.search(written) and has_outer_joins(frame):
            frame = self._planned_over(self._sealed(reads))
            return self._explained(frame, reads)
        closed = self._closed_reads(reads, frame, has_limit=words.LIMIT.search(text) is not None)
        is_first = words.takes_first(text) and words.UNION.search(written) is None
        closed.takes_first = is_first and joins_nothing(frame)
        if not (words.ORDER.search(text) or self.asked.explains):
            frame = sealed(session, frame)
        if closed.is_worthwhile:
            reads |= {name: reads[name].by(hybrid) for name, hybrid in closed.hybrids.items()}
            registered |= {name: reads[name].provider for name in closed.hybrids}
            with session.registered_for_now(registered, self.kept):
                frame = self._closed(frame, closed)
        return self._explained(frame, reads)

    def chosen_parts(self) -> dict[str, frozenset[str]]:
        """The ids of the parts to read, for each table that has parts to skip."""
        # Planning SELECT … INTO would create a table; prepared statements have no INTO.
        allowed = read_only() if self._is_unchanged else None

        def planned(views: Mapping[str, Any]) -> Any:
            with self.session.registered_for_now(views, self.kept):
                return self.plan(allowed).logical_plan()

        return pruned_parts(
            self.named, planned, SubqueryValues(self.session) if self.asked.runs else None
        )

    @property
    def _is_unchanged(self) -> bool:
        return all(each.is_view for each in self.kept)

    def _open_reads(self, text: str) -> dict[str, TableRead]:
        may_skip = words.may_choose(text) and self.session.skips
        chosen = self.chosen_parts() if may_skip else {}
        return open_reads(self.session, self.named, chosen)

    def _planned_over(self, registered: Mapping[str, Any]) -> datafusion.DataFrame:
        with self.session.registered_for_now(registered, self.kept):
            return self.plan()

    def _sealed(self, reads: Mapping[str, TableRead]) -> dict[str, Any]:
        providers = {name: each.provider for name, each in reads.items()}
        return sealed_views(self.session, providers)

    def _closed_reads(
        self, reads: Mapping[str, TableRead], frame: datafusion.DataFrame, *, has_limit: bool
    ) -> ClosedReads:
        """Choose readers for a query that runs unchanged; empty if that is not possible."""
        if not (self.session.reads_files and self._is_unchanged) or OPEN_READS.has_ended:
            return ClosedReads()
        return closed_reads(self.session, reads, frame, has_limit=has_limit)

    def _closed(self, frame: datafusion.DataFrame, reads: ClosedReads) -> datafusion.DataFrame:
        """Plan the statement over the registered readers; return `frame` if a check fails."""
        session = self.session

        def run(statement: str) -> Any:
            return datafusion.SessionContext.sql(session, statement)

        def planned(settings: Mapping[str, Any]) -> datafusion.DataFrame:
            values = unless_changed(settings, session.settings)
            with temporary_settings(values, session.settings, run):
                return self.plan(read_only())

        return closed_frame(frame, reads, planned)

    def _explained(
        self, frame: datafusion.DataFrame, reads: Mapping[str, TableRead]
    ) -> datafusion.DataFrame:
        """Return the frame; add a row about our tables if the statement is EXPLAIN."""
        if not (self.asked.explains and self.session.skips):
            return frame
        return self.session.read_batches(with_explain_row(frame, reads).to_batches())
