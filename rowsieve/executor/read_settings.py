"""Resolves the flags by which one read prunes and audits; see `rowsieve.flags.resolution`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from rowsieve.config import OnViolation, Pruning, current
from rowsieve.encodings.file_encoding import OnDifference, ReadEncoding
from rowsieve.flags.flag import FLAGS, FlaggedTable
from rowsieve.flags.resolution import ResolvedFlag, resolve_flag


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

    @property
    def skips(self) -> bool:
        """True if the read skips what pruning excludes."""
        return self.pruning == "on"

    @property
    def audited_percent(self) -> float:
        """The share that is audited: 100 for "soft", 0 for "off"."""
        return {"soft": 100.0, "off": 0.0}.get(self.pruning, self.audit_percent)


@dataclass(frozen=True, slots=True)
class ReadSwitches:
    """The options of one read for pruning and audits; None: by property, rollout or `Config`."""

    pruning: Pruning | None = None
    audit: float | None = None
    on_violation: OnViolation | None = None
    read_encoding: ReadEncoding | None = None
    on_encoding_difference: OnDifference | None = None

    def __post_init__(self) -> None:
        for flag in READ_FLAGS:
            if (value := getattr(self, flag.argument)) is not None:
                flag.check(f"read: {flag.argument}", value)

    def settings(self, table: FlaggedTable) -> ReadSettings:
        """The settings of a read of this table; InvalidInput for a property that cannot be."""
        flags = tuple(
            resolve_flag(flag, table, current(), getattr(self, flag.argument))
            for flag in READ_FLAGS
        )
        for flag, resolved in zip(READ_FLAGS, flags, strict=True):
            flag.check(f"read: {flag.name}", resolved.value)
        values: dict[str, Any] = {each.name: each.value for each in flags}
        return ReadSettings(
            values["pruning"],
            float(values["audit_percent"]),
            values["audit_on_violation"],
            flags,
        )


READ_FLAGS: Final = tuple(flag for flag in FLAGS.values() if flag.is_of_reads)
