"""The systems of one run, each with a folder of its own; they work in turns.

A system drops out of a run when it raises, when its limit is reached, or when it is not installed;
the reason goes with every case that it is missing from. Ours may not drop out: it raises.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import Sample, Series
from benchmarks.peers.registry import OURS, System
from benchmarks.result import Case
from benchmarks.suite.runners import PeerFailed, Runner, Start

MUCH = 1_000_000  # bytes
Check = Callable[[str, Any], None]
"""(system, answer) -> None; raises WrongAnswer."""


class Field:
    """The systems of one kind that are still in the run, and why others are not."""

    def __init__(
        self,
        kind: str,
        systems: Sequence[System],
        start: Start,
        folder: Path,
        absent: dict[str, str],
        wider: Field | None = None,
    ) -> None:
        self._kind = kind
        self._start = start
        self._folder = folder
        self._wider = wider
        self._running: dict[str, Runner] = {}
        self.systems = list(systems)
        self.absent = dict(absent)

    def only(self, offers: Callable[[System], bool], why: str) -> Field:
        """Those systems that offer something; who drops out there drops out here."""
        kept = [system for system in self.systems if offers(system)]
        absent = self.absent | {s.name: why for s in self.systems if s not in kept}
        return Field(self._kind, kept, self._start, self._folder, absent, self)

    def drop(self, name: str, why: str) -> None:
        """Take a system out of the rest of the run."""
        self.systems = [system for system in self.systems if system.name != name]
        self.absent[name] = why
        if (runner := self._running.pop(name, None)) is not None:
            runner.close()
        if self._wider is not None:
            self._wider.drop(name, why)

    @contextmanager
    def fresh(self) -> Iterator[None]:
        """Start every system anew, and stop them all at the end."""
        try:
            for system in tuple(self.systems):
                folder = self._folder / (system.data or system.name).replace(" ", "-")
                folder.mkdir(parents=True, exist_ok=True)
                with self._may_drop(system.name):
                    self._running[system.name] = self._start(self._kind, system, folder)
            yield
        finally:
            for runner in self._running.values():
                runner.close()
            self._running.clear()

    def each(self, do: str, check: Check | None = None, **request: Any) -> dict[str, Sample]:
        """Ask every running system once, in their order."""
        samples = {}
        for name in tuple(self._running):
            with self._may_drop(name):
                samples[name] = self._ask(name, do, check, request)
        return samples

    def in_turns(
        self,
        case: str,
        do: str,
        requests: Sequence[dict[str, Any]],
        checks: Sequence[Check],
        *,
        has_first: bool = True,
    ) -> Case:
        """Ask every system every request, round by round, the order turning with the rounds.

        `has_first`: the first request is not among the samples but apart, as the first run.
        """
        series = {name: Series(name) for name in self._running}
        for turn, (request, check) in enumerate(zip(requests, checks, strict=True)):
            names = list(self._running)
            shift = turn % max(len(names), 1)
            for name in names[shift:] + names[:shift]:
                with self._may_drop(name):
                    sample = self._ask(name, do, check, request)
                    if has_first and turn == 0:
                        series[name].first = sample
                    else:
                        series[name].samples.append(sample)
        return self.case(case, [one for one in series.values() if one.samples])

    def case(self, name: str, series: list[Series]) -> Case:
        """A case, with the reasons of those who are not in it."""
        found = {one.system for one in series}
        absent = {name: why for name, why in self.absent.items() if name not in found}
        return Case(name, series, absent)

    def _ask(self, name: str, do: str, check: Check | None, request: dict[str, Any]) -> Sample:
        answer, sample = self._running[name].ask(do, **request)
        if check is not None:
            check(name, answer)
        if (sample.bytes_written or 0) > MUCH:
            os.sync()  # what one system left dirty must not be charged to the next one's fsync
        return sample

    @contextmanager
    def _may_drop(self, name: str) -> Iterator[None]:
        try:
            yield
        except PeerFailed as error:
            if name.startswith(OURS):
                raise
            self.drop(name, f"failed: {error}")
