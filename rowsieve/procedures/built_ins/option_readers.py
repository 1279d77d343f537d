"""Readers of the options of procedures, which are maps of texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from rowsieve.errors import InvalidInput, did_you_mean

Reader: TypeAlias = Callable[[str, str], Any]
"""Reads the text of an option; takes what a message calls it, and the text."""

_UNITS: Final = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}
_SIZE = re.compile(r"(\d{1,18})\s*([a-z]*)", re.ASCII)


def read_options(
    procedure: str, options: Mapping[str, str], readers: Mapping[str, tuple[str, Reader]]
) -> dict[str, Any]:
    """Return the values of the options by field; InvalidInput names a wrong or unknown one.

    `readers` has the field and the reader of each option, by its name with hyphens.
    """
    values: dict[str, Any] = {}
    for name, text in options.items():
        plain = name.strip().lower().replace("_", "-")
        if plain not in readers:
            raise InvalidInput(
                f"{procedure} has no option {name!r}; it has "
                f"{', '.join(sorted(readers))}{did_you_mean(plain, readers)}"
            )
        field, read = readers[plain]
        if field in values:
            raise InvalidInput(f"{procedure}: the option {plain} is given twice; remove one")
        values[field] = read(f"{procedure}: the option {plain}", text)
    return values


def size_bytes(option: str, text: str) -> int:
    """A size such as `134217728`, `128MB` or `1 GB`; units are powers of 1,024."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS or not int(match[1]):
        raise InvalidInput(
            f"{option} is {text!r}; give a size above zero, such as '134217728' or '128MB'"
        )
    return int(match[1]) * _UNITS[match[2]]


def whole_number(option: str, text: str) -> int:
    """A whole number above zero."""
    if not re.fullmatch(r"0*[1-9]\d{0,17}", text, re.ASCII):
        raise InvalidInput(f"{option} is {text!r}; give a whole number above zero")
    return int(text)


def flag(option: str, text: str) -> bool:
    """`true` or `false`."""
    if text.lower() not in ("true", "false"):
        raise InvalidInput(f"{option} is {text!r}; give true or false")
    return text.lower() == "true"


def ratio(option: str, text: str) -> float:
    """A number above 0 and up to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= 1.0:
        raise InvalidInput(f"{option} is {text!r}; give a number above 0 and up to 1")
    return value
