"""The tree walk that bridges share; a bridge supplies the leaves of its engine.

`TreeReader` converts an engine's nodes to our tree, `TreeWriter` our tree to an engine's
expressions: dispatch over nodes, a depth limit, chains and balanced joins, types.
`rowsieve.bridges.conditions` collects the conditions that a bridge does not support.
"""

from __future__ import annotations

from rowsieve.bridges.base.depth import Depth
from rowsieve.bridges.base.reader import TreeReader, as_operand, as_predicate, supported
from rowsieve.bridges.base.writer import (
    OperatorWriter,
    TreeWriter,
    as_text_test,
    path_of,
)

__all__ = [
    "Depth",
    "OperatorWriter",
    "TreeReader",
    "TreeWriter",
    "as_operand",
    "as_predicate",
    "as_text_test",
    "path_of",
    "supported",
]
