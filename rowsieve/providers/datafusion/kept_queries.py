"""Replans views and prepared statements over our tables, so that they read the newest versions.

DataFusion stores the plan of a view or prepared statement, and with it the versions of its tables.
We store the SQL text, and have DataFusion plan it again for each statement that names it.

Soundness: the text must keep its meaning. If settings of name resolution or of the parser differ
from those at creation, it is an error. A view is replanned after the views that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Final
from weakref import ref

import datafusion

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.providers.datafusion.session.kept_query import KeptQuery
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.providers.datafusion.session_settings import MAX_PASSES, temporary_settings
from rowsieve.statements.parse_statement import Statement
from rowsieve.statements.queries import Deallocate, Execute, QueryDefinition, read_definition
from rowsieve.statements.read_change import Change

_DATAFUSION: Final = datafusion.SessionContext
_READS_TEXT: Final = ("datafusion.catalog.default_", "datafusion.sql_parser.")
_NO_VALUES: Final = (
    "sql: a view or prepared statement over a Rowsieve table takes no values when it is created; "
    "write them in its text, or as $1 in EXECUTE"
)


class KeptQueries:
    """The views and prepared statements of a session that read our tables."""

    def __init__(self, session: OwnSession) -> None:
        self._session_reference = ref(session)  # the session owns this object
        self._views: dict[tuple[str, ...], KeptQuery] = {}
        self._prepared: dict[str, KeptQuery] = {}

    @property
    def _session(self) -> OwnSession:
        session = self._session_reference()
        assert session is not None
        return session

    def named(self, text: str, statement: Statement | None = None) -> tuple[KeptQuery, ...]:
        """Those that a text may read, directly or through others, dependencies first.

        `statement`: what the text is, if it may be an EXECUTE.
        """
        if not self._views and not self._prepared:
            return ()
        queries: list[KeptQuery] = []
        seen: set[tuple[str, ...]] = set()

        def visit(views: Iterable[KeptQuery]) -> None:
            for view in views:
                if view.name not in seen:
                    seen.add(view.name)
                    visit(self._views_in(view.query))
                    queries.append(view)

        executed = self._prepared.get(statement.name) if isinstance(statement, Execute) else None
        visit(self._views_in(text if executed is None else f"{text} {executed.query}"))
        return (*queries, *([] if executed is None else [executed]))

    def has_view(self, name: tuple[str, ...]) -> bool:
        """Return whether a full name is that of a view."""
        return name in self._views

    def _views_in(self, text: str) -> Iterator[KeptQuery]:
        return (view for view in self._views.values() if view.is_named_in(text))

    def replan(self, queries: Iterable[KeptQuery]) -> None:
        """Have DataFusion plan these again, over the tables that are registered now."""
        for each in queries:
            self._check_settings(each)
            if each.is_view:
                self._replace(each)
            else:
                del self._prepared[each.name[0]]  # it is gone if planning it fails
                _DATAFUSION.sql(self._session, f"DEALLOCATE {each.sql_name}")
                with self._unoptimised():
                    _DATAFUSION.sql(self._session, each.statement)
                self._prepared[each.name[0]] = each

    def create(
        self,
        text: str,
        statement: QueryDefinition,
        plan: Callable[[], datafusion.DataFrame],
        *,
        has_values: bool,
    ) -> datafusion.DataFrame:
        """Have DataFusion create a view or prepared statement, and store its text.

        UnsupportedOperation with values, or if it could not be replanned: a view that reads
        itself, directly or through another view, or a statement that is not a query.
        """
        if has_values:
            raise UnsupportedOperation(_NO_VALUES)
        stored = self._read(text, statement)
        inner = [view for view in self.named(stored.query) if view.name != stored.name]
        if stored.is_view and (outer := [view for view in inner if stored.is_named_in(view.query)]):
            raise UnsupportedOperation(
                f"sql: the view {stored.sql_name} names {outer[0].sql_name}, which names it, too; "
                "give one of them another name"
            )
        self.replan(inner)
        replaced = self._registered(stored) if stored.is_view else None
        with nullcontext() if stored.is_view else self._unoptimised():
            frame = plan()
        if replaced is not None:
            try:
                self._replace(stored)
            except Exception as error:
                _DATAFUSION.deregister_table(self._session, stored.sql_name)
                _DATAFUSION.register_table(self._session, stored.sql_name, replaced)
                raise UnsupportedOperation(
                    f"sql: the view {stored.sql_name} cannot be replaced by a query that reads it; "
                    "give the view another name"
                ) from error
        if stored.is_view:
            self._views[stored.name] = stored
        else:
            self._prepared[stored.name[0]] = stored
        return frame

    def _unoptimised(self) -> AbstractContextManager[None]:
        """Disable the optimiser while DataFusion prepares a statement.

        DataFusion 55 optimises a prepared statement twice: at PREPARE and at EXECUTE. The second
        time, it fails on conditions that it pushed into our dataset before, and on `DISTINCT ON`.
        """

        def run(statement: str) -> None:
            _DATAFUSION.sql(self._session, statement)

        return temporary_settings({MAX_PASSES: 0}, self._session.settings_of((MAX_PASSES,)), run)

    def forget_replaced(self, statement: Statement) -> None:
        """Forget views and prepared statements that a statement, which has run, removed."""
        match statement:
            case Deallocate(name=name):
                self._prepared.pop(name, None)
            case Change(name=name) if statement.removes_table:
                self._views.pop(self._session.full_name(name), None)
            case QueryDefinition(is_view=True, replaces=True):
                with suppress(InvalidInput, UnsupportedOperation):
                    name = read_definition(statement).name
                    self._views.pop(self._session.full_name(name), None)
        self.forget_removed()

    def forget_removed(self) -> None:
        """Forget the views that the session has dropped or replaced."""
        for name, view in list(self._views.items()):
            if (now := self._registered(view)) is None or now.kind != "view":
                del self._views[name]

    def _read(self, text: str, statement: QueryDefinition) -> KeptQuery:
        try:
            definition = read_definition(statement)
        except InvalidInput as error:
            raise UnsupportedOperation(
                "sql: the view or prepared statement cannot be parsed, so it would always read "
                f"today's versions of its tables: {error}"
            ) from error
        full = self._session.full_name(definition.name) if statement.is_view else definition.name
        return KeptQuery(full, statement.is_view, text, definition.query, self._settings())

    def _settings(self) -> dict[str, Any]:
        """The settings that decide the meaning of a SQL text."""
        return self._session.settings_of(_READS_TEXT)

    def _check_settings(self, stored: KeptQuery) -> None:
        now = self._settings()
        for name in sorted(now.keys() | stored.settings.keys()):
            if now.get(name) != stored.settings.get(name):
                what = "view" if stored.is_view else "prepared statement"
                raise UnsupportedOperation(
                    f"sql: the {what} {stored.sql_name} was created with {name} = "
                    f"{stored.settings.get(name)}, which is {now.get(name)} now; SET it back"
                )

    def _replace(self, view: KeptQuery) -> None:
        """Create the view again; if that fails, restore it."""
        before = self._registered(view)
        _DATAFUSION.deregister_table(self._session, view.sql_name)
        try:
            _DATAFUSION.sql(self._session, view.statement)
        except Exception:
            if before is not None:
                _DATAFUSION.register_table(self._session, view.sql_name, before)
            raise

    def _registered(self, view: KeptQuery) -> Any:
        """Return the table or view registered under the view's name, or None."""
        catalog, schema, name = view.name
        try:
            return _DATAFUSION.catalog(self._session, catalog).schema(schema).table(name)
        except Exception:  # the catalog, the schema or the table does not exist
            return None
