"""Defaults used where no argument, option, table property or rollout rule gives a value.

They apply to one process. Nothing is read from the environment, and another process gets a default
only as an option of the engine that reads there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from rowsieve.arguments import checked, checked_names
from rowsieve.errors import InvalidInput, repr_of
from rowsieve.flags.flag import FLAGS
from rowsieve.flags.rollout import Flags
from rowsieve.metrics import Reporter

Pruning = Literal["on", "soft", "off"]
OnViolation = Literal["raise", "report"]


@checked_names
@dataclass(frozen=True, slots=True)
class Config:
    """Defaults of the process, which `configure` sets.

    `split_bytes` is the target size of a plan's splits in stored bytes. `memory_bytes` limits the
    memory of a read, without the snapshot and without batches that the caller has received.
    `reporter` receives the reports of tables that have no reporter of their own. `reporters` are
    those that an option of Spark may select, by name. `collectors` are functions that make
    collectors of statistics, by the names that the table property has. `cache_dir` is a local
    folder that keeps at most `cache_bytes` of what is read from network stores: lists of parts,
    ends of files, vectors, and with `cache_data` all ranges of data files; for tables opened later.
    The other fields are flags: each has the name of a table property, and counts for tables without
    it that no rollout rule of `flags` selects.
    """

    split_bytes: int = 64 * 1024 * 1024
    memory_bytes: int = 256 * 1024 * 1024
    pruning: Pruning = "on"
    audit_percent: float = 0.0
    audit_on_violation: OnViolation = "raise"
    reporter: Reporter | None = None
    reporters: Mapping[str, Reporter] = field(default_factory=dict, hash=False)
    collectors: Mapping[str, Any] = field(default_factory=dict, hash=False)
    cache_dir: str | os.PathLike[str] | None = None
    cache_bytes: int = 1024 * 1024 * 1024
    cache_data: bool = False
    inline_bytes: int = 16 * 1024
    statistics: Literal["on", "off"] = "on"
    visibility: Literal["lazy", "eager"] = "lazy"
    value_forms: Literal["structured", "opaque"] = "structured"
    compaction: Literal["leveled", "tiered"] = "leveled"
    write_encoding: Literal["columns", "both", "codec"] = "columns"
    read_encoding: Literal["columns", "codec", "shadow"] = "columns"
    on_encoding_difference: Literal["raise", "report"] = "report"
    flags: Flags = field(default_factory=Flags)

    def __post_init__(self) -> None:
        for name in ("split_bytes", "memory_bytes", "cache_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInput(
                    f"Config: {name} must be a number of bytes, at least 1, not {repr_of(value)}"
                )
        if not isinstance(self.cache_dir, str | os.PathLike | None) or self.cache_dir == "":
            raise InvalidInput(
                f"Config: cache_dir must be the path of a folder, not {repr_of(self.cache_dir)}"
            )
        if not isinstance(self.cache_data, bool):
            raise InvalidInput(
                f"Config: cache_data must be True or False, not {repr_of(self.cache_data)}"
            )
        for flag in FLAGS.values():
            flag.check(f"Config: {flag.name}", getattr(self, flag.name))
        if not isinstance(self.flags, Flags):
            raise InvalidInput(
                f"Config: flags must be Flags([Rollout(…), …]), not {repr_of(self.flags)}"
            )
        if not isinstance(self.reporters, Mapping):
            raise InvalidInput(
                f"Config: reporters must be a dict of names and reporters, not "
                f"{repr_of(self.reporters)}"
            )
        if not isinstance(self.collectors, Mapping) or not all(
            isinstance(name, str) and callable(make) for name, make in self.collectors.items()
        ):
            raise InvalidInput(
                "Config: collectors must be a dict of names and functions that make a collector, "
                f"not {repr_of(self.collectors)}"
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
