"""The row of a construct that an engine interprets differently from our semantics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto

from rowsieve.predicate import ir


class Direction(Flag):
    """Where a difference matters."""

    ANSWERS = auto()  # the engine's text is read, even if only we evaluate it (`where=`)
    READS = auto()  # translated from the engine
    IN_CONJUNCTION = auto()  # translated from the engine together with other conditions
    WRITES = auto()  # written for the engine


@dataclass(frozen=True, slots=True)
class Difference:
    """A construct of a bound tree that the engine interprets differently.

    `finds` tests one node. `reason` follows the engine's name in a refusal, then `remedy`:
    what to write instead. `example`: a condition with it, over the columns of the tests.
    """

    engine: str
    direction: Direction
    finds: Callable[[ir.Node], bool]
    reason: str
    remedy: str = ""
    example: str = ""

    @property
    def text(self) -> str:
        """Why a condition with it is refused."""
        return f"{self.engine} {self.reason}" + (f"; {self.remedy}" if self.remedy else "")


def calls(*names: str) -> Callable[[ir.Node], bool]:
    """Return a test that finds calls of these functions."""
    return lambda node: isinstance(node, ir.Call) and node.function in names
