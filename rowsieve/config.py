"""Defaults of reads, used where no argument, option or table property gives a value.

They apply to one process. Nothing is read from the environment, and another process gets a default
only as an option of the engine that reads there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from rowsieve.arguments import checked
from rowsieve.errors import InvalidInput, repr_of
from rowsieve.metrics import Reporter

Pruning = Literal["on", "soft", "off"]
OnViolation = Literal["raise", "report"]

PRUNINGS: Final = ("on", "soft", "off")
MAX_INLINE_BYTES: Final = 999_999
ON_VIOLATION: Final = ("raise", "report")


@dataclass(frozen=True, slots=True)
class Config:
    """Defaults of reads; `configure` sets them for the process.

    `split_bytes` is the target size of a plan's splits in stored bytes. `memory_bytes` limits the
    memory of a read, without the snapshot and without batches that the caller has received.
    `pruning`, `audit_percent` and `audit_on_violation` are the defaults of the arguments of
    `Table.scan`. `reporter` receives the reports of tables that have no reporter of their own.
    `reporters` are those that an option of Spark may select, by name. `inline_bytes` is the table
    property of that name of tables that this process creates; 0 for none.
    """

    split_bytes: int = 64 * 1024 * 1024
    memory_bytes: int = 256 * 1024 * 1024
    pruning: Pruning = "on"
    audit_percent: float = 0.0
    audit_on_violation: OnViolation = "raise"
    reporter: Reporter | None = None
    reporters: Mapping[str, Reporter] = field(default_factory=dict, hash=False)
    inline_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("split_bytes", "memory_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInput(
                    f"Config: {name} must be a number of bytes, at least 1, not {repr_of(value)}"
                )
        if (
            isinstance(self.inline_bytes, bool)
            or not isinstance(self.inline_bytes, int)
            or not 0 <= self.inline_bytes <= MAX_INLINE_BYTES
        ):
            raise InvalidInput(
                "Config: inline_bytes must be a number of bytes from 0 to "
                f"{MAX_INLINE_BYTES}, not {repr_of(self.inline_bytes)}"
            )
        check_switches("Config", self.pruning, self.audit_percent, self.audit_on_violation)
        if not isinstance(self.reporters, Mapping):
            raise InvalidInput(
                f"Config: reporters must be a dict of names and reporters, not "
                f"{repr_of(self.reporters)}"
            )
        if self.reporter is not None:
            _check_reporter("reporter", self.reporter)
        for name, reporter in self.reporters.items():
            _check_reporter(f"reporters[{name!r}]", reporter)


def _check_reporter(what: str, reporter: object) -> None:
    if not callable(getattr(reporter, "report", None)):
        raise InvalidInput(
            f"Config: {what} must have a method report(), and {repr_of(reporter)} has none; give "
            "an object such as LoggingReporter()"
        )


def check_switches(owner: str, pruning: object, audit: object, on_violation: object) -> None:
    """Raise InvalidInput for an invalid value of a read option; `owner` begins the message."""
    if not isinstance(pruning, str) or pruning not in PRUNINGS:
        raise InvalidInput(
            f"{owner}: pruning must be 'on', 'soft' or 'off', not {repr_of(pruning)}"
        )
    if isinstance(audit, bool) or not isinstance(audit, int | float) or not 0 <= audit <= 100:
        raise InvalidInput(
            f"{owner}: audit must be a percentage from 0 to 100, not {repr_of(audit)}"
        )
    if not isinstance(on_violation, str) or on_violation not in ON_VIOLATION:
        raise InvalidInput(
            f"{owner}: on_violation must be 'raise' or 'report', not {repr_of(on_violation)}"
        )


DEFAULT: Final = Config()
_current = DEFAULT


@checked
def configure(config: Config) -> Config:
    """Set the defaults for all threads of this process; return the previous ones."""
    global _current
    former, _current = _current, config
    return former


def current() -> Config:
    """Return the current defaults."""
    return _current
