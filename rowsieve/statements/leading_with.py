"""Moves a WITH in front of INSERT, UPDATE, DELETE or MERGE into the queries of the statement.

DataFusion plans no such statement. `WITH x AS (…) DELETE FROM t WHERE id IN (SELECT id FROM x)`
becomes `DELETE FROM t WHERE id IN (WITH x AS (…) SELECT id FROM x)`, and a source of MERGE,
`UPDATE … FROM` or `DELETE … USING` that is only a name becomes a query. Soundness: each query gets
the whole clause, so a name means the same in it; other statements stay as they are.
"""

from __future__ import annotations

from typing import Final

from rowsieve.statements.tokens import StatementTokens, quoted, tokens_of

_CHANGES: Final = ("INSERT", "UPDATE", "DELETE", "MERGE")
_BEFORE_SOURCE: Final = {"MERGE": "USING", "DELETE": "USING", "UPDATE": "FROM"}
_AFTER_SOURCE: Final = ("ON", "WHERE", "RETURNING", "")


def with_inside(text: str) -> str:
    """Return a statement that begins with WITH with it in front of each query, if it changes."""
    if (tokens := tokens_of(text)) is None or tokens.next() != "WITH":
        return text
    start = min(map(tokens.find, (*_CHANGES, "SELECT", "VALUES")))
    if start >= tokens.count or tokens.words[start] not in _CHANGES:
        return text
    if tokens.words[start - 1] != ")":  # the name of a query of the clause
        return text
    clause = tokens.piece(0, start)
    added = dict.fromkeys(_queries(tokens, start), clause)
    added |= _around_source(tokens, start, clause)
    pieces, at = [], start
    for place in sorted(added):
        pieces += [tokens.piece(at, place), added[place]]
        at = place
    return " ".join([*pieces, tokens.piece(at, tokens.count)])


def _queries(tokens: StatementTokens, start: int) -> list[int]:
    """The places of SELECT that begin a query in brackets, and the one that INSERT takes."""
    tokens.at = start
    select = tokens.find("SELECT")
    return [
        place
        for place in range(start, tokens.count)
        if tokens.words[place] == "SELECT" and (place == select or tokens.words[place - 1] == "(")
    ]


def _around_source(tokens: StatementTokens, start: int, clause: str) -> dict[int, str]:
    """What goes before and behind a source that is a name, by place."""
    tokens.at = start
    word = _BEFORE_SOURCE.get(tokens.words[start])
    places = [] if word is None else tokens.all(word)
    sources = (each + 1 for each in places if tokens.words[each - 1] != "DISTINCT")
    before = next(sources, tokens.count)
    if before >= tokens.count or tokens.words[before] == "(":
        return {}
    tokens.at = before
    _, parts = tokens.path()
    alias = f" AS {quoted(parts[-1])}" if tokens.next() in _AFTER_SOURCE else ""
    return {before: f"({clause} SELECT * FROM", tokens.at: f"){alias}"}
