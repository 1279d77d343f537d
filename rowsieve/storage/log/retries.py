"""Retries of one commit that loses against other commits: random backoff and a deadline.

After each lost attempt the commit sleeps for a random time. The limit of that time doubles with
each attempt, so that many small writers take turns.
"""

from __future__ import annotations

import math
from typing import Final

from rowsieve import clock
from rowsieve.arguments.annotations import checked_timeout
from rowsieve.errors import CommitConflict

RETRY_TIMEOUT_S: Final = 60.0
"""The time that a change tries to commit, unless `retry_timeout_s` says otherwise."""

_FIRST_PAUSE_S: Final = 0.002
_LONGEST_PAUSE_S: Final = 0.25


class Retries:
    """The attempts of one commit. `timeout_s` None or infinity: no deadline."""

    def __init__(self, operation: str, timeout_s: float | None = None) -> None:
        self._operation = operation
        self._timeout_s = math.inf if timeout_s is None else checked_timeout(timeout_s)
        self._started = clock.monotonic_s()
        self.attempts = 0
        self.is_over = False
        """True once the deadline has passed: no attempt follows."""

    def wait(self, problem: Exception | None = None) -> None:
        """Count a lost attempt and sleep; CommitConflict after the deadline."""
        elapsed_s = clock.monotonic_s() - self._started
        remaining_s = self._timeout_s - elapsed_s
        longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self.attempts, 30))
        self.attempts += 1
        if remaining_s <= 0:
            self.is_over = True
            raise CommitConflict(
                f"{self._operation}: other commits were first in each of {self.attempts} attempts "
                f"in {elapsed_s:.1f} s; nothing was committed. Try again when there is less "
                f"traffic, or allow more than retry_timeout_s={self._timeout_s:g}",
                attempts=self.attempts,
                elapsed_s=elapsed_s,
            ) from problem
        clock.sleep_up_to(min(remaining_s, longest_s))
