"""A catalog: the tables under one URI, by namespace and name, and the procedures called on them.

The table `db.events` of a catalog at `URI` is the Rowsieve table at `URI/db/events`, unless the
catalog's log places it elsewhere; so tables made by `create_table` belong to the catalog too.

Soundness: a name refers to one table at a time. Concurrent creates, drops and renames are ordered
by the log; of two that want one name, one succeeds.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal, assert_never

import pyarrow as pa

from rowsieve import engines
from rowsieve.arguments import checked, checked_methods
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Moment,
    Properties,
    PropertyNames,
    SequenceNames,
    StorageOptions,
    TableUri,
    Token,
    Version,
)
from rowsieve.bridges.session import Session
from rowsieve.catalog.catalog_log import CatalogState
from rowsieve.catalog.drops import Dropping
from rowsieve.catalog.names import TableName, identifier, table_name
from rowsieve.changes.column_methods import SchemaMode
from rowsieve.changes.event_order.too_late import OnTooLate
from rowsieve.envelopes.applying import (
    Decimals,
    EventOptions,
    OnBad,
    Times,
    check_dead_letters,
)
from rowsieve.envelopes.event_formats import EventFormat
from rowsieve.envelopes.routing import AppliedTables, TableOfSource, apply_to_tables
from rowsieve.errors import (
    InvalidInput,
    NamespaceExists,
    RowsieveError,
    TableExists,
    TableNotFound,
    UnsupportedOperation,
    repr_of,
)
from rowsieve.objects import in_thread, open_store
from rowsieve.opening import create_table, open_table
from rowsieve.procedures.built_in import built_in
from rowsieve.procedures.coordinator import Coordinator
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.properties import check_properties
from rowsieve.retention.dropping import close, delete_files, is_dropped
from rowsieve.statements.calls import Call, CallStatement, ExplainCall
from rowsieve.statements.catalog_names import (
    CreateNamespace,
    DropNamespace,
    NameStatement,
    RenameTable,
    ShowNamespaces,
    ShowTables,
)
from rowsieve.statements.parse_statement import parse
from rowsieve.statements.queries import Kept
from rowsieve.statements.read_change import Change, DropTable
from rowsieve.statements.refused import Refused
from rowsieve.table import Table


@checked_methods
class Catalog(Dropping):
    """The tables under one URI; `procedures` are those that `call` knows."""

    @checked
    def __init__(self, uri: TableUri, *, storage_options: StorageOptions | None = None) -> None:
        super().__init__(uri, storage_options)
        self.procedures: ProcedureRegistry = built_in()

    def __repr__(self) -> str:
        return f"<rowsieve.Catalog at {self.uri}>"

    # Tables

    def create_table(
        self,
        name: str,
        schema_or_data: Any,
        key: ColumnNames | None = None,
        *,
        if_exists: Literal["error", "ignore"] = "error",
        properties: Properties | None = None,
        metadata: Metadata | None = None,
        sequence: SequenceNames | None = None,
    ) -> Table:
        """Create the table `namespace.name`; TableExists if it exists.

        `if_exists="ignore"` opens that table and writes nothing. The catalog's properties are the
        table's, unless `properties` says otherwise.
        """
        wanted = table_name(name)
        state = self._log.read()
        if state.locations.get(name) is not None:
            if if_exists == "ignore":
                return self.open_table(name)
            self._check_free(state, wanted)
        location = wanted.folder
        if self._place(state, wanted) is None:  # its folder may hold a table that was dropped
            location = f"{location}.{uuid.uuid4().hex[:16]}"
        try:
            created = create_table(
                self._uri(location),
                schema_or_data,
                key,
                properties={**state.properties, **(properties or {})},
                storage_options=self._storage_options,
                metadata=metadata,
                sequence=sequence,
            )
            self._log.change("create_table", partial(self._with_created, wanted, location))
        except TableExists:
            if if_exists == "error":
                raise
            return self.open_table(name)
        return created

    def open_table(
        self,
        name: str,
        *,
        version: Version | None = None,
        as_of: Moment | None = None,
        ref: str | None = None,
    ) -> Table:
        """Open the table `namespace.name`, or one version of it; TableNotFound if there is none.

        `namespace.name@v12` is the table at version 12, `namespace.name@audit` its branch or tag of
        this name, which `ref` names too.
        """
        wanted = table_name(name, versioned=True)
        if wanted.ref is not None and ref is not None:
            raise InvalidInput(f"{name!r} names a branch or tag; give no ref=")
        ref = wanted.ref or ref
        if wanted.version is not None:
            if version is not None or as_of is not None:
                raise InvalidInput(f"{name!r} names a version; give no version= and no as_of=")
            version = wanted.version
        opening = partial(
            open_table, version=version, as_of=as_of, ref=ref, storage_options=self._storage_options
        )
        guess = self._place(self._log.known, wanted)
        guessed = None
        if guess is not None and self._store.overlaps:  # while the log is read
            guessed = in_thread(partial(opening, self._uri(guess)))
        state = self._log.read()
        location = self._location(state, wanted)
        try:
            if guessed is not None and location == guess:
                return guessed.result()
            return opening(self._uri(location))
        except TableNotFound as error:
            if near := self._suggestion(state, wanted):
                raise TableNotFound(f"{error}{near}") from error
            raise

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name, in one step; its files stay where they are.

        TableNotFound if there is no such table, TableExists if the new name is taken.
        """
        old, new = table_name(name), table_name(new_name)
        if old == new:
            raise InvalidInput(f"rename_table: {name!r} has this name already; give another one")

        def moved(now: CatalogState) -> CatalogState:
            location = self._table_location(now, old)
            self._check_open("rename_table", location)
            self._check_free(now, new)
            return now.placed({name: None, new_name: location})

        self._log.change("rename_table", moved)

    def register_table(self, name: str, uri: TableUri) -> Table:
        """Give a table that exists elsewhere the name `namespace.name`, and open it.

        TableNotFound if there is no table at `uri`, TableExists if the name is taken.
        """
        wanted = table_name(name)
        table = open_table(uri, storage_options=self._storage_options)

        def placed(now: CatalogState) -> CatalogState:
            self._check_free(now, wanted)
            if table.uri in map(self._uri, now.purged):
                raise TableNotFound(
                    f"register_table: the table at {table.uri} is being dropped with its files"
                )
            return now.placed({name: table.uri})

        self._log.change("register_table", placed)
        return table

    def apply_events(
        self,
        data: Any,
        *,
        format: EventFormat,  # noqa: A002 - the word of the field, as in --format
        table: TableOfSource,
        times: Times | None = None,
        decimals: Decimals | None = None,
        on_bad: OnBad = "error",
        bad: Any = None,
        schema_mode: SchemaMode = "strict",
        on_too_late: OnTooLate | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> AppliedTables:
        """Apply events of many tables, one commit for each table; all are read before the first.

        `table` gets the name of the source's table, such as `shop.public.orders`, and returns that
        of a table here, or None to skip its events. The other arguments are those of
        `Table.apply_events`.
        """
        options = EventOptions(
            format,
            times=times,
            decimals=decimals,
            on_too_late=on_too_late,
            schema_mode=schema_mode,
        )
        check_dead_letters(bad, on_bad)
        return apply_to_tables(data, options, table, self.open_table, on_bad, bad, metadata, token)

    # Namespaces

    def create_namespace(
        self, name: str, *, if_exists: Literal["error", "ignore"] = "error"
    ) -> None:
        """Create an empty namespace; NamespaceExists if it exists, as every folder does.

        Tables need none to be created: the first one of a namespace creates it.
        """
        space = identifier(name)
        if if_exists == "ignore" and self._has_namespace(self._log.read(), space):
            return

        def with_it(now: CatalogState) -> CatalogState:
            if self._has_namespace(now, space):
                raise NamespaceExists(
                    f"the namespace {space} exists already in {self.uri}; use "
                    "if_exists='ignore', or choose another name"
                )
            return replace(now, namespaces={**now.namespaces, space: True})

        try:
            self._log.change("create_namespace", with_it)
        except NamespaceExists:
            if if_exists == "error":
                raise

    # Properties

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties that tables get when they are created in this catalog."""
        return dict(self._log.read().properties)

    def set_properties(self, properties: Properties) -> None:
        """Set properties for tables that will be created; others keep their values."""
        given = check_properties(properties)
        self._log.change(
            "set_properties", lambda now: replace(now, properties={**now.properties, **given})
        )

    def unset_properties(self, names: PropertyNames) -> None:
        """Remove properties; InvalidInput names one that is not set."""

        def without(now: CatalogState) -> CatalogState:
            if missing := sorted(set(names) - now.properties.keys()):
                known = ", ".join(sorted(now.properties)) or "none"
                raise InvalidInput(
                    f"unset_properties: the catalog has no property {missing[0]!r}; it has: {known}"
                )
            kept = {name: now.properties[name] for name in now.properties if name not in names}
            return replace(now, properties=kept)

        self._log.change("unset_properties", without)

    # Statements

    def call(
        self,
        statement: str,
        *,
        engine: Any = None,
        dialect: str = "postgres",
        session: Session | None = None,
    ) -> pa.Table:
        """Run CALL, ALTER TABLE … EXECUTE, EXPLAIN of them, SHOW PROCEDURES, DESCRIBE PROCEDURE.

        `engine` runs the tasks of a distributed procedure: a `LocalEngine` (the default) or a
        `rowsieve.providers.spark.procedure_engine.SparkEngine`. The text of a filter is SQL of
        `dialect`, read with the settings of `session`; without it, Spark SQL on a SparkEngine has
        those of its session. InvalidInput names an argument that is
        missing, unknown or of another type; NotFound an unknown procedure; TableNotFound a table.
        CommitConflict if a concurrent commit replaced the parts that were rewritten.
        """
        call = parse(statement, dialect)
        if not isinstance(call, CallStatement):
            raise InvalidInput(
                f"call: {statement[:60]!r} is not a statement on procedures; it begins with CALL, "
                "ALTER TABLE … EXECUTE, SHOW PROCEDURES or DESCRIBE PROCEDURE"
            )
        return self._coordinator(engine, dialect, session).run(call)

    def explain(
        self, statement: str, *, dialect: str = "postgres", session: Session | None = None
    ) -> str:
        """The plan of a call, a node a line; nothing runs."""
        call = parse(statement, dialect)
        if isinstance(call, ExplainCall):
            call = call.call
        if not isinstance(call, Call):
            raise InvalidInput(
                f"explain: {statement[:60]!r} is not a call of a procedure; give CALL … or "
                "ALTER TABLE … EXECUTE …"
            )
        return self._coordinator(None, dialect, session).explain(call)

    def sql(self, statement: str, *, engine: Any = None) -> pa.Table:
        """Run a query over the catalog's tables in DataFusion, or a statement for `call`.

        `CREATE SCHEMA`, `DROP SCHEMA`, `SHOW SCHEMAS`, `DROP TABLE [PURGE]`, `SHOW TABLES` and
        `ALTER TABLE … RENAME TO` concern its names. Tables are `namespace.name`;
        `namespace.name FOR VERSION AS OF 12` and `namespace."name@v12"` are version 12. All parts
        of a query read one version of a table.
        """
        parsed = parse(statement, "datafusion", names=True)
        if isinstance(parsed, CallStatement):
            return self.call(statement, engine=engine, dialect="datafusion")
        if isinstance(parsed, NameStatement):
            return self._on_names(parsed)
        if isinstance(parsed, Refused):
            raise parsed.error
        verb = parsed.verb if isinstance(parsed, Change | Kept) else ""
        if verb:
            raise UnsupportedOperation(
                f"sql: Catalog.sql does not run {verb}; change the table by its methods, or "
                "by SQL in rowsieve.providers.datafusion.SessionContext, in which to_datafusion() "
                "registers the catalog"
            )
        return engines.datafusion_catalog().query(self, statement)

    def to_datafusion(self) -> Any:
        """Return an object for DataFusion's `register_catalog_provider`: all tables at once.

        A table keeps the version of its first use, until `refresh` of this object.
        """
        return engines.datafusion_catalog().catalog_provider(self)

    def _on_names(self, statement: NameStatement) -> pa.Table:
        """Run a statement; return the name that it changed, or all."""
        match statement:
            case CreateNamespace(name=name, ignores_existing=ignores):
                self.create_namespace(name, if_exists="ignore" if ignores else "error")
            case DropNamespace(name=name, ignores_absent=ignores, cascade=cascade):
                self.drop_namespace(name, cascade=cascade, if_absent=_if_absent(ignores=ignores))
            case ShowNamespaces():
                return _names("namespace", self.namespaces())
            case DropTable(target=target, if_exists=ignores, purge=purge):
                name = _dotted(target.parts)
                self.drop_table(name, purge=purge, if_absent=_if_absent(ignores=ignores))
                return _names("table", [name])
            case RenameTable(name=old, new_name=new):
                name = _dotted(new)
                self.rename_table(_dotted(old), name)
                return _names("table", [name])
            case ShowTables(namespace=namespace):
                return _names("table", self.tables(namespace))
            case _:
                assert_never(statement)
        return _names("namespace", [name])

    def _coordinator(self, engine: Any, dialect: str, session: Session | None) -> Coordinator:
        if engine is not None and not (hasattr(engine, "run") and hasattr(engine, "cancel")):
            raise InvalidInput(
                f"engine must have run and cancel, and {repr_of(engine)} has not; give a "
                "LocalEngine or a SparkEngine"
            )
        return Coordinator(self.procedures, self._find, engine, dialect, session, catalog=self)

    def _find(self, namespace: str, name: str) -> Table:
        return self.open_table(f"{namespace}.{name}")

    def _check_open(self, operation: str, location: str) -> None:
        """Raise TableNotFound if the table at a place was closed by a drop with its files."""
        store = open_store(self._uri(location), self._storage_options)
        if is_dropped(store):
            raise TableNotFound(
                f"{operation}: the table at {store.uri} was dropped with all its files, which are "
                "being deleted; create it again"
            )

    def _with_created(self, name: TableName, location: str, now: CatalogState) -> CatalogState:
        """The state with a table that was just created; TableExists if its name went to another.

        That table's files are deleted then, unless another name refers to them.
        """
        try:
            self._check_free(now, name, location)
        except TableExists:
            if self._other_name(now, name, location) is None:
                store = open_store(self._uri(location), self._storage_options)
                with suppress(RowsieveError):  # the files stay: somebody reads them, or no store
                    delete_files(store, close(store))
            raise
        if location == name.folder and (
            name.plain in now.locations  # a drop has already deleted it
            or not now.is_dropped(name.namespace)
        ):
            return now
        return now.placed({name.plain: location})


def _if_absent(*, ignores: bool) -> Literal["error", "ignore"]:
    return "ignore" if ignores else "error"


def _dotted(parts: Iterable[str]) -> str:
    """The name of these parts; InvalidInput if one has a dot, or other characters, inside."""
    return ".".join(map(identifier, parts))


def _names(kind: str, names: Sequence[str]) -> pa.Table:
    return pa.table({kind: pa.array(names, pa.string())})
