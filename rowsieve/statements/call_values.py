"""The arguments of a call, as a statement gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

Value: TypeAlias = str | int | bool | datetime | Mapping[str, str] | None
"""A value of an argument; times have a zone."""


@dataclass(frozen=True, slots=True)
class TimeLiteral:
    """The text of `TIMESTAMP '…'` or `DATE '…'`; without a zone it is a time of the session's."""

    text: str


Argument: TypeAlias = Value | TimeLiteral
"""An argument as a statement gives it."""
