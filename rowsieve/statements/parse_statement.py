"""Reads one text as one statement: the only place that recognises what a statement is.

A leading comment is skipped, also in front of a WITH. The first word decides which reader is asked.
What no reader knows is the engine's. Soundness: a statement that changes a table of ours, or that
keeps a query over one, is never taken for another: these are recognised by tokens, not by patterns
that a literal or a comment could match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.errors import InvalidInput
from rowsieve.statements.alter import AlterTable, read_alter
from rowsieve.statements.calls import ENDS, CallStatement, read_call_statement
from rowsieve.statements.catalog_names import NameStatement, read_name_statement, schema_named
from rowsieve.statements.comments import after_comments, blanked
from rowsieve.statements.leading_with import with_inside
from rowsieve.statements.queries import (
    Deallocate,
    Execute,
    Other,
    Query,
    QueryDefinition,
    Setting,
    prepared_name,
)
from rowsieve.statements.query_words import may_create_view
from rowsieve.statements.read_change import Change, as_change
from rowsieve.statements.refused import Refused, refused
from rowsieve.statements.tokens import StatementTokens, tokens_of

_LONGEST: Final = 1_000_000  # characters of a call
_OPENS: Final = re.compile(r"\s*+\(")
_WORD: Final = re.compile(r"\s*+([A-Za-z]++)(?!\w)")
_IN_BRACKETS: Final = frozenset({"SELECT", "WITH", "VALUES", "EXPLAIN"})
_GAP: Final = r"(?:\s|--[^\n]*+(?:\n|$)|/\*.*?\*/)"
_EXPLAIN: Final = re.compile(
    rf"EXPLAIN(?:{_GAP}++(?:ANALY[SZ]E|VERBOSE|FORMAT{_GAP}++\w+)\b)*+", re.IGNORECASE | re.DOTALL
)
_ANALYSES: Final = re.compile(r"\banaly[sz]e\b", re.IGNORECASE)
_CALLS: Final = frozenset({"CALL", "EXPLAIN", "SHOW", "DESCRIBE", "DESC", "ALTER"})
_CHANGES: Final = frozenset(
    {"INSERT", "REPLACE", "DELETE", "UPDATE", "MERGE", "TRUNCATE", "CREATE", "DROP"}
)


@dataclass(frozen=True, slots=True)
class ExplainedChange:
    """`EXPLAIN ANALYZE` of a statement that changes a table, which would have to run."""

    change: Change


Statement: TypeAlias = (
    CallStatement
    | NameStatement
    | AlterTable
    | Change
    | ExplainedChange
    | QueryDefinition
    | Execute
    | Deallocate
    | Setting
    | Query
    | Refused
    | Other
)


def parse(
    text: str, dialect: str = "postgres", *, names: bool = False, folds: bool = True
) -> Statement:
    """Read a statement; InvalidInput for one of ours that cannot be read.

    `dialect` decides how texts and names of a call are quoted. `names`: statements on the names of
    a catalog are read, too, which an engine otherwise runs itself. `folds`: the engine folds names
    without quotes to lower case.
    """
    verb, text = split_verb(text)
    if text.startswith("("):
        if verb in _CHANGES:
            raise InvalidInput(f"sql: {verb} cannot stand in brackets; write it without them")
        return Query() if verb in _IN_BRACKETS else Other(verb)
    if verb in _CALLS:
        if len(text) > _LONGEST and verb in ("CALL", "ALTER"):
            raise InvalidInput(
                f"the statement has {len(text):,} characters; the limit is {_LONGEST:,}; shorten it"
            )
        is_plain = verb != "CALL" and not dialect_named(dialect).backslash_strings
        shown = blanked(text) if is_plain else text
        if (call := read_call_statement(shown.strip(), dialect)) is not None:
            return call
    if names and (name := read_name_statement(blanked(text).rstrip(ENDS))) is not None:
        return name
    if verb in ("CREATE", "DROP") and (schema := schema_named(blanked(text))):
        return Other(verb, schema)
    if (refusal := refused(verb, text)) is not None:
        return refusal
    match verb:
        case "SELECT" | "VALUES":
            return Query()
        case "EXPLAIN":
            return _explained(text)
        case "ALTER":
            return read_alter(text, dialect_named(dialect)) or Other(verb)
        case "SET" | "RESET":
            return Setting()
        case "WITH":
            return _change(with_inside(text))
        case "EXECUTE" | "DEALLOCATE" | "PREPARE":
            return _prepared(verb, tokens_of(text, folds=folds))
        case _ if verb in _CHANGES:
            return _kept_view(text, folds=folds) if verb == "CREATE" else _change(text)
    return Other(verb)


def split_verb(text: str) -> tuple[str, str]:
    """Return the first word in upper case, and the text without what precedes it.

    That is comments and semicolons. Brackets may open before the word of a query; then the text
    begins with them.
    """
    place = first = after_comments(text, 0)
    while text.startswith(";", first):
        place = first = after_comments(text, first + 1)
    while opens := _OPENS.match(text, place):
        place = after_comments(text, opens.end())
    word = _WORD.match(text, place)
    return ("" if word is None else word[1].upper()), text[first:].lstrip()


def _explained(text: str) -> Statement:
    explain = _EXPLAIN.match(text)
    words = "" if explain is None else explain[0]
    refusal = refused(*split_verb(text[len(words) :]))
    if refusal is not None and not refusal.is_of_transactions:
        return refusal
    if _ANALYSES.search(blanked(words)) is None:
        return Query(explains=True, runs=False)
    explained = explained_change(text)
    return Query(explains=True) if explained is None else ExplainedChange(explained[1])


def explained_change(text: str) -> tuple[str, Change] | None:
    """The words of EXPLAIN, and the change after them; None if it explains another statement."""
    _, explain = split_verb(text)
    if (words := _EXPLAIN.match(explain)) is None:
        return None
    verb, inner = split_verb(explain[words.end() :])
    change = _change(with_inside(inner)) if verb in {*_CHANGES, "WITH"} else None
    return (words[0], change) if isinstance(change, Change) else None


def _change(text: str) -> Change | Query | Other:
    """Read a statement that may change a table; a query if it begins with WITH."""
    verb, text = split_verb(text)
    if verb not in _CHANGES:
        return Query()
    tokens = tokens_of(text)
    change = None if tokens is None else as_change(text, tokens)
    return Other(verb) if change is None else change


def _kept_view(text: str, *, folds: bool) -> Statement:
    """Read a CREATE, which may be one of a view."""
    tokens = tokens_of(text, folds=folds)
    if tokens is None:
        return QueryDefinition(is_view=True) if may_create_view(text) else Other("CREATE")
    tokens.take("CREATE")
    replaces = tokens.take("OR", "REPLACE")
    _ = tokens.take("TEMP") or tokens.take("TEMPORARY")
    if tokens.take("VIEW"):
        return QueryDefinition(is_view=True, replaces=replaces, tokens=tokens)
    return _change(text)


def _prepared(verb: str, tokens: StatementTokens | None) -> Statement:
    if verb == "PREPARE":
        return QueryDefinition(is_view=False, tokens=tokens)
    if tokens is None:
        return Other(verb)
    tokens.take(verb)
    if verb == "DEALLOCATE":
        tokens.take("PREPARE")
    try:
        name = prepared_name(tokens)
    except InvalidInput:
        return Other(verb)
    return Execute(name) if verb == "EXECUTE" else Deallocate(name)
