"""Protocols of the reader and the writer of SQL for the handlers of single nodes."""

from __future__ import annotations

from typing import Any, Protocol

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.bridges.sql.reading.source_text import SqlSource
from rowsieve.predicate.ir import Node, Operand, Predicate
from rowsieve.types.logical import LogicalType


class Reads(Protocol):
    """Reads the nodes of one text; implemented by `reading.read_nodes.Reader`."""

    source: SqlSource
    dialect: Dialect

    def predicate(self, node: Any) -> Predicate:
        """Read the node as a condition."""

    def operand(self, node: Any) -> Operand:
        """Read the node as a value; a condition becomes a boolean value."""

    def side(self, node: Any) -> Operand:
        """Read an operand of an operator: a condition must be in parentheses."""

    def compared(self, node: Any) -> Operand:
        """Read a side of a comparison, a bound or a member of a list."""

    def cast(
        self, node: Any, operand: Operand, type_: LogicalType, *, try_: bool = False
    ) -> Operand:
        """Build a cast; of a quoted constant or NULL, the constant of that type."""

    def only(self, node: Any, *arguments: str, **flags: Any) -> None:
        """Raise for a node with other arguments, or with flags of other values."""


class Writes(Protocol):
    """Writes one tree in one dialect; implemented by `writing.render.Writer`."""

    dialect: Dialect

    def text(self, node: Node) -> str:
        """Return the text of a whole tree."""

    def atom(self, node: Node) -> str:
        """Return the node's text, in parentheses unless it is atomic."""
