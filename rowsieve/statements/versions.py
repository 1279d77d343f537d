"""Time travel in SQL text: `t FOR VERSION AS OF 12` becomes the table name `"t@v12"`.

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
_MAY_NAME: Final = re.compile(r"\bversion\b", re.IGNORECASE)
_CLAUSE: Final = ("FOR", "VERSION", "AS", "OF")


def with_named_versions(statement: str) -> str:
    """Rewrite every `name FOR VERSION AS OF n`; the table keeps its name as an alias."""
    if _MAY_NAME.search(statement) is None:
        return statement
    if prefix := _PREFIX.match(statement):  # sqlglot makes one token of the text after it
        return prefix[0] + with_named_versions(statement[prefix.end() :])
    try:
        tokens = Postgres().tokenize(statement)
    except sqlglot.errors.SqlglotError as error:
        raise InvalidInput(f"the statement cannot be read: {error}") from error
    pieces: list[str] = []
    done = 0
    for place in range(1, len(tokens) - len(_CLAUSE)):
        if not _is_clause(tokens, place):
            continue
        name, number = tokens[place - 1], tokens[place + len(_CLAUSE)]
        if not number.text.isdigit():
            raise InvalidInput(
                f"FOR VERSION AS OF {number.text}: give the number of a version, as in "
                "FOR VERSION AS OF 12"
            )
        plain = name.text if _is_quoted(statement, name) else name.text.lower()
        quoted = plain.replace('"', '""')
        alias = "" if _has_alias(tokens, place + len(_CLAUSE) + 1) else f' AS "{quoted}"'
        pieces += [statement[done : name.start], f'"{quoted}@v{int(number.text)}"{alias}']
        done = number.end + 1
    return "".join([*pieces, statement[done:]])


def _is_clause(tokens: Sequence[Any], place: int) -> bool:
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
