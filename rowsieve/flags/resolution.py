"""Resolve flags for a table: by call, table property, rollout rule, process default, in this order.

Soundness: a table that cannot have a value (`Flag.refusal`) keeps `Flag.unset`, whatever a rule or
the process says; a property that could not be is refused when it is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from rowsieve.flags.flag import FLAGS, Flag, FlaggedTable, text_of
from rowsieve.flags.rollout import Flags
from rowsieve.metrics.counters import UNSET


class FlagSource(StrEnum):
    """Where the value of a flag came from."""

    CALL = "call"
    PROPERTY = "table property"
    ROLLOUT = "rollout rule"
    PROCESS = UNSET


class Defaults(Protocol):
    """The defaults of a process, `rs.Config`: each flag is a field, too."""

    @property
    def flags(self) -> Flags:
        """The rollout rules."""


@dataclass(frozen=True, slots=True)
class ResolvedFlag:
    """The value of a flag for one table, and where it came from; `detail` says more of that.

    `is_usual`: nobody has set it, or the table cannot have what was set.
    """

    name: str
    value: str | int | float
    source: FlagSource
    detail: str = ""
    is_usual: bool = False

    def as_dict(self) -> dict[str, str | int | float]:
        """Plain values, for JSON."""
        detail = {"detail": self.detail} if self.detail else {}
        return {"value": self.value, "source": self.source.value, **detail}

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.name}={text_of(self.value)} by {self.source}{detail}"


def resolve_flag(flag: Flag, table: FlaggedTable, defaults: Defaults) -> ResolvedFlag:
    """Resolve one flag of a call without an argument for it."""
    if (text := table.properties.get(flag.name)) is not None:
        return ResolvedFlag(flag.name, flag.value_of(text), FlagSource.PROPERTY)
    value, source, detail = getattr(defaults, flag.name), FlagSource.PROCESS, ""
    if (chosen := defaults.flags.rule_for(flag, table)) is not None:
        number, rule = chosen
        value, source, detail = rule.value, FlagSource.ROLLOUT, f"{number}: {rule}"
    value = flag.value_of(value)
    if value != flag.unset and (refusal := flag.refusal(table)):
        detail = f"not {text_of(value)}: {refusal}"
        return ResolvedFlag(flag.name, flag.unset, FlagSource.PROCESS, detail, is_usual=True)
    is_usual = source is FlagSource.PROCESS and value == flag.default
    return ResolvedFlag(flag.name, value, source, detail, is_usual)


@dataclass(frozen=True, slots=True)
class TableFlags:
    """All flags of one table under the defaults of one process, resolved once.

    `settings` are the table's properties, with what rules and the process give flags beside them.
    """

    defaults: Defaults
    by_name: Mapping[str, ResolvedFlag]
    settings: Mapping[str, str]
    derived: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)
    """What others derive from the flags alone, for so long as they hold."""

    @classmethod
    def of(cls, table: FlaggedTable, defaults: Defaults) -> TableFlags:
        """Resolve the flags; they hold until the process gets other defaults."""
        flags = {flag.name: resolve_flag(flag, table, defaults) for flag in FLAGS.values()}
        added = {
            each.name: text_of(each.value)
            for each in flags.values()
            if each.name not in table.properties and each.value != FLAGS[each.name].unset
        }
        settings = {**table.properties, **added} if added else table.properties
        return cls(defaults, flags, settings)

    def of_writes(self) -> Iterator[ResolvedFlag]:
        """The flags that say how the table is written."""
        return (each for each in self.by_name.values() if not FLAGS[each.name].is_of_reads)


def flags_as_dict(flags: Iterable[ResolvedFlag]) -> dict[str, dict[str, str | int | float]]:
    """Plain values by name, for JSON."""
    return {flag.name: flag.as_dict() for flag in flags}
