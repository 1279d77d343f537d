"""Names of tables in a database: `name` or `namespace.name`."""

from __future__ import annotations

from typing import Final

from rowsieve.errors import InvalidInput
from rowsieve.names.qualified_names import identifier

DEFAULT_NAMESPACE: Final = "default"
"""The namespace in SQL of tables that have none."""


def plain_name(name: str) -> str:
    """The name as the log has it: without the namespace `default`; InvalidInput if it is none."""
    steps = name.split(".")
    if len(steps) > 2:
        raise InvalidInput(f"{name!r} has {len(steps)} steps; a table is name or namespace.name")
    for step in steps:
        identifier(step)
    return steps[1] if len(steps) == 2 and steps[0] == DEFAULT_NAMESPACE else name
