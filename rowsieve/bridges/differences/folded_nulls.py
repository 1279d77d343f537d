"""What DataFusion's optimiser computes without looking for NULL: `x ^ x`, and `s ~ '.*'`.

`x ^ x` becomes 0 and `x ^ y ^ x` becomes `y`, also where `x` is NULL. `s ~ '.*'` becomes
`s IS NOT NULL`, which a filter keeps alike, but not its negation. Its function `regexp_like`, which
the tree does not tell from the operator, is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rowsieve.bridges.differences.engine_difference import Difference, Direction
from rowsieve.predicate import ir

_XOR: Final = "bit_xor"
_REGEX: Final = "regex_matches"
_ANY_TEXT: Final = (".*", "(?i).*")
_ALWAYS: Final = Direction.ANSWERS | Direction.READS | Direction.WRITES


def _cancels(node: ir.Call) -> bool:
    """Find an operand that a chain of exclusive ORs has twice."""
    leaves = [each for each in _leaves(node) if not isinstance(each, ir.Literal)]
    return len(set(leaves)) < len(leaves)


def _leaves(operand: ir.Operand) -> Iterator[ir.Operand]:
    if isinstance(operand, ir.Call) and operand.function == _XOR:
        for each in operand.arguments:
            yield from _leaves(each)
    else:
        yield operand


def _tells_null_of_any_text(node: ir.Not | ir.Condition) -> bool:
    """Find a pattern that all text matches where FALSE of a filter is another answer than NULL."""
    inner = node.term if isinstance(node, ir.Not) else node.predicate
    return any(
        isinstance(each, ir.Call)
        and each.function == _REGEX
        and isinstance(each.arguments[1], ir.Literal)
        and each.arguments[1].value in _ANY_TEXT
        for each in ir.walk(inner)
    )


ROWS = (
    Difference(
        *("datafusion", _ALWAYS, frozenset({_XOR}), _cancels),
        "drops an operand that ^ has twice, also if it is NULL",
        "write it once, or IS NULL",
        "i64 # i64 = 0",
    ),
    Difference(
        *("datafusion", _ALWAYS, frozenset({ir.Not, ir.Condition}), _tells_null_of_any_text),
        "reads ~ '.*' as IS NOT NULL, which is FALSE for NULL",
        "write IS NULL",
    ),
)
