"""Runs the queries of one statement that changes a table: in DataFusion, over pinned versions.

Soundness: all queries of a statement read the same version of every table except the changed one.
That table is read at the version that the caller passes, under each of its names in the session.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import datafusion
import pyarrow as pa

from rowsieve.bridges.datafusion_exprs import from_datafusion
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import EvaluationError, InvalidInput, RowsieveError
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.providers.datafusion.changes.numbered_rows import numbered_rows
from rowsieve.providers.datafusion.rows_in_memory import batches_of
from rowsieve.providers.datafusion.session.changed_table import Changed
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.statements.query_words import may_name, searchable
from rowsieve.statements.tokens import words_of
from rowsieve.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.catalog_tables import CatalogTables
    from rowsieve.providers.datafusion.own_table import OwnTable
    from rowsieve.table import Table

_READS = frozenset({"from", "join", "table", "using"})


class StatementQueries:
    """Queries with the parameters of the statement; `close` removes the names they registered."""

    def __init__(
        self,
        session: OwnSession,
        changed: Changed,
        named: Mapping[str, OwnTable],
        parameters: tuple[Mapping[str, Any] | None, Mapping[str, Any]],
    ) -> None:
        self._session = session
        self._changed = changed
        self._named = dict(named)
        self._pins: dict[CatalogTables, dict[str, Any]] = {
            catalog: {} for catalog in session.own_catalogs()
        }
        self._versions = {
            own.table.handle.line: own.snapshot for own in named.values() if not own.is_fixed
        }
        self._registered_names: list[str] = []
        self._values, named_params = parameters
        self._texts: dict[str, Any] = {}
        for name, value in named_params.items():
            is_frame = isinstance(value, datafusion.DataFrame)
            self._texts[name] = self._keep_view(value) if is_frame else value

    def check(self, statement: str, options: Any) -> None:
        """Have DataFusion plan the statement, which checks its grammar, names and options."""
        with _planning():
            self._session.check_plan(statement, self._named, options, self._values, self._texts)

    @property
    def table(self) -> Table:
        """The table that the statement changes."""
        return self._changed.table

    def rows(self, query: str, at: Snapshot, near: Predicate = TRUE) -> pa.Table:
        """Run a query; rows of the changed table that do not match `near` may be missing."""
        return self.run(self._planned(query, at, near))

    def columns(self, query: str, at: Snapshot) -> list[str]:
        """The names of the columns of a query."""
        return list(self._planned(query, at, TRUE).schema().names)

    def types(self, query: str, at: Snapshot) -> list[pa.DataType]:
        """The types of the columns of a query; InvalidInput if DataFusion cannot plan it."""
        return list(self._planned(query, at, TRUE).schema().types)

    def condition(self, query: str, at: Snapshot) -> Predicate | None:
        """Translate the condition of a query on one table; return None if it has no exact form."""
        if not self._session.has_default_semantics:
            return None
        return self._condition(self._planned(query, at, TRUE), at)

    def matching_rows(self, query: str, at: Snapshot) -> tuple[pa.Table, Predicate | None]:
        """Run a query of one relation; return its rows and its condition, as `condition` does."""
        frame = self._planned(query, at, TRUE)
        return self.run(frame), self._condition(frame, at)

    def run(self, frame: datafusion.DataFrame) -> pa.Table:
        """Run a planned query; if a read of the changed table fails, raise its error.

        InvalidInput if DataFusion cannot plan it: it checks types when the query runs.
        """
        self.table.handle.engine_error = None
        try:
            return frame.to_arrow_table()
        except (RowsieveError, MemoryError):
            raise
        except Exception as error:
            if isinstance(failure := self.table.engine_error, RowsieveError):
                raise failure from error
            with _planning():
                frame.optimized_logical_plan()
            raise EvaluationError(
                f"sql: the new rows cannot be computed: {error}; nothing was changed. Exclude the "
                "rows that fail, or change the expression that fails"
            ) from error

    def _condition(self, frame: datafusion.DataFrame, at: Snapshot) -> Predicate | None:
        if not self._session.has_default_semantics:
            return None
        node = frame.logical_plan().inputs()[0].to_variant()
        if not isinstance(node, datafusion.expr.Filter):
            return None
        translation = from_datafusion(node.predicate(), at.schema)
        is_exact = translation.exactness is Exactness.EXACT
        return translation.expression if is_exact else None

    def cast_rows(self, statement: str, at: Snapshot) -> pa.Table:
        """The rows of an INSERT with all columns, cast by DataFusion."""
        plan = self._planned(statement, at, TRUE, only_reads=False).logical_plan()
        return self.run(self._session.create_dataframe_from_logical_plan(plan.inputs()[0]))

    def reads_table(self, *texts: str) -> bool:
        """Return whether a clause may have a subquery that reads the changed table."""
        inserted = (str(text) for text in self._texts.values())
        queries = [text for text in (*texts, *inserted) if text]
        words = frozenset[str]().union(
            *(words_of(self._session.with_view_queries(text)) for text in queries)
        )
        if not words & _READS:
            return False
        names = {self._changed.name} | {own.last_name for own in self._names_of_changed()}
        return bool(self._pins) or any(name.lower() in words for name in names)

    def register_rows(self, rows: pa.Table) -> str:
        """Register rows under a new name until the statement ends; return the name."""
        name = f"rowsieve_{uuid.uuid4().hex}"
        batches = batches_of(rows)
        self._session.register_record_batches(name, [batches])
        self._registered_names.append(name)
        return name

    def register_numbered(self, at: Snapshot) -> str:
        """Register the rows of the changed table with their places; return the name."""
        name = f"rowsieve_{uuid.uuid4().hex}"
        self._session.register_table(name, numbered_rows(self.table, at))
        self._registered_names.append(name)
        return name

    def close(self) -> None:
        """Remove the names that the queries registered."""
        for name in self._registered_names:
            self._session.deregister_table(name)

    def _keep_view(self, frame: datafusion.DataFrame) -> str:
        name = f"rowsieve_{uuid.uuid4().hex}"
        self._session.register_view(name, frame)
        self._registered_names.append(name)
        return name

    def _names_of_changed(self) -> list[OwnTable]:
        """The names in the session that follow the newest version of the changed table."""
        wanted = self.table.handle.line
        return [
            own
            for own in self._named.values()
            if own.table.handle.line == wanted and not own.is_fixed
        ]

    def _planned(
        self, query: str, at: Snapshot, near: Predicate, *, only_reads: bool = True
    ) -> datafusion.DataFrame:
        """Plan a query, with the changed table at this version."""
        session = self._session
        options = read_only() if only_reads else None
        whole = " ".join([query, *map(str, self._texts.values())])
        text = searchable(session.with_view_queries(whole))
        named = {n: own for n, own in self._named.items() if may_name(text, own.last_name)}
        for own in self._names_of_changed():
            if own.name in named:
                named[own.name] = own.at(at)
        line = self.table.handle.line
        if self._versions.get(line) is not at:
            for pins in self._pins.values():
                pins.clear()  # because any of these names may be one of the changed table
        self._versions[line] = at
        with ExitStack() as stack:
            stack.enter_context(session.planning())
            for catalog, pins in self._pins.items():
                if catalog is self._changed.catalog:
                    pins[self._changed.name_there] = session.pinned(self.table, at, near)
                stack.enter_context(catalog.serving(pins))
            changed = [own.name for own in self._names_of_changed() if own.name in named]
            skipped = {} if near == TRUE else dict.fromkeys(changed, near)
            stack.enter_context(_planning())
            return session.planned_at(
                query, named, skipped, self._versions, options, self._values, self._texts
            )


@contextmanager
def _planning() -> Iterator[None]:
    """Raise InvalidInput for a part of the statement that DataFusion cannot plan."""
    try:
        yield
    except (RowsieveError, MemoryError):
        raise
    except Exception as error:
        raise InvalidInput(f"sql: {error}; nothing was changed") from error


def read_only() -> datafusion.SQLOptions:
    """Return options that allow only queries."""
    options = datafusion.SQLOptions().with_allow_ddl(allow=False)
    return options.with_allow_dml(allow=False).with_allow_statements(allow=False)


@contextmanager
def closing(queries: StatementQueries) -> Iterator[StatementQueries]:
    """Close the queries at the end of the block."""
    try:
        yield queries
    finally:
        queries.close()
