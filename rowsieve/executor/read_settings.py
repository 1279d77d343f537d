"""Resolves the flags by which one read prunes and audits; see `rowsieve.flags.resolution`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from rowsieve.config import OnViolation, Pruning
from rowsieve.encodings.file_encoding import OnDifference, ReadEncoding
from rowsieve.flags.flag import FLAGS, Flag
from rowsieve.flags.resolution import FlagSource, ResolvedFlag, TableFlags, flags_as_dict
from rowsieve.storage.snapshot import TableInfo


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The settings of one read.

    `pruning`: "on"; "off" reads every part; "soft" reads every part and audits everything first.
    `audit_percent`: the share of pruned data that the audit checks. `on_violation`: what the audit
    does if it finds that pruning is wrong. `flags` says where each value came from.
    """

    pruning: Pruning
    audit_percent: float
    on_violation: OnViolation
    flags: tuple[ResolvedFlag, ...] = field(default=(), compare=False)
    flags_shown: Mapping[str, Mapping[str, str | int | float]] = field(
        default_factory=dict, compare=False
    )
    """The flags as reports have them."""
    skips: bool = field(init=False, compare=False)
    """True if the read skips what pruning excludes."""
    audited_percent: float = field(init=False, compare=False)
    """The share that is audited: 100 for "soft", 0 for "off"."""

    def __post_init__(self) -> None:
        audited_percent = {"soft": 100.0, "off": 0.0}.get(self.pruning, self.audit_percent)
        object.__setattr__(self, "audited_percent", audited_percent)
        object.__setattr__(self, "skips", self.pruning == "on")


@dataclass(frozen=True, slots=True)
class ReadSwitches:
    """The options of one read for pruning and audits; None: by property, rollout or `Config`."""

    pruning: Pruning | None = None
    audit: float | None = None
    on_violation: OnViolation | None = None
    read_encoding: ReadEncoding | None = None
    on_encoding_difference: OnDifference | None = None
    is_default: bool = field(init=False, compare=False, repr=False)
    """True if no option is given."""

    def __post_init__(self) -> None:
        is_default = True
        for flag in READ_FLAGS:
            if (value := getattr(self, flag.argument)) is not None:
                flag.check(f"read: {flag.argument}", value)
                is_default = False
        object.__setattr__(self, "is_default", is_default)

    def settings(self, table: TableInfo) -> ReadSettings:
        """The settings of a read of this table; InvalidInput for a property that cannot be."""
        of_table = table.flags
        if not self.is_default:
            return self._resolved(of_table)
        if (settings := of_table.derived.get(ReadSettings)) is None:
            settings = of_table.derived[ReadSettings] = self._resolved(of_table)
        return cast("ReadSettings", settings)

    def _resolved(self, of_table: TableFlags) -> ReadSettings:
        flags = tuple([self._flag(flag, of_table.by_name[flag.name]) for flag in READ_FLAGS])
        pruning, audit_percent, on_violation, *_ = [flag.value for flag in flags]
        return ReadSettings(
            cast("Pruning", pruning),
            float(audit_percent),
            cast("OnViolation", on_violation),
            flags,
            flags_as_dict(flags),
        )

    def _flag(self, flag: Flag, of_table: ResolvedFlag) -> ResolvedFlag:
        """The flag of this read: by its option, else as the table has it."""
        if (option := getattr(self, flag.argument)) is not None:
            return ResolvedFlag(flag.name, option, FlagSource.CALL)
        if of_table.source is FlagSource.PROPERTY:  # another release may have set it
            flag.check(f"read: {flag.name}", of_table.value)
        return of_table


READ_FLAGS: Final = tuple(flag for flag in FLAGS.values() if flag.is_of_reads)
