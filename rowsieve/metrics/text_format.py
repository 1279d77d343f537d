"""A sample as a line of Prometheus' text exposition format (0.0.4)."""

from __future__ import annotations

from typing import TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]


def line(name: str, labels: Labels, value: float) -> str:
    """The line of a sample; the name gets our prefix."""
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"rowsieve_{name}{{{shown}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
