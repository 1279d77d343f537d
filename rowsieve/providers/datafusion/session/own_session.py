"""Our session, as the parts of a statement see it.

`TableSession` and `SessionContext` have the methods; the modules that plan queries and run changes
ask for them here, because the session imports these modules.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import datafusion

from rowsieve.predicate.ir import Predicate
from rowsieve.providers.datafusion.catalog_tables import CatalogTables
from rowsieve.providers.datafusion.changes.sql_transactions import SqlTransactions
from rowsieve.providers.datafusion.own_table import OwnTable
from rowsieve.providers.datafusion.session.changed_table import Changed
from rowsieve.providers.datafusion.session.kept_query import KeptQuery
from rowsieve.storage.snapshot import Snapshot
from rowsieve.table import Table


class OwnSession(datafusion.SessionContext):
    """DataFusion's `SessionContext` with what a statement over our tables asks of it."""

    settings: dict[str, str | None]
    """All settings of the session, by name."""
    reads_files: bool
    """Whether DataFusion's own reader may read our files."""
    transactions: SqlTransactions
    other_providers: dict[str, Any]
    """Versions, refs and metadata tables that the statement may name, by full, quoted name."""

    @property
    @abstractmethod
    def skips(self) -> bool:
        """True if conditions may skip parts."""

    @property
    @abstractmethod
    def has_default_semantics(self) -> bool:
        """True if conditions mean the same in this session as in a new one."""

    @abstractmethod
    def planning(self) -> threading.RLock:
        """The lock that is held while a statement is planned."""

    @abstractmethod
    def setting(self, name: str) -> str | None:
        """The value of a setting."""

    @abstractmethod
    def settings_of(self, prefixes: tuple[str, ...]) -> dict[str, Any]:
        """The settings whose names begin with one of these."""

    @abstractmethod
    def full_name(self, name: tuple[str, ...]) -> tuple[str, ...]:
        """Complete a name with the default catalog and schema."""

    @abstractmethod
    def own_catalogs(self) -> tuple[CatalogTables, ...]:
        """The Rowsieve catalogs of the session."""

    @abstractmethod
    def catalog_named(self, name: str) -> CatalogTables | None:
        """The Rowsieve catalog with this name."""

    @abstractmethod
    def changed_table(self, name: tuple[str, ...]) -> Changed | None:
        """Return the Rowsieve table with this name, or None."""

    @abstractmethod
    def with_view_queries(self, text: str) -> str:
        """The text, followed by the queries of the views that it may read."""

    @abstractmethod
    def is_view(self, name: tuple[str, ...]) -> bool:
        """Return whether a full name is that of a view that reads our tables."""

    @abstractmethod
    def is_pinned(self, name: tuple[str, ...]) -> bool:
        """Return whether a name is that of a table of ours, which the statement has pinned."""

    @abstractmethod
    def pinned(self, table: Table, snapshot: Snapshot, near: Predicate) -> Any:
        """The provider of one version of a table; parts without a row that matches are skipped."""

    @abstractmethod
    def asked_tables(self) -> dict[str, OwnTable]:
        """The tables of catalogs that DataFusion has asked for, by full, quoted name."""

    @abstractmethod
    def scanned_table(self, scan: tuple[str, ...]) -> str:
        """The full, quoted name of the table that a scan in a plan reads."""

    @abstractmethod
    def refreshed(self, text: str) -> dict[str, OwnTable]:
        """Refresh our tables that the text may name; return copies, by full, quoted name."""

    @abstractmethod
    def registered_for_now(
        self, providers: Mapping[str, Any], inner: Sequence[KeptQuery] = ()
    ) -> AbstractContextManager[None]:
        """Register these providers for the duration of the block; then restore our tables."""

    @abstractmethod
    def check_plan(
        self,
        query: str,
        named: Mapping[str, OwnTable],
        options: Any,
        values: Any,
        texts: Mapping[str, Any],
    ) -> None:
        """Have DataFusion plan a statement, without running it; raises its errors."""

    @abstractmethod
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
        """Plan a query over our tables at these versions."""
