"""Table properties: the settings that live with a table, checked when they are given."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from rowsieve.errors import InvalidInput

PROPERTIES: Mapping[str, str] = {
    "target_part_bytes": "stored bytes at which a writer starts another part (default 128 MiB)",
    "checkpoint_interval": "commits between checkpoints (default 32)",
}


def check_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as text; InvalidInput for an unknown name or a value that is no count."""
    checked = {}
    for name, value in properties.items():
        if name not in PROPERTIES:
            near = difflib.get_close_matches(name, PROPERTIES, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidInput(
                f"unknown table property {name!r}; known are {', '.join(PROPERTIES)}{hint}"
            )
        text = str(value)
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise InvalidInput(f"table property {name!r} must be a count from 1, not {value!r}")
        checked[name] = text
    return checked
