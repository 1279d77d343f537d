"""The walk that bridges share; an engine's bridge supplies its leaves alone.

`TreeReader` turns an engine's nodes into our tree, `TreeWriter` ours into an engine's expressions:
dispatch over nodes, a limit on depth, chains and balanced joins, types. What a bridge leaves out is
collected by `rowsieve.bridges.conditions`.
"""

from __future__ import annotations

from rowsieve.bridges.base.reader import TreeReader, as_operand, as_predicate, flattened, supported
from rowsieve.bridges.base.writer import (
    OPERATORS,
    OperatorWriter,
    TreeWriter,
    balanced,
    part_of_text,
    path_of,
)

__all__ = [
    "OPERATORS",
    "OperatorWriter",
    "TreeReader",
    "TreeWriter",
    "as_operand",
    "as_predicate",
    "balanced",
    "flattened",
    "part_of_text",
    "path_of",
    "supported",
]
