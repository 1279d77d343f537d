"""A DataFusion `SessionContext` that pins and prunes our tables for each statement.

For each statement, the context refreshes the tables that the text names, pins their versions, and
skips the parts that the statement's conditions exclude. DataFusion reads clean parts with its own
Parquet reader, and the other parts through our dataset (`hybrid_table.py`).

Soundness: all scans of a statement read one version of a table (invariant 23). A registered dataset
is fixed at one version, so DataFusion objects that keep a reference to it never change versions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final

import datafusion

from rowsieve.arguments import checked
from rowsieve.errors import InvalidInput, NotFound, RowsieveError, UnsupportedOperation
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.providers.datafusion.catalog_tables import (
    CatalogTables,
    provider_at,
    raising_refusals,
)
from rowsieve.providers.datafusion.changes import sql_transactions
from rowsieve.providers.datafusion.changes.run_change import changed_rows
from rowsieve.providers.datafusion.changes.statement_queries import Changed
from rowsieve.providers.datafusion.kept_queries import KeptQueries, KeptQuery
from rowsieve.providers.datafusion.metadata_names import created_name, other_tables_in
from rowsieve.providers.datafusion.open_reads import OPEN_READS, while_alive
from rowsieve.providers.datafusion.own_table import OwnTable, follows_versions, name_parts
from rowsieve.providers.datafusion.part_choice.known_subqueries import known_query
from rowsieve.providers.datafusion.procedure_calls import DIALECT, run_procedure_statement
from rowsieve.providers.datafusion.query_plan import QueryPlan
from rowsieve.providers.datafusion.reads_by_table import open_reads
from rowsieve.providers.datafusion.refused_statements import (
    ENGINE_ERRORS,
    planning_error,
    refuse,
)
from rowsieve.providers.datafusion.sealed_frames import sealed, sealed_views
from rowsieve.providers.datafusion.session_settings import (
    IDENTIFIERS,
    INITIAL_SETTINGS,
    allow_native_scans,
    default_functions,
    default_settings,
    has_default_semantics,
    shown_settings,
)
from rowsieve.providers.datafusion.table_functions.changes_function import NAME as CHANGES
from rowsieve.providers.datafusion.table_functions.changes_function import ChangesFunction
from rowsieve.providers.datafusion.table_functions.last_changed_function import NAME as LAST_CHANGED
from rowsieve.providers.datafusion.table_functions.last_changed_function import LastChangedFunction
from rowsieve.statements import query_words as words
from rowsieve.statements.calls import CallStatement
from rowsieve.statements.parse_statement import (
    ExplainedChange,
    Statement,
    parse,
    with_inside_explained,
)
from rowsieve.statements.queries import Deallocate, Execute, Kept, Other, Query, Setting
from rowsieve.statements.read_change import Change
from rowsieve.statements.tokens import has_several, quoted_path
from rowsieve.statements.versions import with_named_versions
from rowsieve.storage.snapshot import Snapshot
from rowsieve.table import Table

_TIME_ZONE: Final = "datafusion.execution.time_zone"
_SEVERAL: Final = (
    "sql: the text has several statements, and nothing was run; give each to a call of its own"
)
_OTHER_VERSION: Final = (
    "sql: only FOR VERSION AS OF n of a table in a registered Rowsieve catalog is available; "
    "register another version under a name of its own: rowsieve.open_table(uri, version=n)"
)


class SessionContext(datafusion.SessionContext):
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
        super().__init__(config, runtime)
        for setting, value in INITIAL_SETTINGS.items():
            super().sql(f"SET {setting} = {value}")
        self._own_tables: dict[str, OwnTable] = {}  # by full, quoted name
        self._catalogs: dict[str, CatalogTables] = {}
        self._lock = threading.RLock()
        self._pruning = pruning
        self._native = native
        self._read_settings()
        self._has_own_functions = False
        self._versions: dict[str, Snapshot] = {}
        self._of_catalogs: dict[str, OwnTable] = {}  # those that the statement reads
        self._kept = KeptQueries(self)
        self.transactions = sql_transactions.SqlTransactions(while_alive(self._replace))
        # DataFusion keeps these functions in its session, so they may not keep the session alive.
        version_of = while_alive(self._version_of)
        self._changes = ChangesFunction(version_of)
        self.register_udtf(datafusion.udtf(self._changes, CHANGES))
        last_changed = LastChangedFunction(version_of, self._changes.refusals)
        self.register_udtf(datafusion.udtf(last_changed, LAST_CHANGED))

    @property
    def has_default_semantics(self) -> bool:
        """True if conditions mean the same in this session as in a new one."""
        return self._has_default_settings and not self._has_own_functions

    @checked
    def register_table(self, name: str, table: Any) -> None:
        """Register a table; statements refresh a Rowsieve table that has no fixed version."""
        with self._lock:
            if not follows_versions(table):
                self._own_tables.pop(self._register(name, table), None)
                return
            OPEN_READS.wait_at_exit()
            fixed = bool(table.handle.read_only)
            own = OwnTable("", name, table, table.handle.pinned, fixed)
            own.name = self._register(name, own.provider())
            self._own_tables[own.name] = own

    def _register(self, name: str, provider: Any) -> str:
        """Register a table in DataFusion; return its full, quoted name.

        DataFusion parses the name as SQL; if that fails, it takes the name literally.
        """
        places = [quoted_path(self.full_name(parts)) for parts in (name_parts(name), (name,))]
        before = [place for place in places if self._exists(place)]
        super().register_table(name, provider)
        return next((p for p in places if p not in before and self._exists(p)), places[0])

    def _exists(self, name: str) -> bool:
        try:
            return bool(super().table_exist(name))
        except Exception:  # the schema does not exist
            return False

    @checked
    def deregister_table(self, name: str) -> None:
        """Remove a table from the session."""
        with self._lock:
            super().deregister_table(name)
            own = self._own_tables
            self._own_tables = {place: own[place] for place in own if self._exists(place)}
            self._kept.forget_removed()

    @checked
    def register_catalog_provider(self, name: str, provider: Any) -> None:
        """Register a catalog; statements read the newest versions of our tables in it."""
        with self._lock:
            self._catalogs.pop(name, None)
            if isinstance(provider, CatalogTables):
                # A provider for only this session, because each statement pins its versions in it.
                provider = provider_at(provider, name, while_alive(self._version_in_statement))
                self._catalogs[name] = provider
            super().register_catalog_provider(name, provider)

    @checked
    def register_udf(self, udf: datafusion.ScalarUDF) -> None:
        """Register a function; if it replaces one of DataFusion's, conditions skip no parts."""
        with self._lock:
            super().register_udf(udf)
            if udf.name in default_functions():
                self._has_own_functions = True

    def enable_spark_functions(self) -> None:
        """Give functions Spark's meaning; from then on, conditions skip no parts."""
        with self._lock:
            self._has_own_functions = True
            super().enable_spark_functions()

    def enable_url_table(self) -> datafusion.SessionContext:
        """Raise UnsupportedOperation: DataFusion would return another session, without us."""
        raise UnsupportedOperation(
            "enable_url_table is not available in rowsieve's SessionContext: register the files, "
            "or use datafusion.SessionContext().enable_url_table()"
        )

    def own_catalogs(self) -> tuple[CatalogTables, ...]:
        """The Rowsieve catalogs of the session."""
        return tuple(self._catalogs.values())

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
        query = with_named_versions(query, numbers=bool(self._catalogs))
        statement = parse(query, DIALECT, folds=self.setting(IDENTIFIERS) != "false")
        if sql_transactions.is_control(statement):
            tables = list(self._own_tables.values())
            return sql_transactions.control(self, query, options, tables)
        refuse(self, statement)
        if isinstance(statement, Query) and statement.explains:
            query = with_inside_explained(query)
        self.transactions.check(statement)
        if isinstance(statement, CallStatement):
            given = (options, param_values, named_params)
            default, zone = self.full_name(("",))[0], self.setting(_TIME_ZONE)
            return self.read_batches(
                run_procedure_statement(query, statement, self._catalogs, default, given, zone)
            )
        if isinstance(statement, Change):
            count = changed_rows(self, statement, options, param_values, named_params)
            if count is not None:
                return super().sql(f"SELECT arrow_cast({count}, 'UInt64') AS count")

        def plan(allowed: Any = options, text: str = query, values: Any = param_values) -> Any:
            return super(SessionContext, self).sql(text, allowed, values, **named_params)

        texts = [str(v) for v in named_params.values() if not isinstance(v, datafusion.DataFrame)]
        has_values = bool(param_values or named_params)
        with self._lock, raising_refusals(self._catalogs.values()):
            frame = self._plan(query, statement, texts, plan, has_values=has_values)
            if isinstance(statement, Change) and statement.removes_table:
                self._forget(statement.name)  # the table itself is not deleted
        return frame

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
        kept = self._kept.named(" ".join([query, *texts]), statement)
        whole = " ".join([query, *texts, *(each.query for each in kept)])
        named = self._refreshed(whole)
        with self._metadata_tables(whole, named, statement):
            return self._planned(query, statement, plan, kept, whole, named, has_values=has_values)

    def _planned(
        self,
        query: str,
        statement: Statement,
        plan: Callable[..., datafusion.DataFrame],
        kept: tuple[KeptQuery, ...],
        whole: str,
        named: dict[str, OwnTable],
        *,
        has_values: bool,
    ) -> datafusion.DataFrame:
        """Plan a statement that may read these tables, views and prepared statements."""
        if isinstance(statement, Kept) and (named or kept or self._catalogs_in(whole)):
            return self._kept.create(query, statement, plan, has_values=has_values)
        if isinstance(statement, ExplainedChange):
            statement = Query(explains=True)
        is_query = isinstance(statement, Query)
        is_executed = isinstance(statement, Execute)
        if (
            (is_query or is_executed)
            and self._catalogs_in(whole)
            and words.INTO.search(whole) is None
        ):
            with self.registered_for_now({}, kept):
                frame = plan()  # DataFusion asks the catalogs for the tables that it names
            self._of_catalogs = self._asked_for()
            named |= self._of_catalogs
            if not named:
                return frame
        if named and (is_query or not all(each.is_view for each in kept)):
            asked = statement if isinstance(statement, Query) else Query()
            if kept or has_values or not asked.runs or not self.skips:
                return QueryPlan(self, query, named, kept, plan, asked).frame()
            with known_query(self, query, named, plan) as known:
                return QueryPlan(self, known.query, known.named, (), known.plan, asked).frame()
        if not (isinstance(statement, Deallocate | Change | Other) and statement.removes):
            self._kept.replan(kept)
        frame = plan()
        if isinstance(statement, Setting):
            self._read_settings()
        if not is_query:
            self._kept.forget_replaced(statement)
        return frame

    def _asked_for(self) -> dict[str, OwnTable]:
        """The tables of catalogs that the statement reads, by full, quoted name."""
        own_tables: dict[str, OwnTable] = {}
        for catalog_name, catalog in self._catalogs.items():
            for name, table in catalog.opened().items():
                own = OwnTable(
                    quoted_path((catalog_name, *name.split(".", 1))),
                    f"{catalog_name}.{name}",
                    table,
                    self._version_in_statement(table),
                    catalog=catalog,
                    name_there=name,
                )
                own_tables[own.name] = own
        return own_tables

    def _catalogs_in(self, text: str) -> list[str]:
        """The names of Rowsieve catalogs that the text may use."""
        default = self.full_name(("",))[0]
        plain = words.searchable(text)
        return [name for name in self._catalogs if name.casefold() in plain or name == default]

    @checked
    def table(self, name: str) -> datafusion.DataFrame:
        """Return a DataFrame of a table; a Rowsieve table is refreshed first."""
        with self._lock:
            kept = self._kept.named(name)
            whole = " ".join([name, *(each.query for each in kept)])
            named = self._refreshed(whole)
            reads = {n: r.provider for n, r in open_reads(self, named, {}).items() if r.is_chosen}
            with self._metadata_tables(whole, named), self.registered_for_now(reads, kept):
                frame = super().table(name)
            return sealed(self, frame) if named else frame

    def register_object_store(self, *arguments: Any, **options: Any) -> None:
        """Register an object store; afterwards our dataset reads all parts.

        DataFusion may then find other files at the paths of ours.
        """
        with self._lock:
            self._native = False
            self._read_settings()
            super().register_object_store(*arguments, **options)

    def _refreshed(self, text: str) -> dict[str, OwnTable]:
        """Refresh our tables that the text may name; return them by full, quoted name."""
        self._of_catalogs = {}
        for catalog in self._catalogs.values():
            catalog.refresh()
        plain = words.searchable(text)
        tables = list(self._own_tables.items())
        ours = {name: own for name, own in tables if words.may_name(plain, own.last_name)}
        for gone in [name for name in ours if not self._exists(name)]:  # their schema was dropped
            del ours[gone], self._own_tables[gone]
        newest: dict[str, Snapshot] = {}
        for own in (own for own in ours.values() if not own.is_fixed):
            self.transactions.enter(own)
            own.refresh(commits=words.COMMITS.search(plain) is not None)
            head, line = own.table.handle.pinned, own.table.handle.line
            other = newest.get(line)
            if other is None or (other.version, len(other.parts)) < (head.version, len(head.parts)):
                newest[line] = head
        for own in (own for own in ours.values() if not own.is_fixed):
            head = newest[own.table.handle.line]
            if not own.is_at(head):
                own.move(head)
                self._replace(own.name, own.provider())
        self._versions = newest
        return ours

    @contextmanager
    def registered_for_now(
        self, providers: Mapping[str, Any], kept: Sequence[KeptQuery] = ()
    ) -> Iterator[None]:
        """Register these providers for the duration of the block; then restore our tables.

        The views and prepared statements in `kept` are replanned over the providers, and the views
        again afterwards.
        """
        try:
            for name, provider in providers.items():
                self._replace(name, provider)
            if kept:
                self._kept.replan(kept)
            yield
        finally:
            for name in providers:
                if (own := self._own_tables.get(name) or self._of_catalogs.get(name)) is not None:
                    self._replace(name, own.provider())
                else:  # the table was deregistered inside the block
                    super().deregister_table(name)
            if kept:
                self._kept.replan([each for each in kept if each.is_view])

    @contextmanager
    def _metadata_tables(
        self, text: str, named: Mapping[str, OwnTable], statement: Statement | None = None
    ) -> Iterator[None]:
        """Register the metadata tables that a text may name, for the duration of the block."""
        created = None if statement is None else created_name(statement)
        taken = None if created is None else quoted_path(self.full_name(created))
        added: list[str] = []
        try:
            for name, provider in other_tables_in(text, named.values()):
                if name != taken and not self._exists(name):
                    super().register_table(name, provider())
                    added.append(name)
            yield
        finally:
            for name in added:
                super().deregister_table(name)

    def _replace(self, name: str, provider: Any) -> None:
        own = self._of_catalogs.get(name)
        if own is not None and own.catalog is not None:
            own.catalog.pin(own.name_there, provider)
            return
        super().deregister_table(name)
        super().register_table(name, provider)

    @property
    def skips(self) -> bool:
        """True if conditions may skip parts."""
        return self._pruning and self.has_default_semantics

    def _read_settings(self) -> None:
        """Read the settings, and decide whether they allow DataFusion's own Parquet reader."""
        self.settings = shown_settings(super())
        self._has_default_settings = has_default_semantics(self.settings)
        is_allowed = allow_native_scans(self.settings, default_settings())
        self.reads_files = self._native and is_allowed

    # The interface that `statement_queries` and `run_change` use.

    def pinned(self, table: Table, snapshot: Snapshot, near: Predicate) -> Any:
        """The provider of one version of a table; parts without a row that matches are skipped."""
        own = OwnTable("", "", table, snapshot)
        return own.provider(views=False) if near == TRUE else own.provider_near(near)

    def planning(self) -> threading.RLock:
        """The lock that is held while a statement is planned."""
        return self._lock

    def setting(self, name: str) -> str | None:
        """The value of a setting."""
        return self.settings.get(name)

    def changed_table(self, name: tuple[str, ...]) -> Changed | None:
        """Return the Rowsieve table with this name, or None."""
        full = self.full_name(name)
        for own in self._own_tables.values():
            if own.parts == full:
                return Changed(own.table, own.last_name)
        if (catalog := self._catalogs.get(full[0])) is None:
            return None
        with suppress(NotFound, InvalidInput):
            table = catalog.catalog.open_table(".".join(full[1:]))
            return Changed(
                self.transactions.table_of(table),
                full[-1],
                catalog,
                ".".join(full[1:]),
            )
        return None

    def _version_of(self, name: str) -> tuple[Table, Snapshot] | None:
        """Find the table with this name, and the version of it that the statement reads."""
        if (changed := self.changed_table(name_parts(name))) is None:
            return None
        return changed.table, self._version_in_statement(changed.table)

    def _version_in_statement(self, table: Table) -> Snapshot:
        """The version of a table that all scans of the current statement read."""
        table = self.transactions.table_of(table)
        own = table.handle.pinned
        return own if table.handle.read_only else self._versions.setdefault(table.handle.line, own)

    def full_name(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """Complete a name with the default catalog and schema."""
        defaults = (
            self.setting("datafusion.catalog.default_catalog") or "datafusion",
            self.setting("datafusion.catalog.default_schema") or "public",
        )
        return (*defaults[: 3 - len(name)], *name) if len(name) < 3 else name

    def settings_of(self, prefixes: tuple[str, ...]) -> dict[str, Any]:
        """The settings whose names begin with one of these."""
        return {k: value for k, value in self.settings.items() if k.startswith(prefixes)}

    def with_view_queries(self, text: str) -> str:
        """The text, followed by the queries of the views that it may read."""
        return " ".join([text, *(each.query for each in self._kept.named(text))])

    def is_view(self, name: tuple[str, ...]) -> bool:
        """Return whether a full name is that of a view that reads our tables."""
        return self._kept.has_view(name)

    def catalog_named(self, name: str) -> CatalogTables | None:
        """The Rowsieve catalog with this name."""
        return self._catalogs.get(name)

    def is_pinned(self, name: tuple[str, ...]) -> bool:
        """Return whether a name is that of a table of ours, which the statement has pinned."""
        full = quoted_path(self.full_name(name))
        return full in self._own_tables or full in self._of_catalogs

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
        kept = self._kept.named(whole)
        with self._lock, self._metadata_tables(whole, named), self.registered_for_now(stored, kept):
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
            kept = self._kept.named(whole)
            at = {name: own.provider(views=False) for name, own in named.items()}
            with self.registered_for_now(at, kept):
                query_plan = QueryPlan(self, query, named, kept, plan)
                chosen = query_plan.chosen_parts() if self.skips else {}
            at = {n: own.provider(chosen.get(n), views=False) for n, own in named.items()}
            at |= {name: named[name].provider_near(each) for name, each in near.items()}
            may_join = words.MAY_JOIN.search(self.with_view_queries(query)) is not None
            if may_join:
                at = sealed_views(self, at)
            with self.registered_for_now(at, kept), ExitStack() as served:
                if may_join and self._catalogs:
                    plan()  # DataFusion asks the catalogs for the tables that it names
                    for catalog in self._catalogs.values():
                        served.enter_context(catalog.serving_instead(partial(sealed_views, self)))
                return plan()

    def _forget(self, name: tuple[str, ...]) -> None:
        """Forget our table with this name, which a statement has dropped or replaced."""
        full = self.full_name(name)
        for key, own in list(self._own_tables.items()):
            if own.parts == full:
                del self._own_tables[key]
