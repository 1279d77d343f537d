"""The results of a run as plain values: cases, bars, and the machine."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measure import Series

PACKAGES = (
    "rowsieve",
    "pyarrow",
    "numpy",
    "datafusion",
    "deltalake",
    "duckdb",
    "polars",
    "obstore",
)
RESULTS = Path(__file__).parent / "results"


class WrongAnswer(Exception):
    """A system returned a wrong answer, so its speed is meaningless."""


@dataclass(slots=True)
class Case:
    """One piece of work done by several systems; ours is first.

    `absent`: why other systems are not in the case.
    """

    name: str
    series: list[Series]
    absent: dict[str, str] = field(default_factory=dict)

    def of(self, system: str) -> Series:
        """The runs of one system."""
        return next(series for series in self.series if series.system == system)


@dataclass(slots=True)
class Bar:
    """A promise and the measured result; `met` is None if a peer or a counter is missing."""

    name: str
    promise: str
    found: str
    met: bool | None
    cases: list[Case] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Machine:
    """The machine and the versions of a run."""

    date: str
    cpu: str
    cores: int
    memory_gb: float
    system: str
    python: str
    versions: dict[str, str]
    load: float

    @classmethod
    def here(cls) -> Machine:
        """Describe this machine as it is now."""
        return cls(
            date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            cpu=_cpu_model(),
            cores=os.cpu_count() or 1,
            memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            system=f"{platform.system()} {platform.release()}",
            python=platform.python_version(),
            versions={name: version for name in PACKAGES if (version := _version(name))},
            load=round(os.getloadavg()[0], 2),
        )


def save(name: str, sizes: Any, machine: Machine, found: Sequence[Any], folder: Path) -> Path:
    """Write a run as JSON under `folder` and return the path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    run = {"machine": asdict(machine), "sizes": asdict(sizes), "found": [asdict(f) for f in found]}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run)) + b"\n")
    return path


def expect(what: str, found: object, expected: object) -> None:
    """Raise WrongAnswer unless both are equal."""
    if found != expected:
        raise WrongAnswer(f"{what}: expected {expected}, found {found}")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
