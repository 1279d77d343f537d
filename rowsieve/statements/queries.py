"""Statements whose text is the engine's: queries, views, prepared statements and settings.

Views and prepared statements over our tables are planned again for each statement, so their query
is read from their text (`read_definition`); of the others only the kind is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.statements.tokens import StatementTokens

_QUERIES: Final = ("SELECT", "WITH", "VALUES", "EXPLAIN", "(")


@dataclass(frozen=True, slots=True)
class Query:
    """A statement that returns rows; `explains`: EXPLAIN, which `runs` only with ANALYZE."""

    explains: bool = False
    runs: bool = True


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    """`CREATE VIEW … AS query` or `PREPARE … AS query`."""

    is_view: bool
    replaces: bool = False
    tokens: StatementTokens | None = field(default=None, compare=False, repr=False)

    @property
    def verb(self) -> str:
        """The words of the statement."""
        return "CREATE VIEW" if self.is_view else "PREPARE"


@dataclass(frozen=True, slots=True)
class DefinedQuery:
    """The name of a view or prepared statement, and its query, which begins at `start`."""

    name: tuple[str, ...]
    query: str
    start: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Execute:
    """`EXECUTE name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Deallocate:
    """`DEALLOCATE [PREPARE] name`."""

    name: str

    @property
    def removes(self) -> bool:
        """True: prepared statements need not be planned for it."""
        return True


@dataclass(frozen=True, slots=True)
class Setting:
    """`SET` or `RESET`."""


@dataclass(frozen=True, slots=True)
class Other:
    """A statement for the engine alone, by its first word.

    `schema`: the name of the schema that it creates or drops.
    """

    verb: str
    schema: tuple[str, ...] = ()

    @property
    def removes(self) -> bool:
        """True if views that it names need not be planned."""
        return self.verb == "DROP"


def read_definition(statement: QueryDefinition) -> DefinedQuery:
    """Read the name and the query of a view or prepared statement.

    InvalidInput if it cannot be parsed; UnsupportedOperation if it is not a query.
    """
    tokens = statement.tokens
    if tokens is None:
        raise InvalidInput("sql: the text must be one statement; give each to a call of its own")
    tokens.at = 0
    name = _view_name(tokens) if statement.is_view else _prepared(tokens)
    if tokens.next() == "(":
        tokens.bracket()
    tokens.need("AS")
    if tokens.next() not in _QUERIES or "INTO" in tokens.words:
        raise UnsupportedOperation(
            "sql: a view or prepared statement over a Rowsieve table is a query without INTO; "
            "give other statements to sql, with parameters if they vary"
        )
    return DefinedQuery(name, tokens.piece(tokens.at, tokens.count), tokens.start)


def prepared_name(tokens: StatementTokens) -> str:
    """Consume the name of a prepared statement, which DataFusion folds under all settings."""
    written, name = tokens.name()
    return name if written.startswith('"') else name.lower()


def _prepared(tokens: StatementTokens) -> tuple[str, ...]:
    tokens.need("PREPARE")
    return (prepared_name(tokens),)


def _view_name(tokens: StatementTokens) -> tuple[str, ...]:
    """Consume CREATE … VIEW and the name of the view; return the parts of the name."""
    tokens.need("CREATE")
    if not tokens.take("OR", "REPLACE"):
        tokens.take("OR", "ALTER")
    for word in ("TEMP", "TEMPORARY"):  # DataFusion reports them as errors
        tokens.take(word)
    tokens.need("VIEW")
    return tokens.path()[1]
