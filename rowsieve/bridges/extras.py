"""Import optional engines at first use; a missing one names the extra to install."""

from __future__ import annotations

import importlib
from typing import Any

from rowsieve.errors import MissingExtra


def imported(module: str, extra: str) -> Any:
    """Import the module; `MissingExtra`, which says what to install, if that fails."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{module.partition('.')[0]} is not installed: pip install 'rowsieve[{extra}]'"
        ) from error
