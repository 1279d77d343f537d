"""Which calls meet a fault, or another process right before them: by their name and path."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tests.faults.vocabulary import Fault


@dataclass
class Rule:
    """Calls of a method, or of any, meet a fault, on paths that fit, so many times.

    Or something else happens right before them, such as calls of another process. `after`: so many
    of these calls go well before.
    """

    meets: Fault | Callable[[], object]
    name: str | None
    fits: Callable[[str], bool]
    times: int
    after: int = 0

    def concerns(self, name: str, path: str) -> bool:
        """Whether a call meets it; counts those that go well before."""
        if self.name not in (None, name) or not self.times or not self.fits(path):
            return False
        self.after -= 1
        if self.after >= 0:
            return False
        self.times -= 1
        return True


class Rules:
    """Names the calls that meet something by their method and path."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def meet_where(
        self,
        fault: Fault,
        name: str,
        fits: Callable[[str], bool] = lambda _: True,
        times: int = sys.maxsize,
    ) -> Self:
        """Let the next calls of a method with fitting paths meet a fault; after earlier rules."""
        self._rules.append(Rule(fault, name, fits, times))
        return self

    def overtake(
        self,
        act: Callable[[], object],
        name: str | None = None,
        fits: Callable[[str], bool] = lambda _: True,
        after: int = 0,
    ) -> Self:
        """Let something happen once, right before the next such call, or after so many others."""
        self._rules.append(Rule(act, name, fits, 1, after))
        return self

    @property
    def is_over(self) -> bool:
        """Whether everything has happened."""
        return not any(rule.times for rule in self._rules)

    def _ruled(self, name: str, path: str) -> Fault | None:
        for rule in self._rules:
            if rule.concerns(name, path):
                if isinstance(rule.meets, Fault):
                    return rule.meets
                rule.meets()
        return None
