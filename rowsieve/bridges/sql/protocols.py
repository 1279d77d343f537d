"""Protocols of the reader and the writer of SQL, as the handlers of single nodes use them."""

from __future__ import annotations

from typing import Any, Protocol

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.bridges.sql.source_text import Source
from rowsieve.predicate.ir import Node, Operand, Predicate
from rowsieve.types.logical import LogicalType


class Reads(Protocol):
    """Reads the nodes of one text; `rowsieve.bridges.sql.nodes.Reader` is it."""

    source: Source
    dialect: Dialect

    def predicate(self, node: Any) -> Predicate:
        """The node as a condition."""

    def operand(self, node: Any) -> Operand:
        """The node as a value; a condition becomes a boolean one."""

    def beside(self, node: Any) -> Operand:
        """An operand of an operator: a condition must stand in parentheses there."""

    def cast(
        self, node: Any, operand: Operand, type_: LogicalType, *, try_: bool = False
    ) -> Operand:
        """A cast; of a quoted constant or NULL it is the constant of that type."""

    def only(self, node: Any, *arguments: str, **flags: Any) -> None:
        """Refuse a node that carries anything but these arguments, or flags of these values."""


class Writes(Protocol):
    """Writes one tree in one dialect; `rowsieve.bridges.sql.render.Writer` is it."""

    dialect: Dialect

    def text(self, node: Node) -> str:
        """The text of a whole tree."""

    def atom(self, node: Node) -> str:
        """The node's text, in parentheses unless it is atomic."""
