"""A view or a prepared statement of a session that reads our tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rowsieve.statements.query_words import may_name, searchable
from rowsieve.statements.tokens import quoted_path


@dataclass(frozen=True, slots=True)
class KeptQuery:
    """A view or a prepared statement.

    `name` is the full name of a view, or the one name of a prepared statement. `statement` is the
    SQL that creates it, `query` the query inside, `settings` those under which it was created.
    """

    name: tuple[str, ...]
    is_view: bool
    statement: str
    query: str
    settings: Mapping[str, Any]

    @property
    def sql_name(self) -> str:
        """The name as a quoted identifier."""
        return quoted_path(self.name)

    def is_named_in(self, text: str) -> bool:
        """Return whether a SQL text may name the view."""
        return may_name(searchable(text), self.name[-1])
