"""Finds the systems that can run here, and why the others cannot."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.peers.environments import NotInstalled, python_of
from benchmarks.peers.registry import System


def not_installed(systems: Sequence[System], *, make: bool) -> dict[str, str]:
    """Why some systems cannot be run here; makes their environments if it may."""
    reasons = {}
    for system in systems:
        try:
            python_of(system, make=make)
        except NotInstalled as error:
            reasons[system.name] = f"not installed: {error}"
    return reasons
