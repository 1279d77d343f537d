"""Functions as pyarrow's kernels: the row of a function reads and writes its calls.

`pyarrow_exprs.function_table` has the constructs with forms of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowsieve.types.logical import Decimal, Float, Int, LogicalType, String


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of ours as pyarrow calls it, and the types for which it gives our values.

    `options`: the values that its options must have. `constant`: the option that is our second
    argument; `default`: its value where we have no second argument. `is_condition`: it gives
    booleans.
    """

    name: str
    function: str
    kinds: tuple[type[LogicalType], ...]
    note: str
    options: Mapping[str, object] = field(default_factory=dict)
    constant: str = ""
    default: str | None = None
    is_condition: bool = False


_TO_EVEN = {"ndigits": 0, "round_mode": 8}  # halves
KERNELS: tuple[Kernel, ...] = (
    *(
        Kernel(f"{name}_checked", name, (Int, Float, Decimal), "of numbers")
        for name in ("negate", "abs")
    ),
    *(
        Kernel(name, name, (Float,), "of floats, without digits", _TO_EVEN)
        for name in ("floor", "ceil", "round")
    ),
    *(
        Kernel(f"utf8_{name}", name, (String,), "of text")
        for name in ("length", "lower", "upper", "reverse")
    ),
    *(
        Kernel(
            *(name, ours, (String,), "of text and a constant", {"ignore_case": False}),
            constant="pattern",
            is_condition=True,
        )
        for name, ours in (
            ("starts_with", "starts_with"),
            ("ends_with", "ends_with"),
            ("match_substring", "contains"),
        )
    ),
    *(
        Kernel(
            *(f"utf8_{name}", name, (String,), "with constant characters, a space here"),
            constant="characters",
            default=" ",
        )
        for name in ("trim", "ltrim", "rtrim")
    ),
)
BY_NAME: Mapping[str, Kernel] = {row.name: row for row in KERNELS}
BY_FUNCTION: Mapping[str, Kernel] = {row.function: row for row in KERNELS}
