"""What runs on the tables of a catalog or a database by their names: SQL, CALL, events of many.

A subclass knows the names: which tables there are, and where.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, assert_never

import pyarrow as pa

from rowsieve import engines
from rowsieve.arguments import checked_methods
from rowsieve.arguments.annotations import Metadata, Moment, StorageOptions, Token
from rowsieve.bridges.session import Session
from rowsieve.bridges.sql.dialects import DialectName
from rowsieve.changes.column_methods import SchemaMode
from rowsieve.changes.event_order.too_late import OnTooLate
from rowsieve.defined_tables import create_from_statement, may_create
from rowsieve.envelopes.applying import Decimals, EventOptions, OnBad, Times
from rowsieve.envelopes.event_formats import EventFormat
from rowsieve.envelopes.routing import AppliedTables, TableOfSource, apply_to_tables
from rowsieve.errors import InvalidInput, UnsupportedOperation, repr_of
from rowsieve.names.qualified_names import identifier
from rowsieve.procedures.built_in import built_in
from rowsieve.procedures.coordinator import Coordinator
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.statements.alter import AlterTable
from rowsieve.statements.call_values import Argument
from rowsieve.statements.calls import Call, CallStatement, ExplainCall
from rowsieve.statements.catalog_names import (
    CreateNamespace,
    DropNamespace,
    NameStatement,
    RenameTable,
    ShowNamespaces,
    ShowTables,
)
from rowsieve.statements.parse_statement import Statement, parse
from rowsieve.statements.queries import Query, QueryDefinition
from rowsieve.statements.read_change import Change, CreateTable, DropTable, read_change
from rowsieve.statements.refused import Refused
from rowsieve.statements.statement_parameters import refuse_values
from rowsieve.table import Table


class OpensTables(Protocol):
    """Opens a table by its name, with a version or branch in it, or the branch or tag `ref`."""

    def __call__(self, name: str, *, ref: str | None = None) -> Table:
        """Open the table."""


@checked_methods
class CatalogStatements(ABC):
    """Base class of what has tables by name; `procedures` are those that `call` knows."""

    _storage_options: StorageOptions

    def __init__(self) -> None:
        self.procedures: ProcedureRegistry = built_in()

    @abstractmethod
    def open_table(
        self, name: str, *, version: int | None = None, as_of: Moment | None = None
    ) -> Table:
        """Open the table of a name."""

    @abstractmethod
    def opener(self) -> OpensTables:
        """Return what opens the tables of one statement, those of one log in one version of it."""

    @abstractmethod
    def create_table(
        self,
        name: str,
        schema_or_data: Any,
        key: Any = None,
        *,
        properties: Any = None,
        sequence: Any = None,
    ) -> Table:
        """Create a table under a name."""

    @abstractmethod
    def tables(self, namespace: str | None = None) -> list[str]:
        """The names of the tables, sorted; of one namespace, or of all."""

    @abstractmethod
    def namespaces(self) -> list[str]:
        """The namespaces, sorted."""

    @abstractmethod
    def create_namespace(
        self,
        name: str,
        *,
        if_exists: Literal["error", "ignore"] = "error",
        log: Literal["own", "shared"] | None = None,
    ) -> None:
        """Create an empty namespace."""

    @abstractmethod
    def drop_namespace(
        self,
        name: str,
        *,
        cascade: bool = False,
        purge: bool = False,
        if_absent: Literal["error", "ignore"] = "error",
    ) -> None:
        """Remove a namespace."""

    @abstractmethod
    def drop_table(
        self,
        name: str,
        *,
        purge: bool = False,
        if_absent: Literal["error", "ignore"] = "error",
    ) -> None:
        """Remove the name of a table."""

    @abstractmethod
    def register_table(self, name: str, uri: str) -> Table:
        """Give a table that exists elsewhere a name."""

    def move_out(self, name: str) -> Table:
        """Let a table of a database have a log of its own; UnsupportedOperation in a catalog."""
        raise UnsupportedOperation(
            f"move_out: {name} keeps a name in a catalog; rename it into a namespace of the other "
            "kind, or call move_out of the database"
        )

    @abstractmethod
    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name."""

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
            on_bad=on_bad,
            bad_table=bad,
            metadata=metadata,
            token=token,
        )
        return apply_to_tables(data, options, table, self.open_table, self._storage_options)

    def call(
        self,
        statement: str,
        *,
        engine: Any = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> pa.Table:
        """Run CALL, ALTER TABLE … EXECUTE, EXPLAIN of them, SHOW PROCEDURES, DESCRIBE PROCEDURE.

        `engine` runs the tasks of a distributed procedure: a `LocalEngine` (the default) or a
        `rowsieve.providers.spark.procedure_engine.SparkEngine`. The text of a filter is SQL of
        `dialect`, read with the settings of `session`; without it, Spark SQL on a SparkEngine has
        those of its session. `metadata` and `token` are arguments of the procedures that take them,
        as in a write: a call with a token that was committed commits nothing. InvalidInput names an
        argument that is missing, unknown or of another type; NotFound an unknown procedure;
        TableNotFound a table. CommitConflict if a concurrent commit replaced the parts that were
        rewritten.
        """
        call = parse(statement, dialect)
        if not isinstance(call, CallStatement):
            raise InvalidInput(
                f"call: {statement[:60]!r} is not a statement on procedures; it begins with CALL, "
                "ALTER TABLE … EXECUTE, SHOW PROCEDURES or DESCRIBE PROCEDURE"
            )
        return self._coordinator(engine, dialect, session).run(_labelled(call, metadata, token))

    def explain(
        self, statement: str, *, dialect: DialectName = "postgres", session: Session | None = None
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

    def sql(
        self, statement: str, *, engine: Any = None, params: Mapping[str, Any] | None = None
    ) -> pa.Table:
        """Run a query over the catalog's tables in DataFusion, a change, or a statement for `call`.

        `INSERT`, `UPDATE`, `DELETE`, `MERGE`, `TRUNCATE` and `CREATE TABLE … AS` are one commit of
        their table, and return the number of rows as the column `count`.
        `CREATE SCHEMA`, `DROP SCHEMA`, `SHOW SCHEMAS`, `CREATE TABLE`, `DROP TABLE [PURGE]`, `SHOW
        TABLES` and `ALTER TABLE … RENAME TO` concern its names. Other actions of `ALTER TABLE` are
        those of `Table.sql`, and return the column `version`. Tables are `namespace.name`;
        `namespace.name FOR VERSION AS OF 12` and `namespace."name@v12"` are version 12. All parts
        of a query read one version of a table. `params` are the values of `$name` or `:name` in a
        query; they are bound as typed values, never as text.
        """
        parsed = parse(statement, "datafusion", names=True)
        if isinstance(parsed, CallStatement):
            refuse_values(params, "a call")
            return self.call(statement, engine=engine, dialect="datafusion")
        if isinstance(parsed, NameStatement):
            refuse_values(params, "a statement on names")
            return self._on_names(parsed)
        if isinstance(parsed, Refused):
            raise parsed.error
        if isinstance(parsed, AlterTable):
            refuse_values(params, "ALTER TABLE")
            table = self.open_table(_dotted(parsed.target.parts))
            commit = table.sql(f"ALTER TABLE this {parsed.actions}", "datafusion")
            return pa.table({"version": pa.array([commit.version], pa.int64())})
        created = _created(parsed)
        if created is not None and created.query is None:
            refuse_values(params, "CREATE TABLE")
            return self._created_from(created)
        if isinstance(parsed, QueryDefinition):
            raise UnsupportedOperation(
                f"sql: {type(self).__name__}.sql does not run {parsed.verb}, because it keeps "
                "nothing; use rowsieve.providers.datafusion.SessionContext, in which "
                "to_datafusion() registers all tables"
            )
        return engines.datafusion_catalog().query(
            self,
            statement,
            params=params,
            changes=isinstance(parsed, Change) or (isinstance(parsed, Query) and parsed.explains),
            creates=created is not None,
        )

    def _created_from(self, statement: CreateTable) -> pa.Table:
        """Create the table of a statement; return its name."""
        name = _dotted(statement.target.parts)
        if may_create(self, name, statement):
            create_from_statement(self, name, statement)
        return _names("table", [name])

    def to_datafusion(self) -> Any:
        """Return an object for DataFusion's `register_catalog_provider`: all tables at once.

        A table keeps the version of its first use, until `refresh` of this object.
        """
        return engines.datafusion_catalog().catalog_provider(self)

    def _on_names(self, statement: NameStatement) -> pa.Table:
        """Run a statement; return the name that it changed, or all."""
        match statement:
            case CreateNamespace(name=name, ignores_existing=ignores, log=log):
                self.create_namespace(name, if_exists="ignore" if ignores else "error", log=log)
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


def _labelled(call: CallStatement, metadata: Metadata | None, token: Token | None) -> CallStatement:
    """The call with the metadata and the token of its commit as arguments."""
    labels: dict[str, Argument] = {} if metadata is None else {"metadata": metadata}
    if token is not None:
        labels |= {"token_app": token[0], "token_sequence": token[1]}
    if not labels:
        return call
    if not isinstance(call, Call):
        raise InvalidInput("call: metadata= and token= are of a call; leave them out")
    if twice := labels.keys() & call.named.keys():
        raise InvalidInput(f"call: give {min(twice)} in the statement or as an argument, not both")
    return replace(call, named={**call.named, **labels})


def _created(statement: Statement) -> CreateTable | None:
    """The clauses of CREATE TABLE; None for another statement."""
    if not isinstance(statement, Change) or statement.verb != "CREATE":
        return None
    clauses = read_change(statement.tokens)
    return clauses if isinstance(clauses, CreateTable) else None


def _if_absent(*, ignores: bool) -> Literal["error", "ignore"]:
    return "ignore" if ignores else "error"


def _dotted(parts: Iterable[str]) -> str:
    """The name of these parts; InvalidInput if one has a dot, or other characters, inside."""
    return ".".join(map(identifier, parts))


def _names(kind: str, names: Sequence[str]) -> pa.Table:
    return pa.table({kind: pa.array(names, pa.string())})
