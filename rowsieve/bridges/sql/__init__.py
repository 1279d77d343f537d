"""SQL text to predicates and back, in the dialects of `dialects.DIALECTS`.

Reading goes through sqlglot, writing is our own table; each is imported at its first use. Text that
is written reads back as the same tree.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.predicate.ir import Operand, Predicate

__all__ = ["parse_expression", "parse_predicate", "to_sql"]

_SHORT: Final = 1_000  # characters


def parse_predicate(text: str, dialect: str = "postgres") -> Predicate:
    """Read a condition such as `delay > 5 AND carrier IN ('AA', 'UA')`.

    Names are kept as written and strings have no type yet; `bind` resolves both. Bad text is
    `InvalidPredicate`, with the offset in it where that is known. Short texts are read once: trees
    are frozen, and mean what they say whatever the schema.
    """
    return (_read_once if len(text) <= _SHORT else _read)(text, dialect)


def _read(text: str, dialect: str) -> Predicate:
    from rowsieve.bridges.sql import parse  # noqa: PLC0415 - sqlglot takes 0.1 s to import

    return parse.predicate(text, dialect)


_read_once = lru_cache(maxsize=256)(_read)


def parse_expression(text: str, dialect: str = "postgres") -> Operand:
    """Read a value such as `delay + 5`; a condition becomes a boolean value."""
    from rowsieve.bridges.sql import parse  # noqa: PLC0415 - sqlglot takes 0.1 s to import

    return parse.expression(text, dialect)


def to_sql(node: Predicate | Operand, dialect: str = "postgres") -> str:
    """Write a tree as text that reads back as the same tree.

    What the dialect cannot say with the same meaning is `UnsupportedOperation`.
    """
    from rowsieve.bridges.sql import render  # noqa: PLC0415 - it imports sqlglot, too

    return render.to_sql(node, dialect_named(dialect))
