"""The operations that actors draw from. A new one is a function with `@operation` above it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rowsieve import Table
from rowsieve.errors import RowsieveError
from tests.simulation.model import Effect
from tests.simulation.scheduler import Scheduler

Run = Callable[[], Any]
KEYS: Final = range(10)
FIRST_APPENDED: Final = 1_000


@dataclass(frozen=True)
class Call:
    """One call that an actor is about to make.

    `effect`: what its commit does to the rows; None if it never changes them. `refusals`: errors
    that are right at some moments, and mean that nothing was committed. `acknowledges`: whether its
    result tells which version has the mark of the call.
    """

    run: Run
    effect: Effect | None = None
    refusals: tuple[type[RowsieveError], ...] = ()
    has_token: bool = False
    acknowledges: bool = True


@dataclass
class Actor:
    """A handle of a process, and what it needs to draw its calls."""

    name: str
    table: Table
    seed: str
    keyed: bool
    scheduler: Scheduler
    seen: Observations
    fresh_keys: Callable[[str, int], range]
    tokens: float = 0.0
    number: int = 0
    """The number of the call that is being drawn."""
    draws: random.Random = field(default_factory=random.Random)
    """The choices of that call: a successor of the actor makes the same ones."""

    def begin(self, number: int) -> None:
        """Begin to draw the call of a number."""
        self.number, self.draws = number, random.Random(f"{self.seed} {self.name} {number}")

    @property
    def mark(self) -> str:
        """The name of the call, in the metadata of its commit."""
        return f"{self.name}.{self.number}"

    @property
    def notes(self) -> dict[str, Any]:
        """The arguments by which the commit is found again."""
        return {"metadata": {"mark": self.mark}, "token": self.token}

    @property
    def token(self) -> tuple[str, int] | None:
        """A token, for some calls; the same one each time for the same call."""
        is_drawn = random.Random(self.mark).random() < self.tokens
        return (self.name, self.number) if is_drawn else None

    @property
    def keys(self) -> range:
        """Keys worth asking for."""
        return KEYS if self.keyed else range(FIRST_APPENDED - 3, FIRST_APPENDED + 12)

    def pairs(self, most: int) -> list[tuple[int, int | None]]:
        """Draw rows of k and v: of any keys in a keyed table, of fresh ones in the other."""
        count = self.draws.randint(1, most)
        keys = (
            sorted(self.draws.sample(KEYS, count))
            if self.keyed
            else list(self.fresh_keys(self.mark, count))
        )
        return [(key, self.draws.randrange(20)) for key in keys]

    def earlier(self, most: int) -> int:
        """Draw a version before the newest known."""
        return max(0, self.table.version - self.draws.randrange(most))


@dataclass
class Observations:
    """What readers saw, for the judge."""

    reads: list[tuple[str, int, Any, Any]] = field(default_factory=list)
    """Mark, version, condition, and the rows or their count."""
    expired: list[tuple[str, int]] = field(default_factory=list)
    """Mark, and the version that was said to be gone."""
    feeds: list[tuple[str, int, int, list[dict[str, Any]]]] = field(default_factory=list)
    branch_writes: list[tuple[str, str, int]] = field(default_factory=list)
    """Mark, the URI of the branch, and its version."""
    ref_reads: list[tuple[str, str, int, list[dict[str, Any]]]] = field(default_factory=list)
    """Mark, the URI of a branch or tag, its version, and the rows."""
    problems: list[str] = field(default_factory=list)


Draw = Callable[[Actor], Call | None]


@dataclass(frozen=True)
class Operation:
    """A kind of call; `weight` of `keyed` and of other tables, 0 where there is none."""

    name: str
    draw: Draw
    keyed: int
    unkeyed: int
    family: str

    def weight(self, *, keyed: bool) -> int:
        """Return how often it is drawn, relative to others."""
        return self.keyed if keyed else self.unkeyed


OPERATIONS: dict[str, Operation] = {}


def operation(family: str, *, keyed: int = 0, unkeyed: int = 0) -> Callable[[Draw], Draw]:
    """Register a function that draws a call of an actor; None if it has none now."""

    def register(draw: Draw) -> Draw:
        name = draw.__name__
        assert name not in OPERATIONS, f"two operations are called {name}"
        OPERATIONS[name] = Operation(name, draw, keyed, unkeyed, family)
        return draw

    return register


def operations_of(*, keyed: bool) -> Mapping[str, Operation]:
    """Return the operations of a kind of table."""
    return {name: each for name, each in OPERATIONS.items() if each.weight(keyed=keyed)}
