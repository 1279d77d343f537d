"""A DataFusion `SessionContext` that pins and prunes our tables for each statement.

For each statement, the context refreshes the tables that the text names, pins their versions
(`session_tables.py`), and skips the parts that the statement's conditions exclude. DataFusion reads
clean parts with its own Parquet reader, and the other parts through our dataset
(`hybrid_table.py`).

Soundness: all scans of a statement read one version of a table (invariant 23).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import datafusion
import pyarrow as pa

from rowsieve.arguments import checked
from rowsieve.errors import RowsieveError, UnsupportedOperation
from rowsieve.predicate.ir import Predicate
from rowsieve.providers.datafusion.catalog_tables import raising_refusals
from rowsieve.providers.datafusion.changes import transaction_statements
from rowsieve.providers.datafusion.changes.altered_table import alter
from rowsieve.providers.datafusion.changes.explained_changes import (
    text_to_explain,
    with_flags_of_write,
)
from rowsieve.providers.datafusion.changes.refused_statements import (
    ENGINE_ERRORS,
    planning_error,
    refuse,
)
from rowsieve.providers.datafusion.changes.run_change import changed_rows
from rowsieve.providers.datafusion.own_table import OwnTable
from rowsieve.providers.datafusion.part_choice.known_subqueries import known_query
from rowsieve.providers.datafusion.plan_checks import pushes_constants
from rowsieve.providers.datafusion.procedure_calls import DIALECT, run_procedure_statement
from rowsieve.providers.datafusion.pushdown_barriers import behind_barrier, views_behind_barriers
from rowsieve.providers.datafusion.query_plan import QueryPlan
from rowsieve.providers.datafusion.reads_by_table import open_read
from rowsieve.providers.datafusion.registered_table import registrable
from rowsieve.providers.datafusion.rows_in_memory import batches_of
from rowsieve.providers.datafusion.session.kept_query import KeptQuery
from rowsieve.providers.datafusion.session_settings import IDENTIFIERS, TIME_ZONE
from rowsieve.providers.datafusion.session_tables import TableSession
from rowsieve.statements import query_words as words
from rowsieve.statements.alter import AlterTable
from rowsieve.statements.calls import CallStatement
from rowsieve.statements.parse_statement import (
    ExplainedChange,
    Statement,
    parse,
)
from rowsieve.statements.queries import Deallocate, Execute, Other, Query, QueryDefinition, Setting
from rowsieve.statements.read_change import Change
from rowsieve.statements.subqueries import may_have_subqueries
from rowsieve.statements.tokens import has_several
from rowsieve.statements.versions import with_named_versions
from rowsieve.storage.snapshot import Snapshot

_SEVERAL: Final = (
    "sql: the text has several statements, and nothing was run; give each to a call of its own"
)
_OTHER_VERSION: Final = (
    "sql: only FOR VERSION AS OF, with a number or the name of a tag, of a Rowsieve table is "
    "available; for another form, register that version under a name of its own: "
    "rowsieve.open_table(uri, version=n), or table.to_datafusion(at=time) for a time of a "
    "differential table"
)


class SessionContext(TableSession):
    """DataFusion's `SessionContext`; each statement reads the newest versions of our tables.

    With `pruning=False`, only conditions that DataFusion pushes into a table skip parts. With
    `native=False`, our dataset reads all parts, and verifies the checksum of each page. Statements
    are planned one at a time.
    """

    @checked
    def __init__(
        self,
        config: datafusion.SessionConfig | None = None,
        runtime: datafusion.RuntimeEnvBuilder | None = None,
        *,
        pruning: bool = True,
        native: bool = True,
    ) -> None:
        super().__init__(config, runtime, pruning=pruning, native=native)

    @checked
    def sql(
        self,
        query: str,
        options: datafusion.SQLOptions | None = None,
        param_values: dict[str, Any] | None = None,
        **named_params: Any,
    ) -> datafusion.DataFrame:
        """Plan a statement over the newest versions of our tables.

        A statement that changes one of our tables runs immediately and once; its result is the
        number of rows. Views and prepared statements over our tables read the newest versions, too.
        """
        self._changes.refusals.last = None
        try:
            return self._run(query, options, param_values, named_params)
        except Exception as error:
            refusal, self._changes.refusals.last = self._changes.refusals.last, None
            if refusal is not None and refusal is not error:
                raise refusal from error
            engines = error.__cause__ or error
            if not isinstance(engines, RowsieveError) and words.VERSION.search(query):
                raise UnsupportedOperation(_OTHER_VERSION) from error
            if not isinstance(engines, RowsieveError) and has_several(query):
                raise UnsupportedOperation(_SEVERAL) from error
            if type(error) in ENGINE_ERRORS and not isinstance(engines, RowsieveError):
                raise planning_error(self, query, error) from error
            raise

    def _run(
        self,
        query: str,
        options: Any,
        param_values: dict[str, Any] | None,
        named_params: dict[str, Any],
    ) -> datafusion.DataFrame:
        """Run a statement that calls a procedure or changes a table; plan any other statement."""
        query = with_named_versions(query)
        statement = parse(query, DIALECT, folds=self.setting(IDENTIFIERS) != "false")
        if transaction_statements.is_control(statement):
            tables = list(self._own_tables.values())
            return transaction_statements.control(self, query, options, tables)
        refuse(self, statement)
        changed = None
        if isinstance(statement, Query) and statement.explains:
            query, changed = text_to_explain(self, query, param_values, named_params)
        self.transactions.check(statement)
        sql_arguments = (options, param_values, named_params)
        if (result := self._result(query, statement, sql_arguments)) is not None:
            return self.read_batches(batches_of(result))

        def plan(allowed: Any = options, text: str = query, values: Any = param_values) -> Any:
            return super(SessionContext, self).sql(text, allowed, values, **named_params)

        has_values = bool(param_values or named_params)
        texts = [str(v) for v in named_params.values() if not isinstance(v, datafusion.DataFrame)]
        with self._lock, raising_refusals(self._catalogs.values()):
            frame = self._plan(query, statement, texts, plan, has_values=has_values)
            if isinstance(statement, Change) and statement.removes_table:
                self._forget(statement.name)  # the table itself is not deleted
        return frame if changed is None else with_flags_of_write(self, frame, changed)

    def _result(
        self, query: str, statement: Statement, sql_arguments: tuple[Any, Any, dict[str, Any]]
    ) -> pa.Table | None:
        """Run a call or a change of a table of ours at once; None for any other statement.

        `sql_arguments` are the options and the values of parameters of the call to `sql`.
        """
        if isinstance(statement, CallStatement):
            default, zone = self.full_name(("",))[0], self.setting(TIME_ZONE)
            return run_procedure_statement(
                query, statement, self._catalogs, default, sql_arguments, zone
            )
        if isinstance(statement, AlterTable):
            version = alter(
                self, statement, partial(super().sql, options=sql_arguments[0]), sql_arguments[1:]
            )
            return None if version is None else _number("version", version, pa.int64())
        if not isinstance(statement, Change):
            return None
        changed = changed_rows(self, statement, *sql_arguments)
        if isinstance(changed, int):
            return _number("count", changed, pa.uint64())
        return changed

    def _plan(
        self,
        query: str,
        statement: Statement,
        texts: Sequence[str],
        plan: Callable[..., datafusion.DataFrame],
        *,
        has_values: bool,
    ) -> datafusion.DataFrame:
        """Plan a statement with `plan`; `texts` are SQL texts inserted for its parameters."""
        inner = self._queries.named(" ".join([query, *texts]), statement)
        whole = " ".join([query, *texts, *(each.query for each in inner)])
        named = self._refreshed(whole)
        with self._metadata_tables(whole, named, statement):
            return self._planned(query, statement, plan, inner, whole, named, has_values=has_values)

    def _planned(
        self,
        query: str,
        statement: Statement,
        plan: Callable[..., datafusion.DataFrame],
        inner: tuple[KeptQuery, ...],
        whole: str,
        named: dict[str, OwnTable],
        *,
        has_values: bool,
    ) -> datafusion.DataFrame:
        """Plan a statement that may read these tables, views and prepared statements."""
        if isinstance(statement, QueryDefinition) and (named or inner or self._catalogs_in(whole)):
            return self._queries.create(query, statement, plan, has_values=has_values)
        if isinstance(statement, ExplainedChange):
            statement = Query(explains=True)
        is_query = isinstance(statement, Query)
        asks = (is_query or isinstance(statement, Execute)) and self._asks_catalogs(whole)
        if (named or asks) and (is_query or not all(each.is_view for each in inner)):
            asked = statement if isinstance(statement, Query) else Query()
            may_know = self.skips and asked.runs and may_have_subqueries(query)
            if inner or has_values or not may_know:
                return QueryPlan(self, query, named, inner, plan, asked, asks).frame()
            if asks:
                plan()
                named |= self.asked_tables()
            with known_query(self, query, named, plan, asks=asks) as known:
                return QueryPlan(
                    self, known.query, known.named, (), known.plan, asked, asks
                ).frame()
        if not (isinstance(statement, Deallocate | Change | Other) and statement.removes):
            self._queries.replan(inner)
        frame = plan()
        if isinstance(statement, Setting):
            self._read_settings()
        if not is_query:
            self._queries.forget_replaced(statement)
        return frame

    @checked
    def table(self, name: str) -> datafusion.DataFrame:
        """Return a DataFrame of a table; a Rowsieve table is refreshed first."""
        with self._lock:
            inner = self._queries.named(name)
            whole = " ".join([name, *(each.query for each in inner)])
            named = self._refreshed(whole)
            reads = {name: open_read(self, own) for name, own in named.items()}
            providers = {n: read.provider for n, read in reads.items() if not read.is_registered}
            with (
                self._metadata_tables(whole, named),
                self.registered_for_now(providers, inner),
            ):
                frame = super().table(name)
            return behind_barrier(self, frame) if named else frame

    def planning(self) -> threading.RLock:
        """The lock that is held while a statement is planned."""
        return self._lock

    def with_view_queries(self, text: str) -> str:
        """The text, followed by the queries of the views that it may read."""
        return " ".join([text, *(each.query for each in self._queries.named(text))])

    def is_view(self, name: tuple[str, ...]) -> bool:
        """Return whether a full name is that of a view that reads our tables."""
        return self._queries.has_view(name)

    def refreshed(self, text: str) -> dict[str, OwnTable]:
        """Refresh our tables that the text may name; return copies, by full, quoted name."""
        with self._lock:
            named = self._refreshed(self.with_view_queries(text))
            return {name: own.at(own.snapshot) for name, own in named.items()}

    def check_plan(
        self,
        query: str,
        named: Mapping[str, OwnTable],
        options: Any,
        values: Any,
        texts: Mapping[str, Any],
    ) -> None:
        """Have DataFusion plan a statement, without running it; raises its errors."""
        stored = {name: own.provider(views=False) for name, own in named.items()}
        whole = self.with_view_queries(" ".join([query, *map(str, texts.values())]))
        inner = self._queries.named(whole)
        with (
            self._lock,
            self._metadata_tables(whole, named),
            self.registered_for_now(stored, inner),
        ):
            self._versions = {}
            super().sql(query, options, values, **texts)

    def planned_at(
        self,
        query: str,
        named: Mapping[str, OwnTable],
        near: Mapping[str, Predicate],
        versions: dict[str, Snapshot],
        options: Any,
        values: Any,
        texts: Mapping[str, Any],
    ) -> datafusion.DataFrame:
        """Plan a query over our tables at these versions.

        `near` has conditions by table name: parts without a matching row are skipped. `versions`
        has versions by table UUID; versions of other tables that the query reads are added to it.
        """

        def plan(allowed: Any = options) -> datafusion.DataFrame:
            return super(SessionContext, self).sql(query, allowed, values, **texts)

        whole = self.with_view_queries(" ".join([query, *map(str, texts.values())]))
        with self._lock, self._metadata_tables(whole, named):
            self._versions = versions
            inner = self._queries.named(whole)
            datasets = {name: own.dataset(views=False) for name, own in named.items()}
            at = {name: registrable(dataset) for name, dataset in datasets.items()}
            at |= {name: named[name].provider_near(each) for name, each in near.items()}
            written = self.with_view_queries(query)
            may_join = words.MAY_JOIN.search(written) is not None
            barriers = partial(views_behind_barriers, self) if may_join else None
            frame = self._planned_over(at, inner, plan, barriers)
            fence = words.MAY_FOLD.search(written) is not None and pushes_constants(frame)
            if self.skips:
                query_plan = QueryPlan(self, query, named, inner, plan)
                for name, parts in query_plan.chosen_parts(frame, named).items():
                    if name not in near:
                        datasets[name].choose(parts)
            if fence:
                barriers = partial(views_behind_barriers, self, fenced=True)
                return self._planned_over(at, inner, plan, barriers)
            return frame

    def _planned_over(
        self,
        providers: Mapping[str, Any],
        inner: tuple[KeptQuery, ...],
        plan: Callable[[], datafusion.DataFrame],
        barriers: Callable[[dict[str, Any]], dict[str, Any]] | None,
    ) -> datafusion.DataFrame:
        """Plan over these providers and those of catalogs, or over their views behind barriers."""
        registered = dict(providers)
        if barriers is not None:
            registered = barriers({**registered, **self.other_providers})
        with self.registered_for_now(registered, inner), ExitStack() as served:
            if barriers is not None and self._catalogs:
                plan()  # DataFusion asks the catalogs for the tables that it names
                for catalog in self._catalogs.values():
                    served.enter_context(catalog.serving_instead(barriers))
            return plan()


def _number(name: str, value: int, type_: pa.DataType) -> pa.Table:
    """A number as the only row of a result."""
    schema = pa.schema([pa.field(name, type_, nullable=False)])
    return pa.table([pa.array([value], type_)], schema=schema)
