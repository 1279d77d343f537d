"""Texts of ALTER TABLE and CREATE TABLE: where one action ends, and clauses that no table has.

Grammars of several dialects read only one action of an ALTER TABLE, or a few of one kind, so each
is read alone. Clauses are looked for only after a text could not be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from rowsieve.bridges.sql.dialects import Dialect

_ACTIONS: Final = frozenset({"ADD", "ALTER", "CHANGE", "DROP", "RENAME", "REPLACE", "SET", "UNSET"})
"""First words of an action."""
_OPENS: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_HOLDS: Final = "a constraint holds for every row, so correct the rows first and add it without"
_NO_OTHER: Final = "a table has one key and no other unique columns"
_KEPT_KEY: Final = (
    "PRIMARY KEY: a table keeps the key that it was created with; create another table with this "
    "key, and insert the rows"
)
_REASONS: Final[Sequence[tuple[tuple[str, ...], str]]] = (
    (("NOT", "VALID"), f"NOT VALID: {_HOLDS} NOT VALID"),
    (("NOT", "ENFORCED"), f"NOT ENFORCED: {_HOLDS} NOT ENFORCED"),
    (("FOREIGN", "KEY"), "FOREIGN KEY: a constraint is a condition on one row; leave it out"),
    (("REFERENCES",), "REFERENCES: a constraint is a condition on one row; leave it out"),
    (("UNIQUE",), f"UNIQUE: {_NO_OTHER}; create the table with these columns as its key"),
    (("PRIMARY", "KEY"), _KEPT_KEY),
    (("CASCADE",), "CASCADE: drop what depends on a column by actions of their own, before it"),
    (("NO", "INHERIT"), "NO INHERIT: no table inherits from another; leave it out"),
    (("DEFERRABLE",), "DEFERRABLE: each commit is checked as a whole; leave it out"),
    (("INITIALLY",), "INITIALLY: each commit is checked as a whole; leave it out"),
)
"""Words of a clause, and why it is refused."""


def actions_in(text: str, dialect: Dialect) -> list[str]:
    """Cut a text at each comma that a new action follows; one text if it cannot be read."""
    tokens = _tokens(text, dialect)
    pieces, start, depth = [], 0, 0
    for token, following in pairwise(tokens):
        depth += _depth(token)
        if token.text == "," and not depth and _word(following) in _ACTIONS:
            pieces.append(text[start : token.start])
            start = token.end + 1
    return [*pieces, text[start:]]


def reason_against(text: str, dialect: Dialect, *, creates: bool = False) -> str | None:
    """Why a clause of a text is refused; None if the text has none of these clauses.

    `creates`: the text is of a table to create, which may have a key.
    """
    words, depth = [], 0
    for token in _tokens(text, dialect):
        depth += _depth(token)
        if not depth:
            words += _word(token).split()
    for clause, reason in _REASONS:
        if creates and reason == _KEPT_KEY:
            continue
        size = len(clause)
        if any(tuple(words[i : i + size]) == clause for i in range(len(words))):
            return reason
    return None


def _tokens(text: str, dialect: Dialect) -> list[Any]:
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import

    before = "ALTER TABLE t "  # a first word may make the rest one token
    try:
        tokens = sqlglot.tokenize(before + text, read=dialect.grammar)[3:]
    except sqlglot.TokenError:
        return []
    for token in tokens:
        token.start -= len(before)
        token.end -= len(before)
    return list(tokens)


def _word(token: Any) -> str:
    """The word of a token in upper case; empty for one in quotes."""
    is_plain = token.end - token.start + 1 == len(token.text)
    return str(token.text).upper() if is_plain else ""


def _depth(token: Any) -> int:
    """By how much a token opens or closes brackets."""
    return _OPENS.get(_word(token), 0)
