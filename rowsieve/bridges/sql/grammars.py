"""sqlglot's grammars, changed so that `<=>` is a comparison like `=` and `<`.

sqlglot parses `<=>` to the node of IS NOT DISTINCT FROM, and adds parentheses around the rest.
Engines group it with their comparisons: `a <=> b LIKE 'x'` is `(a <=> b) LIKE 'x'` in Spark. With a
node of its own there is no wrong grouping, and the reader rejects an adjacent condition without
parentheses, as it does for `=`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.tokenizer_core import TokenType


class SafeEquality(exp.EQ):
    """`a <=> b`: equal, or both NULL."""


def parser_of(grammar: str) -> Any:
    """Return a new parser for the grammar with this name."""
    return _parser_class(grammar)(dialect=grammar)


@cache
def _parser_class(grammar: str) -> Any:
    theirs: Any = Grammar.get_or_raise(grammar).parser_class
    comparisons = {**theirs.EQUALITY, TokenType.NULLSAFE_EQ: SafeEquality}
    return type(f"{theirs.__name__}WithSafeEquality", (theirs,), {"EQUALITY": comparisons})
