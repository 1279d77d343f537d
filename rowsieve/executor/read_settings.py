"""Resolves the settings by which one read prunes and audits.

Each setting is taken from the read's argument or option, else from the table's property, else from
`Config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rowsieve.config import OnViolation, Pruning, check_switches, current


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The settings of one read.

    `pruning`: "on"; "off" reads every part; "soft" reads every part and audits everything first.
    `audit_percent`: the share of pruned data that the audit checks. `on_violation`: what the audit
    does if it finds that pruning is wrong.
    """

    pruning: Pruning
    audit_percent: float
    on_violation: OnViolation

    @property
    def skips(self) -> bool:
        """True if the read skips what pruning excludes."""
        return self.pruning == "on"

    @property
    def audited_percent(self) -> float:
        """The share that is audited: 100 for "soft", 0 for "off"."""
        return {"soft": 100.0, "off": 0.0}.get(self.pruning, self.audit_percent)


def read_settings(
    properties: Mapping[str, str],
    *,
    pruning: Pruning | None = None,
    audit: float | None = None,
    on_violation: OnViolation | None = None,
) -> ReadSettings:
    """Resolve the settings of a read; InvalidInput for a value that a setting does not allow."""
    config = current()
    settings = (
        properties.get("pruning", config.pruning) if pruning is None else pruning,
        float(properties.get("audit_percent", config.audit_percent)) if audit is None else audit,
        properties.get("audit_on_violation", config.audit_on_violation)
        if on_violation is None
        else on_violation,
    )
    check_switches("read", *settings)
    return ReadSettings(settings[0], float(settings[1]), settings[2])  # type: ignore[arg-type] # checked


@dataclass(frozen=True, slots=True)
class ReadSwitches:
    """The options of one read for pruning and audits; None: by property or `Config`."""

    pruning: Pruning | None = None
    audit: float | None = None
    on_violation: OnViolation | None = None

    def settings(self, properties: Mapping[str, str]) -> ReadSettings:
        """The settings of a read of a table with these properties; InvalidInput as above."""
        return read_settings(
            properties, pruning=self.pruning, audit=self.audit, on_violation=self.on_violation
        )
