"""What the registry says of a function: one frozen row each.

Soundness rests on the claims of a row. `direction`: with the other arguments fixed, the function
is monotone in this one over every range on which it is defined at both ends, and it is defined
between them. `can_fail`: false only if no arguments make it fail under any semantics. `nulls`: when
the result is NULL. `bounds`: where directions do not hold, a rule from the ranges of the arguments
to the range of the result. A row that claims nothing may give anything, NULL or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

from rowsieve.predicate.abstract import AbstractValue
from rowsieve.predicate.arrays import Computed, Mask
from rowsieve.predicate.ir import PhysicalValue
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import LogicalType


class Direction(Enum):
    """How a function moves with one argument while the others stand still."""

    NONE = "none"
    INCREASING = "increasing"  # never falls
    DECREASING = "decreasing"  # never rises
    EITHER = "either"  # one of the two; which, depends on the other arguments


class NullRule(Enum):
    """When the result is NULL."""

    STRICT = "strict"  # an argument is NULL, or it failed where `Semantics` says NULL
    PARTIAL = "partial"  # an argument is NULL; besides that at any time
    ALL = "all"  # every argument is NULL; the result is one of the arguments
    FIRST = "first"  # possibly at any time; otherwise the result is the first argument
    NEVER = "never"  # not even then
    ANY = "any"  # nothing is known


@dataclass(frozen=True, slots=True)
class Argument:
    """What is known of an argument when a call is resolved.

    `type` is None for a bare NULL and for a quoted string; `constant` is the value of a literal.
    """

    type: LogicalType | None
    is_constant: bool = False
    constant: PhysicalValue = None


@dataclass(frozen=True, slots=True)
class Signature:
    """The types a call works on; `option` is the constant it is specialised by, like a unit."""

    arguments: tuple[LogicalType, ...]
    result: LogicalType
    option: str = ""


@dataclass(frozen=True, slots=True)
class Range:
    """Where the results lie whose arguments are all present; a NULL bound is no bound.

    `nan`: where NaN may come out; `safe`: where none of them can fail. None is nowhere.
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
    """A function: `resolve` gives None where no overload fits; `evaluate` is vectorised."""

    name: str
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


def never_fails(_: Signature) -> bool:
    """For rows that are defined on all their arguments."""
    return False
