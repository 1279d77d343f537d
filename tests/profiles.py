"""The examples of a property: a sixteenth of its count in `make test`, twice it in deep runs.

`make test` repeats the same examples each time, so more of them cost time and find nothing new.
`ROWSIEVE_EXAMPLES=25 make test-deep` draws 25 times the count, for a machine that has the night.
Twice is what a run of two hours can finish: one that nobody finishes proves nothing. Counts that
we promise, such as 200 rounds of two writers, do not depend on the factor: they are named where
they are tested, and `examples(count, promised=…)` holds a property to one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings

DEEP_FACTOR = int(os.environ.get("ROWSIEVE_EXAMPLES", "2"))
# The small profile draws one in so many of the count, and at least so many. Mutants need them all.
SMALL_SHARE, FEWEST = int(os.environ.get("ROWSIEVE_SHARE", "16")), 3
IS_DEEP = os.environ.get("ROWSIEVE_TESTS") == "deep"
_T = TypeVar("_T")


def examples(count: int, *, promised: int = 0) -> Callable[[Any], Any]:
    """Decorate a property with its count of examples; the profile draws fewer or more of them.

    The deep profile draws at least as many as are `promised`.
    """
    return _examples(count, promised)


def judged(count: int, *, always: int = 0) -> Callable[[Any], Any]:
    """`examples` for a property that an engine judges: a failing example is shown as it was drawn.

    Shrinking it would ask the engine thousands of times, which looks like a hang. At least `always`
    are drawn in either profile, where we promise that many of `make test`.
    """
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    drawn = _examples(count)
    return settings(drawn, max_examples=max(drawn.max_examples, always), phases=phases)


def few(count: int) -> int:
    """How many of so many examples the small profile draws."""
    return max(count // SMALL_SHARE, min(count, FEWEST))


def some(cases: Sequence[_T], one_in: int, first: int = 0) -> Sequence[_T]:
    """The cases that a profile runs: all in the deep one, one in so many in the small one.

    Loops over the same list begin at different places, so that together they have all of it.
    Mutants, which draw the whole count of a property, need all of them, too.
    """
    return cases if IS_DEEP or SMALL_SHARE == 1 else cases[first % one_in :: one_in]


def _examples(count: int, promised: int = 0) -> settings:
    return settings(
        max_examples=max(count * DEEP_FACTOR, promised) if IS_DEEP else few(count),
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
