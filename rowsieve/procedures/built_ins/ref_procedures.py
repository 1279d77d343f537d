"""Procedures for branches and tags, by the names that Iceberg gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from rowsieve.errors import InvalidInput
from rowsieve.procedures.built_ins.table_procedures import COMMIT_COLUMNS, commit_row
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import SCHEMA, TABLE_NAME, Procedure
from rowsieve.statements.call_values import Value
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.refs import MAIN
from rowsieve.table import Table


class _Creation(Procedure):
    """Calls a method that makes a branch or tag of a version."""

    columns = pa.schema([("name", pa.string()), ("version", pa.int64())])

    def __init__(self, kind: str, meaning: str, create: Callable[..., Table]) -> None:
        self.name, self.meaning = f"create_{kind}", meaning
        self._kind, self._create = kind, create
        self.parameters = (SCHEMA, TABLE_NAME, _named(kind), *_OF)

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Create it; the result is the version that it begins with."""
        name = str(arguments[self._kind])
        ref = self._create(table, name, **_version_of(arguments))
        return pa.Table.from_pylist([{"name": name, "version": ref.version}], schema=self.columns)


class _Removal(Procedure):
    """Calls a method that drops a branch or tag."""

    columns = COMMIT_COLUMNS

    def __init__(self, kind: str, meaning: str, drop: Callable[..., Commit]) -> None:
        self.name, self.meaning = f"drop_{kind}", meaning
        self._kind, self._drop = kind, drop
        self.parameters = (SCHEMA, TABLE_NAME, _named(kind))

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Drop it; the result is the commit."""
        return commit_row(self._drop(table, str(arguments[self._kind])))


class FastForward(Procedure):
    """Publishes a branch."""

    name = "fast_forward"
    meaning = "make the newest version of a branch that of the table"
    parameters = (
        SCHEMA,
        TABLE_NAME,
        Parameter("branch", ParameterType.TEXT, default=MAIN, meaning="what moves: main"),
        Parameter("to", ParameterType.TEXT, required=True, meaning="the branch to publish"),
    )
    columns = COMMIT_COLUMNS

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Publish it; the result is the commit."""
        if arguments["branch"] != MAIN:
            raise InvalidInput(
                f"fast_forward: only {MAIN!r}, the table itself, can move to a branch, and not "
                f"{arguments['branch']!r}; give the branch to publish as to"
            )
        return commit_row(table.fast_forward(str(arguments["to"])))


def _named(kind: str) -> Parameter:
    return Parameter(kind, ParameterType.TEXT, required=True, meaning=f"the name of the {kind}")


def _version_of(arguments: Mapping[str, Value]) -> dict[str, Any]:
    """The arguments that say which version is meant."""
    version, tag, as_of = (arguments.get(name) for name in ("version", "of", "as_of"))
    named: dict[str, Any] = {}
    if version is not None:
        named["version"] = int(str(version))
    if tag is not None:
        named["version"] = str(tag)
    if isinstance(as_of, datetime):
        named["as_of"] = as_of
    return named


_OF: Final = (
    Parameter("version", ParameterType.WHOLE, meaning="instead of the newest"),
    Parameter("of", ParameterType.TEXT, meaning="the branch or tag whose version it begins with"),
    Parameter("as_of", ParameterType.INSTANT, meaning="the version of this time"),
)

REF_PROCEDURES: Final[tuple[Procedure, ...]] = (
    _Creation("tag", "give a version a name, which keeps it", Table.tag),
    _Creation("branch", "begin a branch with a version", Table.branch),
    FastForward(),
    _Removal("tag", "remove a tag", Table.drop_tag),
    _Removal("branch", "remove a branch", Table.drop_branch),
)
