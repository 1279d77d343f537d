"""The row of a construct that an engine interprets differently from our semantics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, TypeAlias

from rowsieve.predicate import ir

Kind: TypeAlias = type[Any] | str
"""The class of a node, or the name of the function of a call."""


class Direction(Flag):
    """Where a difference matters."""

    ANSWERS = auto()  # the engine's text is read, even if only we evaluate it (`where=`)
    READS = auto()  # translated from the engine
    IN_CONJUNCTION = auto()  # translated from the engine together with other conditions
    WRITES = auto()  # written for the engine
    TRANSLATES = auto()  # written for the engine from another engine's condition


@dataclass(frozen=True, slots=True)
class Difference:
    """A construct of a bound tree that the engine interprets differently.

    `on` has the kinds of nodes that may be the construct: classes of nodes, and of calls the names
    of functions. `finds` tests one such node. `reason` follows the engine's name in a refusal,
    then `remedy`: what to write instead. `example`: a condition with it, over the columns of the
    tests.
    """

    engine: str
    direction: Direction
    on: frozenset[Kind]
    finds: Callable[[Any], bool]
    reason: str
    remedy: str = ""
    example: str = ""

    @property
    def text(self) -> str:
        """Why a condition with it is refused."""
        return f"{self.engine} {self.reason}" + (f"; {self.remedy}" if self.remedy else "")


def kind_of(node: ir.Node) -> Kind:
    """Return the function of a call, the class of any other node."""
    return node.function if isinstance(node, ir.Call) else type(node)


def always(_node: ir.Node) -> bool:
    """Find every node of the kinds of a row."""
    return True
