"""The functions that an unknown name in text of a dialect may mean, for messages.

Nothing lists the functions that a dialect's reader knows: the grammar knows many more, and several
tables read those of one dialect. So the names that are spelt alike are read, and kept if they mean
a function. Soundness: only messages use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from sqlglot.dialects.dialect import Dialect as Grammar

from rowsieve.bridges.functions import TABLE
from rowsieve.bridges.sql import parse_expression
from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.bridges.sql.reading.calls_by_dialect import NAMES
from rowsieve.errors import RowsieveError
from rowsieve.predicate import ir
from rowsieve.predicate.functions.registry import FUNCTIONS

_SPELT_ALIKE: Final = 12  # names that are read
_ARGUMENTS: Final = ("a", "a, b", "a, 1", "a, 'b'", "a, b, c", "a, 1, 1", "a, 'b', 'c'")


def similar_names(name: str, dialect: Dialect) -> list[str]:
    """Return the names of functions of the dialect that are spelt like this one, nearest first."""
    near = get_close_matches(name, sorted({*_spelt_in(dialect)}), n=_SPELT_ALIKE)
    return [each for each in near if _is_read(each, dialect)]


def _spelt_in(dialect: Dialect) -> Iterator[str]:
    """All names that the tables and the grammar know, also those that are not read."""
    yield from NAMES[dialect.name]
    yield from map(str.lower, Grammar.get_or_raise(dialect.grammar).parser_class.FUNCTIONS)
    for row in TABLE.values():
        if (spelling := row.spelling(dialect.name)) is not None:
            for text in (*spelling.templates, *spelling.aliases):
                if called := re.match(r"(\w+)\(", text):
                    yield called[1].lower()


def _is_read(name: str, dialect: Dialect) -> bool:
    """Whether a call with some arguments is read as functions that exist."""
    for arguments in _ARGUMENTS:
        try:
            tree = parse_expression(f"{name}({arguments})", dialect.name)
        except RowsieveError:
            continue
        calls = {node.function for node in ir.walk(tree) if isinstance(node, ir.Call)}
        if calls and calls <= FUNCTIONS.keys():
            return True
    return False
