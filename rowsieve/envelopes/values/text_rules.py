"""How a format writes values that JSON has no type for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Unit = Literal["ms", "us", "ns"]


@dataclass(frozen=True, slots=True)
class TextRules:
    """The meaning of values without a declared type, by format and by the caller's arguments.

    `decimals`: what text in a column of numbers is, None where that is unknown. `bytes_`: how bytes
    are written. `nested_json`: a JSON document is written as it is, not as text. `epochs`: dates
    and times are numbers, in the unit of `times` for a column or of `time_unit`. `unavailable`: the
    source writes a marker for a value that it did not send.
    """

    bytes_: Literal["base64", "hex", "latin-1"] = "base64"
    decimals: Literal["string", "base64"] | None = "string"
    nested_json: bool = False
    booleans_in_text: bool = False
    epochs: bool = False
    unavailable: bool = False
    time_unit: Unit | None = None
    times: Mapping[str, Unit] = field(default_factory=dict)

    def unit(self, column: str) -> Unit | None:
        """The unit of numbers in a column of times, if the caller gave it."""
        return self.times.get(column, self.time_unit)
