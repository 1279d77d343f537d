"""`ALTER TABLE name actions`, cut into the name and the actions; `alterations_of` reads these."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.errors import InvalidInput
from rowsieve.statements.tokens import Target, tokens_of


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
    target = Target(written, parts, start=start)
    return AlterTable(target, tokens.piece(tokens.at, tokens.count), tokens.start)
