"""Measures time, CPU and bytes of several systems that take turns.

CPU time covers all threads of the process, or what another clock counts. Bytes are those of its
read and write system calls, so they exclude memory-mapped reads. The systems take turns within each
round, and the order rotates with the rounds, so that a slow moment of the machine affects all of
them. Growth is the increase of the process's resident memory. This file imports only the standard
library, because peers in other environments also use it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

Work = Callable[[], object]
Clock = Callable[[], float]


@dataclass(slots=True)
class Sample:
    """One run; bytes are None if the operating system does not count them."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    bytes_read: int | None = None
    bytes_written: int | None = None
    growth_bytes: int | None = None


@dataclass(slots=True)
class Series:
    """The runs of one system in one case; `note`: a remark about this system.

    `first` is the run in a fresh process, if it was measured.
    """

    system: str
    note: str = ""
    samples: list[Sample] = field(default_factory=list)
    first: Sample | None = None

    def cpu_s(self) -> float:
        """The median CPU seconds."""
        return median(sample.cpu_s for sample in self.samples)

    def wall_s(self) -> float:
        """The median wall seconds."""
        return median(sample.wall_s for sample in self.samples)

    def bytes_read(self) -> int | None:
        """The median bytes read."""
        return _middle([sample.bytes_read for sample in self.samples])

    def bytes_written(self) -> int | None:
        """The median bytes written."""
        return _middle([sample.bytes_written for sample in self.samples])

    def growth_bytes(self) -> int | None:
        """The largest growth of memory in any run."""
        runs = self.samples if self.first is None else [self.first, *self.samples]
        known = [sample.growth_bytes for sample in runs if sample.growth_bytes is not None]
        return max(known, default=None)

    def spread(self) -> float:
        """The spread of the runs: (slowest - fastest) / median CPU."""
        values = [sample.cpu_s for sample in self.samples]
        return (max(values) - min(values)) / max(median(values), 1e-9)


@contextmanager
def sampled(clock: Clock = time.process_time) -> Iterator[Sample]:
    """Measure the body of the `with` statement; fills the sample at its end.

    `clock` returns the CPU seconds so far.
    """
    sample = Sample()
    gc.collect()
    stood = _reset_peak()
    counted = io_bytes()
    wall, cpu = time.perf_counter(), clock()
    yield sample
    sample.cpu_s = clock() - cpu
    sample.wall_s = time.perf_counter() - wall
    if stood is not None:
        sample.growth_bytes = max(0, _memory("VmHWM") - stood)
    if counted is not None and (after := io_bytes()) is not None:
        sample.bytes_read = after[0] - counted[0]
        sample.bytes_written = after[1] - counted[1]


def take_turns(
    works: Mapping[str, Work],
    repeats: int,
    *,
    warm_up: bool = True,
    clock: Clock = time.process_time,
) -> list[Series]:
    """Run every work `repeats` times, round by round; freeing results is not measured."""
    series = {name: Series(name) for name in works}
    if warm_up:
        for work in works.values():
            work()
    names = list(works)
    for turn in range(repeats):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            with sampled(clock) as sample:
                result = works[name]()
            del result
            series[name].samples.append(sample)
    return list(series.values())


def io_bytes() -> tuple[int, int] | None:
    """Bytes that this process has read and written so far, caches included; Linux only."""
    path = Path("/proc/self/io")
    if not path.exists():
        return None
    counts = dict(line.split(": ") for line in path.read_text().splitlines())
    return int(counts["rchar"]), int(counts["wchar"])


def _reset_peak() -> int | None:
    """Reset the kernel's peak of resident memory, and return the current size. Linux only."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _memory("VmRSS")
    except OSError:
        return None


def _memory(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def _middle(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return int(median(known)) if known else None
