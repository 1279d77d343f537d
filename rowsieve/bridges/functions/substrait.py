"""Functions of Substrait's standard files: the row of a function reads and writes its calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rowsieve.bridges.functions.arguments import Arguments, constant_text, one_type
from rowsieve.types.logical import Int

COMPARISON, BOOLEAN = "functions_comparison", "functions_boolean"
ARITHMETIC, STRING, DATETIME = "functions_arithmetic", "functions_string", "functions_datetime"


@dataclass(frozen=True, slots=True)
class Function:
    """A function of ours under the same name, and the arguments for which it gives our values.

    `option`: name and value of its option; `default`: the value of a message without the option.
    `count`: the number of arguments, None for any. `writes`: a narrower condition for writing.
    """

    name: str
    file: str
    case: Arguments
    option: tuple[str, str] | None = None
    default: str = ""
    count: int | None = 2
    writes: Arguments | None = None

    @property
    def text(self) -> str:
        """Return the condition on arguments and option, as it follows "only for"."""
        return self.case.text + (f", with {'='.join(self.option)}" if self.option else "")

    def has_option(self, options: Mapping[str, list[str]]) -> bool:
        """Whether a call with these options gives our values."""
        return self.option is None or options.get(self.option[0], [self.default]) == [
            self.option[1]
        ]


_whole = Arguments(
    "whole numbers of one type", lambda call: call.is_of_one_type and isinstance(call.result, Int)
)
_signed = Arguments(
    "signed numbers of one type",
    lambda call: call.is_of_one_type and isinstance(call.result, Int) and call.result.signed,
)
_CASE, _SENSITIVE = "case_sensitivity", "CASE_SENSITIVE"

ROWS: Mapping[str, Function] = {
    row.name: row
    for row in (
        *(
            Function(name, STRING, constant_text, (_CASE, _SENSITIVE), default=_SENSITIVE)
            for name in ("starts_with", "ends_with", "contains")
        ),
        *(
            Function(name, ARITHMETIC, _whole, ("overflow", "ERROR"), writes=_signed)
            for name in ("add", "subtract", "multiply")
        ),
        Function("coalesce", COMPARISON, one_type, count=None),
    )
}
