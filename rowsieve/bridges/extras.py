"""Engines that need not be installed: imported at their first use, or named with their extra."""

from __future__ import annotations

import importlib
from typing import Any

from rowsieve.errors import MissingExtra


def imported(module: str, extra: str) -> Any:
    """The module, or `MissingExtra`, which says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{module.partition('.')[0]} is not installed: pip install 'rowsieve[{extra}]'"
        ) from error
