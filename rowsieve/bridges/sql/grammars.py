"""sqlglot's grammars, with `<=>` as one more comparison beside `=` and `<`.

sqlglot gives `<=>` the node and the grouping of IS NOT DISTINCT FROM, and puts parentheses of its
own around what follows. Engines group it with their comparisons: `a <=> b LIKE 'x'` is
`(a <=> b) LIKE 'x'` in Spark. With a node of its own nothing is grouped here, and the reader
refuses a condition beside it without parentheses, as it does beside `=`.
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
    """A new parser of the grammar of that name."""
    return _parser_class(grammar)(dialect=grammar)


@cache
def _parser_class(grammar: str) -> Any:
    theirs: Any = Grammar.get_or_raise(grammar).parser_class
    comparisons = {**theirs.EQUALITY, TokenType.NULLSAFE_EQ: SafeEquality}
    return type(f"{theirs.__name__}WithSafeEquality", (theirs,), {"EQUALITY": comparisons})
