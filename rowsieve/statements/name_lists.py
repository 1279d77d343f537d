"""Lists of names in one text, as options and properties have them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rowsieve.errors import InvalidInput


def names_of(columns: str, option: str = "columns") -> tuple[str, ...]:
    """Parse names separated by commas, or a JSON list, which allows any name."""
    if columns.startswith("["):
        try:
            listed = tuple(msgspec.json.decode(columns, type=list[str]))
        except msgspec.MsgspecError as error:
            raise InvalidInput(f"option {option} is not a JSON list of names: {error}") from error
        if not listed:  # Spark takes batches without columns as batches without rows
            raise InvalidInput(f"option {option} names no column; name at least one")
        return listed
    names = tuple(name.strip() for name in columns.split(","))
    if not all(names):
        raise InvalidInput(f"option {option} is names separated by commas, not {columns!r}")
    return names


def list_of_names(names: Sequence[str]) -> str:
    """The text that `names_of` reads as these names."""
    text = ", ".join(names)
    is_plain = not text.startswith("[") and text.split(", ") == [each.strip() for each in names]
    return text if is_plain and "," not in "".join(names) else msgspec.json.encode(names).decode()
