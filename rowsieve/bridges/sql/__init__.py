"""SQL text and predicates, in the dialects of `dialects.DIALECTS`.

sqlglot parses text; our own table writes it. Each is imported at first use. Written text reads back
as the same tree.
"""

from __future__ import annotations

from typing import Final

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.sql.plain_shapes import read_plain
from rowsieve.predicate.ir import Operand, Predicate
from rowsieve.predicate.text_cache import cached_by_text

__all__ = ["parse_expression", "parse_predicate", "to_sql"]

SHORT: Final = 1_000  # characters: results for texts up to it are cached


def parse_predicate(text: str, dialect: str = "postgres") -> Predicate:
    """Read a condition such as `delay > 5 AND carrier IN ('AA', 'UA')`.

    Names are kept as written and strings have no type yet; `bind` resolves both. Invalid text is
    `InvalidPredicate`, with the offset in it if known. Results for short texts are cached: trees
    are frozen, and do not depend on a schema.
    """
    return (_read_once if len(text) <= SHORT else _read)(text, dialect)


def _read(text: str, dialect: str) -> Predicate:
    return read_plain(text, dialect, _parse)


def _parse(text: str, dialect: str) -> Predicate:
    from rowsieve.bridges.sql.reading import parse  # noqa: PLC0415 - sqlglot takes 0.1 s to import

    return parse.predicate(text, dialect)


_read_once = cached_by_text(_read)


def parse_expression(text: str, dialect: str = "postgres") -> Operand:
    """Read a value such as `delay + 5`; a condition becomes a boolean value."""
    from rowsieve.bridges.sql.reading import parse  # noqa: PLC0415 - sqlglot takes 0.1 s to import

    return parse.expression(text, dialect)


def to_sql(node: Predicate | Operand, dialect: str = "postgres") -> str:
    """Write a tree as text that reads back as the same tree.

    `UnsupportedOperation` if the dialect has no text with the same meaning.
    """
    from rowsieve.bridges.sql.writing import render  # noqa: PLC0415 - it imports sqlglot, too

    return render.to_sql(node, dialect_named(dialect))
