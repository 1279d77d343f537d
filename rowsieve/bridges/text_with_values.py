"""`TextWithValues`: SQL text of a condition or statement and the values of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rowsieve.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class TextWithValues:
    """SQL text and the values of its parameters, by name; `kind` says what the text is."""

    text: str
    values: Mapping[str, Any]
    kind: Literal["condition", "statement"] = "condition"

    def __str__(self) -> str:
        return self.text


def with_values(where: Any, params: Mapping[str, Any] | None, call: str) -> Any:
    """Return a condition with the values of its parameters; InvalidInput if they do not fit it."""
    if params is None:
        return where
    if not isinstance(where, str):
        raise InvalidInput(
            f"{call}: params= are the values of parameters in SQL text, and the condition is "
            f"{type(where).__name__}; put the values into it"
        )
    return TextWithValues(where, _by_name(params, call))


def statement_with_values(
    statement: str, params: Mapping[str, Any] | None, call: str
) -> TextWithValues | None:
    """Return a statement with the values of its parameters; None if none are given."""
    if params is None:
        return None
    return TextWithValues(statement, _by_name(params, call), "statement")


def _by_name(params: Any, call: str) -> dict[str, Any]:
    if not isinstance(params, Mapping) or not all(isinstance(name, str) for name in params):
        raise InvalidInput(
            f"{call}: params= takes values by name, such as params={{'day': date(2020, 1, 1)}}, "
            f"not {type(params).__name__}"
        )
    return dict(params)
