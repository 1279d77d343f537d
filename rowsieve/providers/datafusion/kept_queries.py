"""Views and prepared statements over our tables: they read the newest versions.

DataFusion keeps the plan of a view or prepared statement, and with it the versions of its tables.
We keep the text, and let DataFusion plan it anew for each statement that names it.

Soundness: a text must mean what it meant when it was kept, so that under other settings of names or
grammar it is an error. A view is planned anew after the views that it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import datafusion

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.providers.datafusion.session_settings import IDENTIFIERS, MAX_PASSES, held
from rowsieve.providers.datafusion.statement_tokens import StatementTokens, quoted, tokens_of

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.sql_session import SessionContext

_DATAFUSION: Final = datafusion.SessionContext
_READS_TEXT: Final = ("datafusion.catalog.default_", "datafusion.sql_parser.")
_QUERIES: Final = ("SELECT", "WITH", "VALUES", "EXPLAIN", "(")


@dataclass(frozen=True, slots=True)
class KeptQuery:
    """A view, by its full name, or a prepared statement, by its one name.

    `statement` creates it; `query` is what it stands for.
    """

    name: tuple[str, ...]
    is_view: bool
    statement: str
    query: str
    settings: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The name as SQL."""
        return ".".join(map(quoted, self.name))

    def is_named_in(self, text: str) -> bool:
        """Whether a text may name the view."""
        name = re.escape(self.name[-1].casefold())
        return re.search(rf"(?<!\w){name}(?!\w)", text.casefold().replace('""', '"')) is not None


class KeptQueries:
    """The views and prepared statements of a session over tables of ours."""

    def __init__(self, session: SessionContext) -> None:
        self._session = session
        self._views: dict[tuple[str, ...], KeptQuery] = {}
        self._prepared: dict[str, KeptQuery] = {}

    def named(self, text: str) -> tuple[KeptQuery, ...]:
        """Those that a statement may name, and those that these may name, which come before."""
        found: list[KeptQuery] = []
        seen: set[tuple[str, ...]] = set()

        def visit(views: Iterable[KeptQuery]) -> None:
            for view in views:
                if view.name not in seen:
                    seen.add(view.name)
                    visit(self._views_in(view.query))
                    found.append(view)

        executed = self._executed(text)
        visit(self._views_in(text if executed is None else f"{text} {executed.query}"))
        return (*found, *([] if executed is None else [executed]))

    def _views_in(self, text: str) -> Iterator[KeptQuery]:
        return (view for view in self._views.values() if view.is_named_in(text))

    def _executed(self, text: str) -> KeptQuery | None:
        if not self._prepared or (tokens := tokens_of(text)) is None or not tokens.take("EXECUTE"):
            return None
        return self._prepared.get(_prepared_name(tokens))

    def renew(self, kept: Iterable[KeptQuery]) -> None:
        """Let DataFusion plan them anew over what the names of tables stand for now."""
        for each in kept:
            self._check_settings(each)
            if each.is_view:
                self._replace(each)
            else:
                del self._prepared[each.name[0]]  # until the text has been planned
                _DATAFUSION.sql(self._session, f"DEALLOCATE {each.place}")
                with self._unoptimised():
                    _DATAFUSION.sql(self._session, each.statement)
                self._prepared[each.name[0]] = each

    def keep(
        self, statement: str, plan: Callable[[], datafusion.DataFrame]
    ) -> datafusion.DataFrame:
        """Let DataFusion create a view or prepared statement, and keep it.

        UnsupportedOperation for one that cannot be planned anew: a view that names itself or a view
        that names it, a statement that is no query.
        """
        kept = self._read(statement)
        inner = [view for view in self.named(kept.query) if view.name != kept.name]
        if kept.is_view and (outer := [view for view in inner if kept.is_named_in(view.query)]):
            raise UnsupportedOperation(
                f"sql: the view {kept.place} names {outer[0].place}, which names it, too; give one "
                "of them another name"
            )
        self.renew(inner)
        replaced = self._registered(kept) if kept.is_view else None
        with nullcontext() if kept.is_view else self._unoptimised():
            frame = plan()
        if replaced is not None:
            try:
                self._replace(kept)
            except Exception as error:
                _DATAFUSION.deregister_table(self._session, kept.place)
                _DATAFUSION.register_table(self._session, kept.place, replaced)
                raise UnsupportedOperation(
                    f"sql: the view {kept.place} cannot be replaced by a query that reads it; give "
                    "the view another name"
                ) from error
        if kept.is_view:
            self._views[kept.name] = kept
        else:
            self._prepared[kept.name[0]] = kept
        return frame

    def _unoptimised(self) -> AbstractContextManager[None]:
        """Let DataFusion prepare a plan without optimising it.

        DataFusion 55 optimises what it prepares, and again what it executes. The second time, it
        fails on conditions that our dataset has taken the first time, and on `DISTINCT ON`.
        """

        def run(statement: str) -> None:
            _DATAFUSION.sql(self._session, statement)

        return held({MAX_PASSES: 0}, self._session.settings_of((MAX_PASSES,)), run)

    def note(self, statement: str) -> None:
        """Forget what a statement, which has run, has removed or replaced."""
        if not self._views and not self._prepared:
            return
        if (tokens := self._tokens(statement)) is None:
            return
        with suppress(InvalidInput, UnsupportedOperation):
            if tokens.take("DEALLOCATE"):
                tokens.take("PREPARE")
                self._prepared.pop(_prepared_name(tokens), None)
            elif tokens.take("CREATE", "OR", "REPLACE"):
                tokens.take("VIEW")
                tokens.take("TABLE")
                self._views.pop(self._session.full_name(tokens.path()[1]), None)
        self.forget_removed()

    def forget_removed(self) -> None:
        """Forget the views that the session has no longer."""
        for name, view in list(self._views.items()):
            if (now := self._registered(view)) is None or now.kind != "view":
                del self._views[name]

    def _read(self, statement: str) -> KeptQuery:
        tokens = self._tokens(statement)
        try:
            if tokens is None:
                raise InvalidInput("sql: expected one statement")
            is_view = not tokens.take("PREPARE")
            name = _created_name(tokens) if is_view else (_prepared_name(tokens),)
            if tokens.next() == "(":
                tokens.bracket()
            tokens.need("AS")
            is_query = tokens.next() in _QUERIES and "INTO" not in tokens.words
        except InvalidInput as error:
            raise UnsupportedOperation(
                f"sql: the view or prepared statement cannot be read, so that its tables would "
                f"stay at the version of today: {error}"
            ) from error
        if not is_query:
            raise UnsupportedOperation(
                "sql: a view or prepared statement over a Rowsieve table is a query without INTO; "
                "give other statements to sql, with parameters if they vary"
            )
        query = tokens.piece(tokens.at, tokens.count)
        full = self._session.full_name(name) if is_view else name
        return KeptQuery(full, is_view, statement, query, self._settings())

    def _tokens(self, text: str) -> StatementTokens | None:
        return tokens_of(text, folds=self._session.setting(IDENTIFIERS) != "false")

    def _settings(self) -> dict[str, Any]:
        """The settings that say what a text means."""
        return self._session.settings_of(_READS_TEXT)

    def _check_settings(self, kept: KeptQuery) -> None:
        now = self._settings()
        for name in sorted(now.keys() | kept.settings.keys()):
            if now.get(name) != kept.settings.get(name):
                what = "view" if kept.is_view else "prepared statement"
                raise UnsupportedOperation(
                    f"sql: the {what} {kept.place} was created with {name} = "
                    f"{kept.settings.get(name)}, which is {now.get(name)} now; SET it back"
                )

    def _replace(self, view: KeptQuery) -> None:
        """Create the view anew; if that fails, it stays what it was."""
        before = self._registered(view)
        _DATAFUSION.deregister_table(self._session, view.place)
        try:
            _DATAFUSION.sql(self._session, view.statement)
        except Exception:
            if before is not None:
                _DATAFUSION.register_table(self._session, view.place, before)
            raise

    def _registered(self, view: KeptQuery) -> Any:
        """What the view's name stands for in the session; None if it is free."""
        catalog, schema, name = view.name
        try:
            return _DATAFUSION.catalog(self._session, catalog).schema(schema).table(name)
        except Exception:  # the catalog, the schema or the table does not exist
            return None


def _prepared_name(tokens: StatementTokens) -> str:
    """Pass the name of a prepared statement, which DataFusion folds whatever the settings say."""
    written, name = tokens.name()
    return name if written.startswith('"') else name.lower()


def _created_name(tokens: StatementTokens) -> tuple[str, ...]:
    """Pass the words before the name of a view, and the name."""
    tokens.need("CREATE")
    if not tokens.take("OR", "REPLACE"):
        tokens.take("OR", "ALTER")
    for word in ("TEMP", "TEMPORARY"):  # DataFusion refuses them
        tokens.take(word)
    tokens.need("VIEW")
    return tokens.path()[1]
