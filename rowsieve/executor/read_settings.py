"""How one read prunes and audits: by its argument or option, the table's property, or `Config`.

The first of these that says something decides, each switch by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rowsieve.config import OnViolation, Pruning, check_switches, current


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The switches of one read.

    `pruning`: "on"; "off" reads every part; "soft" does so too, and audits everything first.
    `audit_percent`: the share of what pruning skips that is checked. `on_violation`: what follows
    where that finds pruning wrong.
    """

    pruning: Pruning
    audit_percent: float
    on_violation: OnViolation

    @property
    def skips(self) -> bool:
        """Whether the plan that is read leaves out what pruning refutes."""
        return self.pruning == "on"

    @property
    def audited_percent(self) -> float:
        """The share that is audited: all for soft, nothing where nothing is pruned."""
        return {"soft": 100.0, "off": 0.0}.get(self.pruning, self.audit_percent)


def read_settings(
    properties: Mapping[str, str],
    *,
    pruning: Pruning | None = None,
    audit: float | None = None,
    on_violation: OnViolation | None = None,
) -> ReadSettings:
    """Resolve the switches of a read; InvalidInput for a value that a switch does not have."""
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
