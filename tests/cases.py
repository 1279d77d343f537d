"""Read the cases of a test from a text file: one a line; lines with `-- ` before are comments."""

from __future__ import annotations

from pathlib import Path


def cases_in(test: str, name: str) -> list[str]:
    """The lines of a file in the folder of a test, which gives its `__file__`."""
    lines = Path(test).with_name(name).read_text("utf-8").split("\n")
    return [line for line in lines if line and not line.startswith("-- ")]
