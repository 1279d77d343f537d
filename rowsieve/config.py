"""Defaults of reads, where neither an argument or option nor a table property decides.

They are a process's own: nothing is read from the environment, and no default travels to another
process but as an option of the engine that reads there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from rowsieve.arguments import checked
from rowsieve.errors import InvalidInput
from rowsieve.metrics import Reporter

Pruning = Literal["on", "soft", "off"]
OnViolation = Literal["raise", "report"]

PRUNINGS: Final = ("on", "soft", "off")
ON_VIOLATION: Final = ("raise", "report")


@dataclass(frozen=True, slots=True)
class Config:
    """Defaults of reads; `configure` makes one the process's.

    `split_bytes`: stored bytes that one split of a plan aims at. `memory_bytes`: how much a read
    may hold at once, beside the snapshot; batches that were handed out are not counted. `pruning`,
    `audit_percent`, `audit_on_violation`: as the arguments of `Table.scan`. `reporter` is told of
    the reads and commits of tables that have no reporter of their own.
    """

    split_bytes: int = 64 * 1024 * 1024
    memory_bytes: int = 256 * 1024 * 1024
    pruning: Pruning = "on"
    audit_percent: float = 0.0
    audit_on_violation: OnViolation = "raise"
    reporter: Reporter | None = None

    def __post_init__(self) -> None:
        for name in ("split_bytes", "memory_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInput(f"Config: {name} is a count of bytes from 1, not {value!r}")
        check_switches("Config", self.pruning, self.audit_percent, self.audit_on_violation)
        if self.reporter is not None and not callable(getattr(self.reporter, "report", None)):
            raise InvalidInput(f"Config: reporter has no method report: {self.reporter!r}")


def check_switches(owner: str, pruning: object, audit: object, on_violation: object) -> None:
    """InvalidInput for a value that a read's switch does not have."""
    if not isinstance(pruning, str) or pruning not in PRUNINGS:
        raise InvalidInput(f"{owner}: pruning is 'on', 'soft' or 'off', not {pruning!r}")
    if isinstance(audit, bool) or not isinstance(audit, int | float) or not 0 <= audit <= 100:
        raise InvalidInput(f"{owner}: audit is a percentage from 0 to 100, not {audit!r}")
    if not isinstance(on_violation, str) or on_violation not in ON_VIOLATION:
        raise InvalidInput(f"{owner}: on_violation is 'raise' or 'report', not {on_violation!r}")


DEFAULT: Final = Config()
_current = DEFAULT


@checked
def configure(config: Config) -> Config:
    """Use these defaults from now on, in all threads of this process; gives the former ones."""
    global _current
    former, _current = _current, config
    return former


def current() -> Config:
    """The defaults in force."""
    return _current
