"""How many examples a property gets: few in `make test`, 25 times as many in `make test-deep`.

`ROWSIEVE_EXAMPLES=5 make test-deep` gives it five times as many. Counts that we promise, such as
200 rounds of two writers, do not depend on it: they are named where they are tested.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings

DEEP_FACTOR = int(os.environ.get("ROWSIEVE_EXAMPLES", "25"))
IS_DEEP = os.environ.get("ROWSIEVE_TESTS") == "deep"


def examples(count: int) -> Callable[[Any], Any]:
    """Decorate a property with its number of examples in the small profile."""
    return _examples(count)


def judged(count: int) -> Callable[[Any], Any]:
    """`examples` for a property that an engine judges: a failing example is shown as it was drawn.

    Shrinking it would ask the engine thousands of times, which looks like a hang.
    """
    return settings(_examples(count), phases=[Phase.explicit, Phase.reuse, Phase.generate])


def _examples(count: int) -> settings:
    return settings(
        max_examples=count * (DEEP_FACTOR if IS_DEEP else 1),
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
