"""`Function`: one frozen row of the registry per function.

Soundness depends on the claims of a row. `direction`: with the other arguments fixed, the function
is monotone in this argument over every range that it is defined at both ends of, and it is defined
everywhere in that range. `can_fail`: false only if it never fails, under any semantics. `nulls`:
when the result is NULL. `bounds`: a rule from the ranges of the arguments to the range of the
result, for functions that are not monotone. `at_infinity`: the result for an infinite day or time;
the other claims do not hold there. Without a claim, the result may be anything, NULL or an
error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

from rowsieve.predicate.arrays import Computed, Mask
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.ir import PhysicalValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import LogicalType


class Direction(Enum):
    """How a function changes with one argument while the others are fixed."""

    NONE = "none"
    INCREASING = "increasing"  # never falls
    DECREASING = "decreasing"  # never rises
    EITHER = "either"  # increasing or decreasing, by the other arguments


class NullRule(Enum):
    """When the result is NULL."""

    STRICT = "strict"  # if an argument is NULL, or on a failure where `Semantics` says NULL
    PARTIAL = "partial"  # if an argument is NULL, and possibly otherwise
    ALL = "all"  # if all arguments are NULL; the result is one of the arguments
    FIRST = "first"  # possibly always; otherwise the result is the first argument
    NEVER = "never"  # never, whatever the arguments
    ANY = "any"  # unknown


class TimeUse(Enum):
    """The part of a time that a function uses; it decides how zones and nanoseconds matter."""

    FIELDS = "fields"  # date and time of day on the session's clock
    START = "start"  # the start of a unit of the session's clock
    BIN = "bin"  # the start of a bin of a fixed length
    MOVED = "moved"  # the time itself, moved by an interval
    ZONED = "zoned"  # likewise, in a zone that is an argument
    SECONDS = "seconds"  # the seconds since 1970


class AtInfinity(Enum):
    """The result for an infinite day or time, in engines that have them."""

    NULL = "null"
    SAME = "same"  # the infinite argument itself
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class Times:
    """The arguments of a function that are times and may have nanoseconds, by position."""

    use: TimeUse
    places: frozenset[int]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call that is being resolved.

    `type` is None for a bare NULL and for a quoted string; `constant` is the value of a literal.
    """

    type: LogicalType | None
    is_constant: bool = False
    constant: PhysicalValue = None


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of a call; `option` is the constant that selects a variant, such as a unit."""

    arguments: tuple[LogicalType, ...]
    result: LogicalType
    option: str = ""


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of the results whose arguments are all non-NULL; a NULL bound is unbounded.

    `nan`: where NaN is possible; `safe`: where no result can fail. None means nowhere.
    """

    lower: pa.Array
    upper: pa.Array
    nan: Mask | None = None
    safe: Mask | None = None


Resolver: TypeAlias = Callable[[Sequence[Argument]], Signature | None]
Evaluator: TypeAlias = Callable[[Sequence[pa.Array], Signature, Semantics], Computed]
BoundsRule: TypeAlias = Callable[[Sequence[AbstractValue], Signature, Semantics], Range | None]


@dataclass(frozen=True, slots=True)
class Function:
    """A function: `resolve` returns None if no overload fits; `evaluate` is vectorised.

    `usage` is a call of it, such as `last_day(date or timestamp)`, which begins with its name.
    """

    usage: str
    resolve: Resolver
    evaluate: Evaluator
    direction: Callable[[Signature], tuple[Direction, ...]] = lambda signature: tuple(
        Direction.NONE for _ in signature.arguments
    )
    can_fail: Callable[[Signature], bool] = lambda _: True
    nulls: NullRule = NullRule.ANY
    lazy: bool = False
    bounds: BoundsRule | None = None
    times: Times | None = None
    at_infinity: AtInfinity | None = None
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.usage.partition("(")[0])


def never_fails(_: Signature) -> bool:
    """For functions that are defined on all arguments."""
    return False


def times_at(use: TimeUse, *places: int) -> Times:
    """Return the description of times at these positions."""
    return Times(use, frozenset(places))
