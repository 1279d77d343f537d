"""Base classes of procedures: name, parameters, result columns, and the work.

A distributed procedure runs in three steps. `begin` runs on the coordinator, pins a version of the
table and cuts the work into tasks. `work` runs one task on any worker, any number of times, and
returns fragments: bytes that only this procedure reads. `finish` runs on the coordinator with the
fragments of every task, each task counted once, and commits. A procedure whose handle has stages
commits each of them by itself: a stage that fails loses only its own work.

Soundness: `work` must not commit and must write files under new names only, because a task may run
twice at the same time. `begin` and `finish` never run on a worker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pyarrow as pa

from rowsieve.arguments.annotations import Progress, StorageOptions
from rowsieve.errors import InvalidInput, UnsupportedOperation, repr_of
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.statements.call_values import Value
from rowsieve.table import Table

SCHEMA: Final = Parameter(
    "schema", ParameterType.TEXT, required=True, meaning="the namespace of the table"
)
TABLE_NAME: Final = Parameter(
    "table_name", ParameterType.TEXT, required=True, meaning="the name of the table"
)
TOKEN_APP: Final = Parameter(
    "token_app", ParameterType.TEXT, meaning="who repeats the call; with token_sequence"
)
TOKEN_SEQUENCE: Final = Parameter(
    "token_sequence", ParameterType.WHOLE, meaning="commit nothing if it was committed"
)
FILTER: Final = Parameter(
    "filter", ParameterType.TEXT, meaning="a condition on the rows to process; all rows without it"
)


@dataclass(frozen=True, slots=True)
class TargetScan:
    """The rows that a call processes: a table and a condition, at one time."""

    table: Table
    predicate: Predicate
    semantics: Semantics
    now_us: int


@dataclass(slots=True)
class CallContext:
    """The state of one call on the coordinator; it ends with the call.

    `scanned` are the ids of the parts whose rows the tasks read, `applied_deletes` of those whose
    deletes the rewritten rows no longer need.
    """

    target: TargetScan
    scanned: set[str] = field(default_factory=set)
    applied_deletes: set[str] = field(default_factory=set)

    @property
    def table(self) -> Table:
        """The table that the call processes."""
        return self.target.table

    def close(self) -> None:
        """Forget what was recorded."""
        self.scanned.clear()
        self.applied_deletes.clear()


@dataclass(frozen=True, slots=True)
class Handle:
    """The result of `begin`: the pinned version, the tasks, and details for `finish`.

    A task is bytes that only this procedure reads; `details` stay on the coordinator. `stages` are
    numbers of consecutive tasks that are run and committed before the next ones begin; without
    stages all tasks are committed by `finish`. At most `max_concurrent` tasks run at a time.
    """

    version: int
    tasks: tuple[bytes, ...]
    details: Any = None
    stages: tuple[int, ...] = ()
    max_concurrent: int | None = None


class Procedure(ABC):
    """A procedure on a table; it runs where it is called unless it is distributed."""

    name: str
    meaning: str = ""
    parameters: tuple[Parameter, ...] = ()
    columns: pa.Schema
    """The columns of the result."""

    @abstractmethod
    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Run on a table; return rows with `columns`."""

    def run(self, table: Table, arguments: Mapping[str, Value], progress: Progress) -> pa.Table:
        """Run like `call`, and report progress; the caller reports the end."""
        del progress
        return self.call(table, arguments)


class TablesByName(Protocol):
    """The methods of a catalog that its procedures may call."""

    def register_table(self, name: str, uri: str) -> Table:
        """Give a table that exists elsewhere a name."""

    def move_out(self, name: str) -> Table:
        """Let a table of a database have a log of its own, and no name."""


class CatalogProcedure(ABC):
    """A procedure that runs where it is called, on the catalog rather than on one of its tables."""

    name: str
    meaning: str = ""
    parameters: tuple[Parameter, ...] = ()
    columns: pa.Schema
    """The columns of the result."""

    @abstractmethod
    def call(self, catalog: TablesByName, arguments: Mapping[str, Value]) -> pa.Table:
        """Run on the catalog; return rows with `columns`."""


class DistributedProcedure(Procedure):
    """A procedure whose tasks run on the workers of an engine."""

    parameters: tuple[Parameter, ...] = (SCHEMA, TABLE_NAME, FILTER)

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Raise UnsupportedOperation: a coordinator plans the tasks, and an engine runs them."""
        del table, arguments
        raise UnsupportedOperation(
            f"{self.name} runs in tasks on an engine; call it with Catalog.call"
        )

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """Pin a version and cut the work into tasks, on the coordinator."""
        del context, arguments
        raise UnsupportedOperation(
            f"{self.name} does not support distributed execution; its class must define begin"
        )

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Run one task on a worker; yield (rows processed, fragment) pairs."""
        del task, storage_options
        raise UnsupportedOperation(
            f"{self.name} does not support distributed execution; its class must define work"
        )

    def commit_stage(
        self,
        context: CallContext,
        handle: Handle,
        number: int,
        fragments: Sequence[Sequence[bytes]],
    ) -> None:
        """Commit the fragments of one stage, given by task, on the coordinator."""
        del context, handle, number, fragments
        raise UnsupportedOperation(
            f"{self.name} does not commit in stages; its class must define commit_stage"
        )

    def stage_failed(self, handle: Handle, number: int) -> None:
        """Note that a stage was not committed; the next one follows."""
        del handle, number

    def finish(
        self, context: CallContext, handle: Handle, fragments: Sequence[Sequence[bytes]]
    ) -> pa.Table:
        """Commit the fragments, given by task, on the coordinator; return rows with `columns`.

        After stages, `fragments` is empty.
        """
        del context, handle, fragments
        raise UnsupportedOperation(
            f"{self.name} does not support distributed execution; its class must define finish"
        )


AnyProcedure = Procedure | CatalogProcedure


def check_procedure(procedure: AnyProcedure) -> None:
    """Raise InvalidInput unless it has columns, and parameters with the table that it processes."""
    if not isinstance(getattr(procedure, "columns", None), pa.Schema):
        raise InvalidInput(
            f"the procedure {procedure.name} has no columns; set `columns` to the pyarrow.Schema "
            "of its result"
        )
    stated: object = procedure.parameters
    listed = stated if isinstance(stated, tuple | list) else [stated]
    if wrong := [each for each in listed if not _is_sound(each)]:
        raise InvalidInput(
            f"the procedure {procedure.name} has a wrong parameter, {repr_of(wrong[0])}; give such "
            'as Parameter("column_name", ParameterType.TEXT, required=True)'
        )
    known = {parameter.name: parameter for parameter in procedure.parameters}
    if len({name.lower() for name in known}) < len(procedure.parameters):
        raise InvalidInput(
            f"the procedure {procedure.name} has two parameters with one name; rename one"
        )
    if isinstance(procedure, CatalogProcedure):
        return
    for wanted in (SCHEMA, TABLE_NAME):
        declared = known.get(wanted.name)
        if declared is None or not declared.required or declared.type is not ParameterType.TEXT:
            raise InvalidInput(
                f"the procedure {procedure.name} needs a required parameter "
                f"{wanted.name} of type {wanted.type.value}; add it to its parameters"
            )
    filters = known.get(FILTER.name) if isinstance(procedure, DistributedProcedure) else None
    if filters and (filters.required or filters.type is not ParameterType.TEXT):
        raise InvalidInput(
            f"the parameter {FILTER.name} of {procedure.name} must be optional and of type "
            f"{FILTER.type.value}"
        )


def _is_sound(parameter: object) -> bool:
    return (
        isinstance(parameter, Parameter)
        and isinstance(parameter.name, str)
        and isinstance(parameter.type, ParameterType)
    )
