"""Runs statements on the coordinator: resolve, bind, plan, run the tasks, finish.

`finish` is called once, after every task has a complete report; if a task or the engine fails,
nothing is committed. In a procedure with stages this applies to each stage. The context of a call
always ends with the call, also after an error.

A lease keeps the version that the tasks read (trap T24). It is taken when there are tasks, so the
version may expire before that; then the call is planned again, at the newest version.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa

from rowsieve import clock
from rowsieve.arguments.annotations import Progress
from rowsieve.bridges.session import Session
from rowsieve.bridges.where import locating_errors, semantics_of, to_predicate
from rowsieve.config import current
from rowsieve.errors import CallCancelled, SnapshotExpired, StoreError, UnsupportedOperation
from rowsieve.metrics.running_operations import operation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.procedures.bound_call import bound_arguments
from rowsieve.procedures.call_plan import (
    CallTarget,
    OutputNode,
    explained,
    optimised,
    plan_call,
)
from rowsieve.procedures.engine import Engine, Job, KnowsBatch, LocalEngine, ReadsText
from rowsieve.procedures.parameters import literal
from rowsieve.procedures.procedure import (
    FILTER,
    SCHEMA,
    TABLE_NAME,
    TOKEN_APP,
    TOKEN_SEQUENCE,
    AnyProcedure,
    CallContext,
    CatalogProcedure,
    DistributedProcedure,
    Handle,
    TablesByName,
    TargetScan,
)
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.procedures.task_reports import fragments_by_task
from rowsieve.statements.call_values import Value
from rowsieve.statements.calls import (
    Call,
    CallStatement,
    DescribeProcedure,
    ExplainCall,
    ShowProcedures,
)
from rowsieve.storage.log.floors import floors_of, is_closed
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S, Retries
from rowsieve.table import Table
from rowsieve.types.schema import Schema

_log = logging.getLogger(__name__)
FindTable = Callable[[str, str], Table]
"""Returns the table of a namespace and a name."""


@dataclass(frozen=True, slots=True)
class Coordinator:
    """Runs calls of the procedures of one registry on tables given by name."""

    registry: ProcedureRegistry
    find: FindTable
    engine: Engine | None = None
    dialect: str = "postgres"
    session: Session | None = None
    catalog: TablesByName | None = None

    def run(self, statement: CallStatement) -> pa.Table:
        """Run a statement; return its rows."""
        match statement:
            case ShowProcedures():
                return _shown(self.registry)
            case DescribeProcedure(procedure=name):
                return _described(self.registry.resolve(name))
            case ExplainCall(call=call):
                return pa.table({"plan": self.explain(call).splitlines()})
            case Call():
                return self._call(statement)

    def explain(self, call: Call) -> str:
        """The plan of a call as text, a node a line; nothing runs."""
        procedure = self.registry.resolve(call.procedure)
        arguments = self._bound(procedure, call)
        if isinstance(procedure, DistributedProcedure):
            return explained(self._planned(procedure, arguments))
        shown = ", ".join(f"{k} => {literal(v)}" for k, v in arguments.items() if v is not None)
        columns = ", ".join(procedure.columns.names)
        return f"Output [{columns}]\n  Call [{procedure.name}({shown})]"

    def _call(self, call: Call) -> pa.Table:
        procedure = self.registry.resolve(call.procedure)
        arguments = self._bound(procedure, call)
        names = (arguments.get(each.name) for each in (SCHEMA, TABLE_NAME))
        table = ".".join(str(name) for name in names if name is not None)
        with operation("procedure", f"CALL {procedure.name}", table, current().reporter):
            return self._ran(procedure, arguments)

    def _ran(self, procedure: AnyProcedure, arguments: Mapping[str, Value]) -> pa.Table:
        if isinstance(procedure, DistributedProcedure):
            return run_planned(
                lambda: self._planned(procedure, arguments), self.engine or LocalEngine()
            )
        progress = _Progress(getattr(self.engine, "tell", None))
        if isinstance(procedure, CatalogProcedure):
            if self.catalog is None:
                raise UnsupportedOperation(f"{procedure.name} needs a catalog; use Catalog.call")
            rows = procedure.call(self.catalog, arguments)
        else:
            table = self._table(arguments)
            with self._once(procedure, table, arguments) as labelled:
                rows = procedure.run(table, labelled, progress)
        progress.end()
        return rows

    @contextmanager
    def _once(
        self, procedure: AnyProcedure, table: Table, arguments: Mapping[str, Value]
    ) -> Iterator[Mapping[str, Value]]:
        """The arguments, with the token of the engine's batch if the call has none."""
        names = (TOKEN_APP.name, TOKEN_SEQUENCE.name)
        takes_token = TOKEN_APP in procedure.parameters
        engine: object = self.engine
        is_given = any(arguments.get(name) is not None for name in names)
        if not takes_token or is_given or not isinstance(engine, KnowsBatch):
            yield arguments
            return
        with engine.batch_token(table, procedure.name) as token:
            named: dict[str, Value] = {}
            if token is not None:
                named = {TOKEN_APP.name: token[0], TOKEN_SEQUENCE.name: token[1]}
            yield {**arguments, **named}

    def _bound(self, procedure: AnyProcedure, call: Call) -> dict[str, Value]:
        return bound_arguments(procedure, call, _time_zone(self.engine, self.session))

    def _planned(
        self, procedure: DistributedProcedure, arguments: Mapping[str, Value]
    ) -> OutputNode:
        table = self._table(arguments)
        table.refresh()
        where = arguments.get(FILTER.name)
        predicate, semantics = self._condition(where, table.handle.pinned.schema)
        scan = TargetScan(table, predicate, semantics, clock.now_us())
        return optimised(plan_call(procedure, arguments, scan))

    def _condition(self, where: Value, schema: Schema) -> tuple[Predicate, Semantics]:
        """The condition of a filter, and its semantics: of `session`, or else of the engine's."""
        semantics = None
        if isinstance(where, str) and self.session is None:
            semantics = _semantics_in(self.engine, self.dialect, where, schema)
        names_checked = semantics is not None
        if semantics is None:
            semantics = semantics_of(self.dialect, where, self.session)
        if where is None:
            return TRUE, semantics
        with locating_errors(where, self.dialect, schema, semantics):
            predicate = to_predicate(
                where, self.dialect, schema, semantics, self.session, names_checked=names_checked
            )
            bind(predicate, schema, semantics, now_us=0, simplified=False)
        return predicate, semantics

    def _table(self, arguments: Mapping[str, Value]) -> Table:
        return self.find(str(arguments[SCHEMA.name]), str(arguments[TABLE_NAME.name]))


def _time_zone(engine: object, session: Session | None) -> str:
    """The zone of times without one: that of `session`, or else of the engine's session."""
    if session is not None:
        return session.time_zone
    return engine.time_zone if isinstance(engine, ReadsText) else "UTC"


def _semantics_in(engine: object, dialect: str, text: str, schema: Schema) -> Semantics | None:
    """The semantics of a text in the session of an engine; None if it has none of the dialect."""
    if not isinstance(engine, ReadsText) or engine.dialect != dialect:
        return None
    return engine.semantics_of(text, schema)


class _Progress:
    """Reports the progress of a procedure that runs in this process, and its end."""

    def __init__(self, tell: Progress | None) -> None:
        self._tell = tell
        self._done, self._total = 0, 1

    def __call__(self, done: int, total: int) -> None:
        """Report that `done` of `total` rows or files are done."""
        self._done, self._total = done, total
        if self._tell is not None:
            self._tell(done, total)

    def end(self) -> None:
        """Report the end, unless the procedure has: it never counts hidden rows as done."""
        if self._done < self._total:
            self(self._total, self._total)


def run_planned(planned: Callable[[], OutputNode], engine: Engine) -> pa.Table:
    """Begin, run the tasks on the engine, and finish once; an engine is cancelled on a failure."""
    retries: Retries | None = None
    while True:
        target = planned().target
        context = CallContext(target.scan)
        with ExitStack() as stack:
            stack.callback(context.close)
            version = context.table.version
            try:
                handle = _begun(target, context, stack)
            except SnapshotExpired as error:
                if not _has_expired(version, context.table):
                    raise
                retries = retries or Retries(f"CALL {target.procedure.name}", RETRY_TIMEOUT_S)
                retries.wait(error)
                continue
            return _finished(target.procedure, context, handle, engine)


def _begun(target: CallTarget, context: CallContext, stack: ExitStack) -> Handle:
    """Cut the work into tasks, and hold a lease of the version that they read."""
    name = target.procedure.name
    context.table.handle.require_writable(name)  # refuse before the work, not after it
    handle = target.procedure.begin(context, target.arguments)
    if handle.tasks:
        stack.enter_context(context.table.lease(version=handle.version, holder=f"CALL {name}"))
    return handle


def _has_expired(version: int, table: Table) -> bool:
    """Return whether a version has expired, but not the whole table."""
    head = table.handle.latest()
    return version < floors_of(head.table.properties).oldest_version and not is_closed(head)


def _finished(
    procedure: DistributedProcedure, context: CallContext, handle: Handle, engine: Engine
) -> pa.Table:
    if handle.tasks and handle.stages:
        _run_stages(procedure, context, handle, engine)
        return procedure.finish(context, handle, [])
    numbers = range(len(handle.tasks))
    fragments = _run_tasks(procedure, context, handle, numbers, engine) if handle.tasks else []
    return procedure.finish(context, handle, fragments)


def _run_tasks(
    procedure: DistributedProcedure,
    context: CallContext,
    handle: Handle,
    numbers: range,
    engine: Engine,
) -> list[Sequence[bytes]]:
    """Run some tasks on the engine; return the fragments of each."""
    table = context.table
    job = Job(
        procedure,
        handle.tasks[numbers.start : numbers.stop],
        table.handle.storage_options,
        f"rowsieve: CALL {procedure.name} on {table.uri} at version {handle.version}",
        handle.max_concurrent,
        table.uri,
    )
    try:
        reports = list(engine.run(job)) if job.tasks else []
    except BaseException:
        engine.cancel()
        raise
    return fragments_by_task(reports, len(job.tasks))


def _run_stages(
    procedure: DistributedProcedure, context: CallContext, handle: Handle, engine: Engine
) -> None:
    """Run and commit stage after stage; raise the last error if all of them failed.

    CallCancelled ends the call, and so does a StoreError of a commit, which may have taken effect;
    the stages before it stay committed.
    """
    first = failures = 0
    for number, count in enumerate(handle.stages):
        numbers = range(first, first + count)
        first += count
        ran = False
        try:
            fragments = _run_tasks(procedure, context, handle, numbers, engine)
            ran = True
            procedure.commit_stage(context, handle, number, fragments)
        except CallCancelled as error:  # no further stage may begin
            raise CallCancelled(
                f"CALL {procedure.name} was cancelled; {number - failures} of its "
                f"{len(handle.stages)} stages are committed"
            ) from error
        except Exception as error:
            failures += 1
            if failures == len(handle.stages) or (ran and isinstance(error, StoreError)):
                raise
            _log.warning("%s: a stage was not committed: %s", procedure.name, error)
            procedure.stage_failed(handle, number)


def _shown(registry: ProcedureRegistry) -> pa.Table:
    known = list(registry)
    return pa.table(
        {
            "procedure": [procedure.name for procedure in known],
            "distributed": [isinstance(each, DistributedProcedure) for each in known],
            "meaning": [procedure.meaning for procedure in known],
        }
    )


def _described(procedure: AnyProcedure) -> pa.Table:
    parameters = procedure.parameters
    return pa.table(
        {
            "parameter": [each.name for each in parameters],
            "type": [each.type.value for each in parameters],
            "required": [each.required for each in parameters],
            "default": pa.array(
                [None if each.default is None else str(each.default) for each in parameters],
                pa.string(),
            ),
            "meaning": [each.meaning for each in parameters],
        }
    )
