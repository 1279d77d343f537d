"""Provides all tables of a catalog to DataFusion, and runs queries that name versions of them.

    ctx.register_catalog_provider("lake", catalog.to_datafusion())
    SELECT … FROM lake.db.flights JOIN lake.db."flights@v12" …

Soundness (rules 23 and 40): a provider opens each table once and keeps its version until `refresh`,
so that two scans of one statement never see two versions, and opens tables that share a log in one
version of it. `query` uses a new provider for each statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from rowsieve.bridges.extras import imported
from rowsieve.errors import (
    InvalidInput,
    NotFound,
    RowsieveError,
    UnsupportedOperation,
    without_frames,
)
from rowsieve.metadata_tables.information_schema import INFORMATION_SCHEMA, VIEWS, view_of
from rowsieve.metadata_tables.table_kinds import METADATA_TABLES, split_metadata_name
from rowsieve.providers.datafusion.registered_table import (
    TableDataset,
    registrable,
    table_dataset,
)
from rowsieve.providers.datafusion.rows_in_memory import rows_table
from rowsieve.table import Table

if TYPE_CHECKING:
    from rowsieve.storage.snapshot import Snapshot

CATALOG: Final = "rowsieve"
_OF_STATEMENT = re.compile(r"rowsieve_(?:subquery_)?[0-9a-f]{32}")
"""The names of the steps of a change, and of the rows of subqueries that were read before."""


def provider_at(tables: CatalogTables, name: str, version_of: Callable[[Table], Snapshot]) -> Any:
    """Return a provider of the same tables under a name.

    `version_of` returns the version to read of a table.
    """
    any_namespace = tables.any_namespace
    return provider_class()(tables.catalog, version_of, name=name, any_namespace=any_namespace)


def provider_class() -> Any:
    """The class of our catalogs, which implements DataFusion's interface."""
    return _subclass(CatalogTables, "CatalogProvider")


@cache
def _subclass(implementation: type, interface: str) -> Any:
    """The class that implements an interface of `datafusion.catalog`, made once."""
    base: Any = getattr(imported("datafusion.catalog", "datafusion"), interface)
    return type(f"Rowsieve{interface}", (implementation, base), {})


class CatalogTables:
    """Implements DataFusion's `CatalogProvider`; thread-safe."""

    def __init__(
        self,
        catalog: Any,
        version_of: Callable[[Table], Snapshot] | None = None,
        *,
        name: str = CATALOG,
        any_namespace: bool = False,  # a table of one that does not exist fails as any other
    ) -> None:
        self._catalog = catalog
        self.any_namespace = any_namespace
        self._version_of = version_of
        self._lock = Lock()
        self._name = name
        self._tables: dict[str, Table] = {}  # those that DataFusion has asked for
        self._opened_tables: dict[str, Table] = {}
        self._open: Callable[[str], Table] | None = None  # those of one log in one version
        self._registered: dict[str, Any] = {}
        self._datasets: dict[str, tuple[Any, TableDataset | None]] = {}  # with their providers
        self.steps: dict[str, Any] = {}
        """What a statement has registered while it runs, by its name."""
        self._failures: list[RowsieveError] = []
        self._refusal: UnsupportedOperation | None = None

    def schema_names(self) -> set[str]:
        """The namespaces."""
        return set(self._catalog.namespaces())

    def schema(self, name: str) -> Any:
        """Return the provider of a namespace, or None if it does not exist."""
        if name == INFORMATION_SCHEMA and name not in self.schema_names():
            return _subclass(_InformationSchema, "SchemaProvider")(self._catalog, self._name)
        if not self.any_namespace and name not in self.schema_names():
            return None
        return _subclass(_Namespace, "SchemaProvider")(self, name)

    def refresh(self) -> None:
        """Forget all opened tables, so that the next statement opens their newest versions."""
        with self._lock:
            self._tables, self._registered, self._failures = {}, {}, []
            self._datasets = {}
            self._opened_tables, self._open = {}, None

    @contextmanager
    def serving(self, pins: dict[str, Any]) -> Iterator[None]:
        """Serve the providers in `pins` during the block; adds those of other names as needed."""
        with self._lock:
            before, self._registered = self._registered, pins
        try:
            yield
        finally:
            with self._lock:
                self._registered = before

    def opened(self) -> dict[str, Table]:
        """The tables that DataFusion has asked for since the last refresh, by their names."""
        with self._lock:
            return dict(self._tables)

    def dataset(self, name: str) -> TableDataset | None:
        """The Dataset that is served under a name; None if none, or another provider, is."""
        with self._lock:
            provider, dataset = self._datasets.get(name, (None, None))
            return dataset if self._registered.get(name) is provider else None

    def pin(self, name: str, provider: Any) -> None:
        """Serve this provider under a name until the next refresh, or until `unpin`."""
        with self._lock:
            self._registered[name] = provider

    def unpin(self, name: str) -> None:
        """Serve a new provider of the same version under a name, with all parts."""
        with self._lock:
            self._registered.pop(name, None)

    @contextmanager
    def serving_instead(self, other: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[None]:
        """Serve during the block what `other` returns for the providers that are served now."""
        with self._lock:
            pins = self._registered
            before = dict(pins)
        pins |= other(before)
        try:
            yield
        finally:
            pins |= before

    @property
    def catalog(self) -> Any:
        """The catalog."""
        return self._catalog

    def names(self, namespace: str) -> set[str]:
        """The tables of a namespace."""
        return {name.partition(".")[2] for name in self._catalog.tables(namespace)}

    def registered(self, name: str) -> Any:
        """Return the provider of `namespace.name[@v12]`, or None if the table does not exist."""
        if name in self.steps:
            return self.steps[name]
        with self._lock:
            pins = self._registered
            if name in pins:
                return pins[name]
        if (split := split_metadata_name(name)) is not None:
            return self._metadata_table(pins, name, *split)
        if (table := self._opened(name)) is None:
            return None
        dataset = None
        if self._version_of is None:
            provider = table.to_datafusion()
        else:
            dataset = table_dataset(Table(table.handle.fixed_at(self._version_of(table))))
            provider = registrable(dataset)
        with self._lock:
            # The first of concurrent callers pins the version. `pins` may have been replaced since:
            # then later statements do not see this version.
            self._tables[name] = table
            if name not in pins:
                pins[name], self._datasets[name] = provider, (provider, dataset)
            return pins[name]

    def _metadata_table(self, pins: dict[str, Any], name: str, base: str, kind: str) -> Any:
        """Return the provider of what is known of a table, at the version that is read of it."""
        if (table := self._opened(base)) is None:
            return None
        if self._version_of is not None:
            table = Table(table.handle.fixed_at(self._version_of(table)))
        provider = rows_table(METADATA_TABLES[kind](table))
        with self._lock:
            return pins.setdefault(name, provider)

    def _opened(self, name: str) -> Table | None:
        """Open a table, once until the next refresh; None if it does not exist."""
        with self._lock:
            opened, open_table = self._opened_tables, self._open
            if name in opened:
                return opened[name]
        try:  # no lock across I/O (invariant 21)
            table = (open_table or self._first_opener())(name)
        except RowsieveError as error:
            with self._lock:
                self._failures.append(without_frames(error))
            if isinstance(error, NotFound | InvalidInput):
                return None
            raise
        with self._lock:
            return opened.setdefault(name, table)

    def _first_opener(self) -> Callable[[str], Table]:
        """What opens tables until the next refresh; of concurrent callers, the first decides."""
        opener: Callable[[str], Table] = self._catalog.opener()
        with self._lock:
            self._open = self._open or opener
            return self._open

    def refused(self, what: str) -> UnsupportedOperation:
        """The refusal of a statement that DataFusion itself would run in the catalog."""
        error = UnsupportedOperation(
            f"sql: DataFusion cannot {what} in a Rowsieve catalog; write CREATE TABLE … AS or DROP "
            "TABLE in rowsieve.providers.datafusion.SessionContext, or call the catalog's methods"
        )
        with self._lock:
            self._refusal = error
        return error

    def take_refusal(self) -> UnsupportedOperation | None:
        """Return the last refusal, once."""
        with self._lock:
            refusal, self._refusal = self._refusal, None
        return refusal

    def own_error(self, error: Exception) -> RowsieveError:
        """The error of ours that caused an error of DataFusion; else InvalidInput with its text."""
        if isinstance(error, RowsieveError):
            return error
        if (failure := self.failure()) is not None:
            return failure
        return InvalidInput(f"sql: {str(error).removeprefix('DataFusion error: ')}")

    def failure(self) -> RowsieveError | None:
        """The first error of a read or of opening a table since the last refresh."""
        for table in self._tables.values():
            if isinstance(failure := table.engine_error, RowsieveError):
                return failure
        return without_frames(self._failures[0]) if self._failures else None


@contextmanager
def raising_refusals(catalogs: Collection[CatalogTables]) -> Iterator[None]:
    """Raise what these catalogs refuse in the block, instead of DataFusion's error about it."""
    for each in catalogs:
        each.take_refusal()
    try:
        yield
    except Exception as error:
        for each in catalogs:
            if (refusal := each.take_refusal()) is not None:
                raise refusal from error
        raise


class _Names(list[str]):
    """A list of names that is also callable.

    The interface declares a method, but DataFusion 55 reads the attribute as a sequence.
    """

    def __call__(self) -> set[str]:
        """The names as a set, which the interface declares."""
        return set(self)


class _Namespace:
    """Implements DataFusion's `SchemaProvider`."""

    def __init__(self, tables: CatalogTables, name: str) -> None:
        self._tables = tables
        self._name = name

    owner_name = None  # the interface declares a method, but DataFusion 55 reads the attribute

    @property
    def table_names(self) -> _Names:
        """The tables of the namespace."""
        return _Names(sorted(self._tables.names(self._name)))

    def table(self, name: str) -> Any:
        """Return the provider of a table, or None if the table does not exist."""
        return self._tables.registered(f"{self._name}.{name}")

    def register_table(self, name: str, table: Any) -> None:
        """Serve what a statement of ours registers while it runs; UnsupportedOperation otherwise.

        By default, DataFusion would accept and forget the table.
        """
        full = f"{self._name}.{name}"
        if _OF_STATEMENT.fullmatch(name) is None:
            raise self._tables.refused(f"create a table or view {full}")
        self._tables.steps[full] = table

    def deregister_table(self, name: str, cascade: bool = True) -> None:
        """Forget what a statement has registered."""
        del cascade
        self._tables.steps.pop(f"{self._name}.{name}", None)

    def table_exist(self, name: str) -> bool:
        """Return whether a table, or a version of one, has this name."""
        return self.table(name) is not None


class _InformationSchema:
    """Implements DataFusion's `SchemaProvider` for the information schema of a catalog."""

    def __init__(self, catalog: Any, name: str) -> None:
        self._catalog = catalog
        self._name = name

    owner_name = None

    @property
    def table_names(self) -> _Names:
        """The views."""
        return _Names(sorted(VIEWS))

    def table(self, name: str) -> Any:
        """Return the provider of a view, or None if there is no such view."""
        rows = view_of(self._catalog, self._name, name)
        return None if rows is None else rows_table(rows)

    def table_exist(self, name: str) -> bool:
        """Return whether there is such a view."""
        return name in VIEWS
