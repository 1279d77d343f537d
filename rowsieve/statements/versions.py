"""Time travel in SQL text: `t FOR VERSION AS OF 12` becomes the table name `"t@v12"`.

With a text instead of a number it becomes the name of a tag or branch, `"t@audit"`, and so does
`t@audit` without quotes.

Only the tokens of the clause and of the name before it change; text in quotes and comments stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import sqlglot
from sqlglot.dialects.postgres import Postgres

from rowsieve.errors import InvalidInput

_PREFIX: Final = re.compile(
    r"\s*(?:EXPLAIN(?:\s+ANALYZE)?(?:\s+VERBOSE)?|PREPARE\s+\w+(?:\s*\([^()]*\))?\s+AS)\s",
    re.IGNORECASE,
)
_MAY_NAME: Final = re.compile(r"\bversion\b|@", re.IGNORECASE)
_CLAUSE: Final = ("FOR", "VERSION", "AS", "OF")
_BEFORE_TABLES: Final = frozenset({"FROM", "JOIN", ","})


def with_named_versions(statement: str) -> str:
    """Rewrite every `name FOR VERSION AS OF n` and `name@ref`; the name becomes an alias."""
    if _MAY_NAME.search(statement) is None:
        return statement
    if prefix := _PREFIX.match(statement):  # sqlglot makes one token of the text after it
        return prefix[0] + with_named_versions(statement[prefix.end() :])
    try:
        tokens = Postgres().tokenize(statement)
    except sqlglot.errors.SqlglotError as error:
        if _CLAUSE[1].lower() not in statement.lower():
            return statement  # an @ alone is a matter of the engine
        raise InvalidInput(f"sql: the statement cannot be read: {error}") from error
    pieces: list[str] = []
    done = 0
    for place in range(1, len(tokens)):
        name = tokens[place - 1]
        if _is_clause(tokens, place):
            last = tokens[place + len(_CLAUSE)]
            suffix, after = _version_of(last), place + len(_CLAUSE) + 1
            has_alias = _has_alias(tokens, after)
        elif _is_ref(tokens, place):
            last, suffix = tokens[place + 1], tokens[place + 1].text
            has_alias = _has_alias(tokens, place + 2) or not _is_read(tokens, place - 1)
        else:
            continue
        plain = name.text if _is_quoted(statement, name) else name.text.lower()
        quoted = plain.replace('"', '""')
        alias = "" if has_alias else f' AS "{quoted}"'
        pieces += [statement[done : name.start], f'"{quoted}@{suffix}"{alias}']
        done = last.end + 1
    return "".join([*pieces, statement[done:]])


def _version_of(token: Any) -> str:
    """What stands after the @ for a number or a text."""
    if _is_text(token):
        return str(token.text).replace('"', '""')
    if not token.text.isdigit():
        raise InvalidInput(
            f"FOR VERSION AS OF {token.text}: give the number of a version, as in "
            "FOR VERSION AS OF 12, or the name of a tag in quotes"
        )
    return f"v{int(token.text)}"


def _is_text(token: Any) -> bool:
    return token.token_type is sqlglot.TokenType.STRING


def _is_ref(tokens: Sequence[Any], place: int) -> bool:
    """Return whether an @ stands here between two names, without spaces."""
    if place + 1 >= len(tokens) or tokens[place].text != "@":
        return False
    name, at, ref = tokens[place - 1 : place + 2]
    joined = name.end + 1 == at.start and at.end + 1 == ref.start
    return joined and _is_name(name) and _is_name(ref)


def _is_read(tokens: Sequence[Any], place: int) -> bool:
    """Return whether the name that ends here is that of a table which a query reads."""
    while place >= 2 and tokens[place - 1].text == "." and _is_name(tokens[place - 2]):
        place -= 2
    return place > 0 and tokens[place - 1].text.upper() in _BEFORE_TABLES


def _is_clause(tokens: Sequence[Any], place: int) -> bool:
    if place + len(_CLAUSE) >= len(tokens):
        return False
    words = tuple(token.text.upper() for token in tokens[place : place + len(_CLAUSE)])
    return words == _CLAUSE and _is_name(tokens[place - 1])


def _is_name(token: Any) -> bool:
    return token.token_type in (sqlglot.TokenType.VAR, sqlglot.TokenType.IDENTIFIER)


def _is_quoted(statement: str, token: Any) -> bool:
    return statement[token.start] == '"'


def _has_alias(tokens: Sequence[Any], place: int) -> bool:
    if place >= len(tokens):
        return False
    return tokens[place].token_type is sqlglot.TokenType.ALIAS or _is_name(tokens[place])
