"""`ALTER TABLE name actions`, cut into the name and the actions; `alterations_of` reads these."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.errors import InvalidInput
from rowsieve.statements.tokens import StatementTokens, Target, tokens_of


@dataclass(frozen=True, slots=True)
class AlterTable:
    """`ALTER TABLE [IF EXISTS] name actions`; `start` is the place of the actions in the text."""

    target: Target
    actions: str
    start: int = field(default=0, compare=False)


def read_alter(text: str, dialect: Dialect) -> AlterTable | None:
    """Read a statement; None unless it is a single one and names a table."""
    tokens = tokens_of(text, dialect=dialect)
    if tokens is None or not tokens.take("ALTER", "TABLE"):
        return None
    tokens.take("IF", "EXISTS")
    start = tokens.start
    try:
        written, parts = tokens.path()
    except InvalidInput:
        return None
    target, place = Target(written, parts, start=start), tokens.start
    return AlterTable(target, _actions(tokens), place)


def _actions(tokens: StatementTokens) -> str:
    """The text of the actions; Spark's `ADD COLUMNS (a, b)` as one action for each column."""
    start = tokens.at
    adds = tokens.take("ADD", "COLUMNS") or tokens.take("ADD", "COLUMN")
    if adds and tokens.next() == "(":
        tokens.bracket()
        stop, tokens.at = tokens.at - 1, tokens.opened + 1
        columns = [tokens.piece(*each) for each in tokens.terms(stop)]
        if stop + 1 == tokens.count and all(columns):
            return ", ".join(f"ADD COLUMN {column}" for column in columns)
    return tokens.piece(start, tokens.count)
