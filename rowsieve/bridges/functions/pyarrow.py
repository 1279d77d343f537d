"""Functions as pyarrow's kernels: the row of a function reads and writes its calls.

`pyarrow_exprs.function_table` has the constructs with forms of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowsieve.bridges.functions.arguments import (
    Arguments,
    constant_text,
    of_text,
    one_float,
    one_type,
    replaced_not_empty,
    signed,
    sums,
)
from rowsieve.types.logical import Decimal, Float, Int, LogicalType, String


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function of ours as pyarrow calls it, and the arguments for which it gives our values.

    `kinds`: the types that are read. `meets`: arguments that pyarrow converts to one type are read
    only if we convert them alike. `options`: the values that its options must have. `constants`:
    the options that are our arguments after the first; `default`: what is passed where we have no
    such argument. `is_condition`: it gives booleans.
    """

    name: str
    function: str
    case: Arguments
    note: str
    kinds: tuple[type[LogicalType], ...] = (String,)
    meets: bool = False
    options: Mapping[str, object] = field(default_factory=dict)
    constants: tuple[str, ...] = ()
    default: tuple[str, ...] = ()
    is_condition: bool = False


_NUMBERS = (Int, Float, Decimal)
_NUMBER = "whole numbers of one sign, floats of one width, decimals of up to 38 digits"
_TO_EVEN = {"ndigits": 0, "round_mode": 8}  # halves
_wholes = Arguments("integers", lambda use: use.is_of_one_type and isinstance(use.result, Int))
_floats = Arguments("floats", lambda use: use.is_of_one_type and isinstance(use.result, Float))

SUMS = ("add", "subtract", "multiply")
KERNELS: tuple[Kernel, ...] = (
    *(Kernel(f"{name}_checked", name, sums, _NUMBER, (), meets=True) for name in SUMS),
    Kernel(
        *("divide_checked", "divide", _wholes, "integers; division by zero fails", (Int,)),
        meets=True,
    ),
    Kernel("divide", "divide", _floats, "of floats of one width", (Float,), meets=True),
    *(
        Kernel(f"{name}_checked", name, signed, "of numbers", _NUMBERS)
        for name in ("negate", "abs")
    ),
    *(
        Kernel(*(name, name, one_float, "of floats, without digits", (Float,)), options=_TO_EVEN)
        for name in ("floor", "ceil", "round")
    ),
    *(Kernel(name, name, one_float, "of floats", (Float,)) for name in ("ln", "exp")),
    Kernel("power", "power", _floats, "of floats of 64 bits", (Float,), meets=True),
    *(
        Kernel(f"utf8_{name}", name, of_text, "of text")
        for name in ("length", "lower", "upper", "reverse")
    ),
    *(
        Kernel(
            *(name, ours, constant_text, "of text and a constant"),
            options={"ignore_case": False},
            constants=("pattern",),
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
            *(f"utf8_{name}", name, constant_text, "with constant characters, a space here"),
            constants=("characters",),
            default=(" ",),
        )
        for name in ("trim", "ltrim", "rtrim")
    ),
    Kernel(
        *("binary_join_element_wise", "concat_strict", of_text),
        "of text, joined by constant empty text",
        default=("",),
    ),
    Kernel(
        *("replace_substring", "replace", constant_text & replaced_not_empty),
        "of text; all places; a constant that is not empty",
        constants=("pattern", "replacement"),
    ),
    Kernel("coalesce", "coalesce", one_type, "arguments of one type", ()),
)
BY_NAME: Mapping[str, Kernel] = {row.name: row for row in KERNELS}
BY_FUNCTION: Mapping[str, list[Kernel]] = {
    row.function: [other for other in KERNELS if other.function == row.function] for row in KERNELS
}
