"""Which calls meet a fault, or another process right before them: by their name and path."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tests.faults.vocabulary import Fault


@dataclass
class Rule:
    """Calls of a method meet a fault, on paths that fit, so many times.

    Or something else happens right before them, such as calls of another process.
    """

    meets: Fault | Callable[[], object]
    name: str
    fits: Callable[[str], bool]
    times: int


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
        self, act: Callable[[], object], name: str, fits: Callable[[str], bool] = lambda _: True
    ) -> Self:
        """Let something happen once, right before the next call of a method with such a path."""
        self._rules.append(Rule(act, name, fits, 1))
        return self

    def _ruled(self, name: str, path: str) -> Fault | None:
        for rule in self._rules:
            if rule.name == name and rule.times and rule.fits(path):
                rule.times -= 1
                if isinstance(rule.meets, Fault):
                    return rule.meets
                rule.meets()
        return None
