"""A catalog: the tables under one URI, by namespace and name, and the procedures called on them.

The table `db.events` of a catalog at `URI` is the Rowsieve table at `URI/db/events`; there is no
other record of it, so tables made by `create_table` belong to the catalog too.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa

from rowsieve.arguments import checked_methods
from rowsieve.arguments.annotations import ColumnNames, Moment, Properties, StorageOptions, TableUri
from rowsieve.bridges.session import Session
from rowsieve.errors import InvalidInput
from rowsieve.objects import open_store
from rowsieve.opening import create_table, open_table
from rowsieve.procedures.built_in import built_in
from rowsieve.procedures.call_plan import explained
from rowsieve.procedures.call_statement import Call, classify
from rowsieve.procedures.coordinator import Coordinator
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.table import Table

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_LOG: Final = "_rowsieve"


@checked_methods
class Catalog:
    """The tables under one URI; `procedures` are those that `call` knows."""

    def __init__(self, uri: TableUri, *, storage_options: StorageOptions | None = None) -> None:
        self._store = open_store(uri, storage_options)
        self._storage_options = dict(storage_options or {})
        self.procedures: ProcedureRegistry = built_in()

    def __repr__(self) -> str:
        return f"<rowsieve.Catalog at {self.uri}>"

    @property
    def uri(self) -> str:
        """The catalog's location, without credentials."""
        return self._store.uri

    def uri_of(self, name: str) -> str:
        """The URI of the table `namespace.name`, which need not exist."""
        namespace, table = _split(name)
        return f"{self.uri.rstrip('/')}/{quote(namespace)}/{quote(table)}"

    def create_table(
        self,
        name: str,
        schema_or_data: Any,
        key: ColumnNames | None = None,
        *,
        properties: Properties | None = None,
    ) -> Table:
        """Create the table `namespace.name`; TableExists if it exists."""
        return create_table(
            self.uri_of(name),
            schema_or_data,
            key,
            properties=properties,
            storage_options=self._storage_options,
        )

    def open_table(
        self, name: str, *, version: int | None = None, as_of: Moment | None = None
    ) -> Table:
        """Open the table `namespace.name`, or one version of it; TableNotFound if there is none."""
        return open_table(
            self.uri_of(name),
            version=version,
            as_of=as_of,
            storage_options=self._storage_options,
        )

    def namespaces(self) -> list[str]:
        """The names of the folders that may hold tables, sorted."""
        return [name for name in self._store.children() if _NAME.fullmatch(name)]

    def tables(self, namespace: str | None = None) -> list[str]:
        """The tables, as `namespace.name`, sorted; of one namespace, or of all."""
        found = self.namespaces() if namespace is None else [_checked(namespace)]
        return [
            f"{space}.{name}"
            for space in found
            for name in self._store.children(space)
            if _NAME.fullmatch(name) and _LOG in self._store.children(f"{space}/{name}")
        ]

    def call(
        self,
        statement: str,
        *,
        engine: Any = None,
        dialect: str = "postgres",
        session: Session | None = None,
    ) -> pa.Table:
        """Run a CALL, ALTER TABLE … EXECUTE, SHOW PROCEDURES or DESCRIBE PROCEDURE statement.

        `engine` runs the tasks of a distributed procedure: a `LocalEngine` (the default) or a
        `rowsieve.providers.spark.procedure_engine.SparkEngine`. The text of a filter is SQL of
        `dialect`, read with the settings of `session`. InvalidInput names an argument that is
        missing, unknown or of another type; NotFound an unknown procedure; TableNotFound a table.
        CommitConflict if a concurrent commit replaced the parts that were rewritten.
        """
        found = classify(statement)
        if found is None:
            raise InvalidInput(
                f"call: {statement[:60]!r} is not a statement on procedures; it begins with CALL, "
                "ALTER TABLE … EXECUTE, SHOW PROCEDURES or DESCRIBE PROCEDURE"
            )
        return self._coordinator(engine, dialect, session).run(found)

    def explain(
        self, statement: str, *, dialect: str = "postgres", session: Session | None = None
    ) -> str:
        """The plan of a call of a distributed procedure, a node a line; nothing runs."""
        found = classify(statement)
        if not isinstance(found, Call):
            raise InvalidInput("explain: give a CALL of a distributed procedure")
        return explained(self._coordinator(None, dialect, session).plan(found))

    def _coordinator(self, engine: Any, dialect: str, session: Session | None) -> Coordinator:
        if engine is not None and not (hasattr(engine, "run") and hasattr(engine, "cancel")):
            raise InvalidInput(f"engine must have run and cancel, and {engine!r} has not")
        return Coordinator(self.procedures, self._find, engine, dialect, session)

    def _find(self, namespace: str, name: str) -> Table:
        return self.open_table(f"{namespace}.{name}")


def _split(name: str) -> tuple[str, str]:
    namespace, dot, table = name.partition(".")
    if not dot:
        raise InvalidInput(
            f"the table name {name!r} has no namespace; give it as namespace.name, such as "
            "'db.events'"
        )
    return _checked(namespace), _checked(table)


def _checked(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"{name!r} is not a name of a namespace or table: use 1 to 128 of A-Z, a-z, 0-9, _ "
            "and -, and begin with a letter or digit"
        )
    return name
