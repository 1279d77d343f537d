"""The tables of a session, and the version of each that a statement reads.

Soundness: all scans of a statement read one version of a table (invariant 23). A registered dataset
is fixed at one version, so DataFusion objects that keep a reference to it never change versions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any

import datafusion

from rowsieve.arguments import checked
from rowsieve.changes.table_handle import Handle
from rowsieve.database.statement_versions import StatementVersions
from rowsieve.errors import InvalidInput, NotFound, UnsupportedOperation
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.providers.datafusion.catalog_tables import CatalogTables, provider_at
from rowsieve.providers.datafusion.changes import sql_transactions
from rowsieve.providers.datafusion.kept_queries import KeptQueries
from rowsieve.providers.datafusion.metadata_names import created_name, other_tables_in
from rowsieve.providers.datafusion.open_reads import OPEN_READS, while_alive
from rowsieve.providers.datafusion.own_table import OwnTable, follows_versions, name_parts
from rowsieve.providers.datafusion.part_choice.named_scans import table_name
from rowsieve.providers.datafusion.session.changed_table import Changed
from rowsieve.providers.datafusion.session.kept_query import KeptQuery
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.providers.datafusion.session_settings import (
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
from rowsieve.statements.parse_statement import Statement
from rowsieve.statements.tokens import quoted_path
from rowsieve.storage.snapshot import Snapshot
from rowsieve.table import Table


class TableSession(OwnSession):
    """DataFusion's `SessionContext` with our tables by name, each pinned to a version.

    `SessionContext` of `sql_session` is the class for users, and says what the arguments are.
    """

    def __init__(
        self,
        config: datafusion.SessionConfig | None,
        runtime: datafusion.RuntimeEnvBuilder | None,
        *,
        pruning: bool,
        native: bool,
    ) -> None:
        super().__init__(config, runtime)
        for setting, value in INITIAL_SETTINGS.items():
            super().sql(f"SET {setting} = {value}")
        self._own_tables: dict[str, OwnTable] = {}  # by full, quoted name
        self.other_providers: dict[str, Any] = {}
        self._at_times: dict[str, OwnTable] = {}  # differential ones, which stay at their time
        self._catalogs: dict[str, CatalogTables] = {}
        self._lock = threading.RLock()
        self._pruning = pruning
        self._native = native
        self._read_settings()
        self._has_own_functions = False
        self._versions: dict[str, Snapshot] = {}
        self._databases = StatementVersions()
        self._of_catalogs: dict[str, OwnTable] = {}  # those that the statement reads
        self._queries = KeptQueries(self)
        self.transactions = sql_transactions.SqlTransactions(
            while_alive(self._replace), while_alive(self._registered_tables)
        )
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
                place = self._register(name, table)
                self._own_tables.pop(place, None)
                self._at_times.pop(place, None)
                if isinstance(table, Table):
                    own = OwnTable(place, name, table, table.handle.pinned, is_fixed=True)
                    self._at_times[place] = own
                return
            OPEN_READS.wait_at_exit()
            fixed = bool(table.handle.read_only)
            own = OwnTable("", name, table, table.handle.pinned, fixed)
            own.name = self._register(name, own.provider())
            self._own_tables[own.name] = own
            self._at_times.pop(own.name, None)

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
            for tables in (self._own_tables, self._at_times):
                for gone in [place for place in tables if not self._exists(place)]:
                    del tables[gone]
            self._queries.forget_removed()

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

    def _registered_tables(self) -> list[Table]:
        """The tables of ours that were registered, not as they are inside a transaction."""
        return [own.outside or own.table for own in self._own_tables.values()]

    def own_catalogs(self) -> tuple[CatalogTables, ...]:
        """The Rowsieve catalogs of the session."""
        return tuple(self._catalogs.values())

    def asked_tables(self) -> dict[str, OwnTable]:
        """The tables of catalogs that DataFusion has asked for, by full, quoted name."""
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
        self._of_catalogs = own_tables
        return own_tables

    def _asks_catalogs(self, text: str) -> bool:
        """Return whether DataFusion asks catalogs of ours for tables when it plans a query."""
        return bool(self._catalogs_in(text)) and words.INTO.search(text) is None

    def scanned_table(self, scan: tuple[str, ...]) -> str:
        """The full, quoted name of the table that a scan in a plan reads."""
        (*_, name) = scan
        return name if name in self._own_tables else quoted_path(self.full_name(scan))

    def _catalogs_in(self, text: str) -> list[str]:
        """The names of Rowsieve catalogs that the text may use."""
        default = self.full_name(("",))[0]
        plain = words.searchable(text)
        return [name for name in self._catalogs if name.casefold() in plain or name == default]

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
        moving = [own for own in ours.values() if not own.is_fixed]
        commits = words.COMMITS.search(plain) is not None
        while (newest := self._newest_versions(moving, commits=commits)) is None:
            pass  # a writer has committed meanwhile
        for own in moving:
            head = newest[own.table.handle.line]
            if not own.is_at(head):
                own.move(head)
                self._replace(own.name, own.provider())
        self._versions = newest
        return ours

    def _newest_versions(
        self, tables: Sequence[OwnTable], *, commits: bool
    ) -> dict[str, Snapshot] | None:
        """Refresh tables; return their versions by line, those of a database as of one moment.

        None if they have to be refreshed again.
        """
        heads: dict[str, tuple[Handle, Snapshot]] = {}
        for own in tables:
            self.transactions.enter(own)
            own.refresh(commits=commits)
            handle, head = own.table.handle, own.table.handle.pinned
            other = heads.get(handle.line, (handle, head))[1]
            if (other.version, len(other.parts)) <= (head.version, len(head.parts)):
                heads[handle.line] = (handle, head)
        self._databases = StatementVersions()
        seen = {line: self._databases.seen(*each) for line, each in heads.items()}
        newest = {line: each for line, each in seen.items() if each is not None}
        return newest if len(newest) == len(seen) else None

    @contextmanager
    def registered_for_now(
        self, providers: Mapping[str, Any], inner: Sequence[KeptQuery] = ()
    ) -> Iterator[None]:
        """Register these providers for the duration of the block; then restore our tables.

        The views and prepared statements in `inner` are replanned over the providers, and the views
        again afterwards.
        """
        try:
            for name, provider in providers.items():
                self._replace(name, provider)
            if inner:
                self._queries.replan(inner)
            yield
        finally:
            for name in providers:
                if (own := self._of_catalogs.get(name)) is not None and own.catalog is not None:
                    own.catalog.unpin(own.name_there)
                elif (own := self._own_tables.get(name)) is not None:
                    self._replace(name, own.provider())
                elif name in self.other_providers:
                    self._replace(name, self.other_providers[name])
                else:  # the table was deregistered inside the block
                    super().deregister_table(name)
            if inner:
                self._queries.replan([each for each in inner if each.is_view])

    @contextmanager
    def _metadata_tables(
        self, text: str, named: Mapping[str, OwnTable], statement: Statement | None = None
    ) -> Iterator[None]:
        """Register the metadata tables that a text may name, for the duration of the block."""
        created = None if statement is None else created_name(statement)
        taken = None if created is None else quoted_path(self.full_name(created))
        added: list[str] = []
        at_times = (own for place, own in self._at_times.items() if self._exists(place))
        try:
            for name, provider in other_tables_in(text, chain(named.values(), at_times)):
                if name != taken and not self._exists(name):
                    self.other_providers[name] = provider()
                    super().register_table(name, self.other_providers[name])
                    added.append(name)
            yield
        finally:
            for name in added:
                del self.other_providers[name]
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

    def pinned(self, table: Table, snapshot: Snapshot, near: Predicate) -> Any:
        """The provider of one version of a table; parts without a row that matches are skipped."""
        own = OwnTable("", "", table, snapshot)
        return own.provider(views=False) if near == TRUE else own.provider_near(near)

    def setting(self, name: str) -> str | None:
        """The value of a setting."""
        return self.settings.get(name)

    def changed_table(self, name: tuple[str, ...]) -> Changed | None:
        """Return the Rowsieve table with this name, or None."""
        full = self.full_name(name)
        for own in self._own_tables.values():
            if own.parts == full:
                return Changed(own.table, own.last_name)
            if own.parts[:-1] == full[:-1] and full[-1].startswith(f"{own.last_name}@"):
                with suppress(NotFound, InvalidInput):
                    ref = (own.outside or own.table).at_ref(full[-1][len(own.last_name) + 1 :])
                    return Changed(self.transactions.table_of(ref), full[-1])
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
        pinned, line = table.handle.pinned, table.handle.line
        if table.handle.read_only:
            return pinned
        if (known := self._versions.get(line)) is None:
            known = self._versions[line] = self._databases.seen(table.handle, pinned) or pinned
        return known

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

    def catalog_named(self, name: str) -> CatalogTables | None:
        """The Rowsieve catalog with this name."""
        return self._catalogs.get(name)

    def is_pinned(self, name: tuple[str, ...]) -> bool:
        """Return whether a name is that of a table of ours, which the statement has pinned."""
        (*_, scan) = name
        full = self.scanned_table(name)
        return table_name(scan) in self._own_tables or full in self._own_tables | self._of_catalogs

    def _forget(self, name: tuple[str, ...]) -> None:
        """Forget our table with this name, which a statement has dropped or replaced."""
        full = self.full_name(name)
        for tables in (self._own_tables, self._at_times):
            for key in [key for key, own in tables.items() if own.parts == full]:
                del tables[key]
