"""Functions as pyarrow's kernels: the row of a function reads and writes its calls.

`pyarrow_exprs.function_table` has the constructs with forms of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowsieve.bridges.functions.arguments import (
    Arguments,
    TypedCall,
    constant_text,
    not_unsigned,
    of_text,
    one_float,
    one_type,
    replaced_not_empty,
    signed,
    sums,
)
from rowsieve.predicate import ir
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


_REORDERED = ("add", "multiply")


def keeps_order(call: TypedCall) -> bool:
    """Return whether pyarrow computes a sum or a product in the order in which it is written.

    It makes a chain of one of these functions start on the left, with all constants first (Arrow
    C++ 26, `Canonicalize` in compute/expression.cc): `(x + 1e16) + -1e16` is `x` there.
    """
    if call.call.function not in _REORDERED:
        return True
    first, second = (_of_chain(each) for each in call.call.arguments)

    def is_chain(node: ir.Node) -> bool:
        return isinstance(node, ir.Call) and node.function == call.call.function

    return not is_chain(second) and not (is_chain(first) and _is_constant(second))


def _of_chain(node: ir.Operand) -> ir.Operand:
    """Return the value of a cast: one to its own type has no effect there."""
    return _of_chain(node.operand) if isinstance(node, ir.Cast) else node


def _is_constant(node: ir.Node) -> bool:
    return not any(isinstance(each, ir.Column | ir.BoundColumn) for each in ir.walk(node))


in_order = Arguments("in the order in which pyarrow computes them", keeps_order)
_NUMBERS = (Int, Float, Decimal)
_NUMBER = (
    "whole numbers of one sign, floats of one width, decimals of up to 38 digits; no constant "
    "after a sum in a sum, or after a product in a product"
)
_TO_EVEN = {"ndigits": 0, "round_mode": 8}  # halves
_wholes = Arguments("integers", lambda call: call.is_of_one_type and isinstance(call.result, Int))
_floats = Arguments("floats", lambda call: call.is_of_one_type and isinstance(call.result, Float))

SUMS = ("add", "subtract", "multiply")
KERNELS: tuple[Kernel, ...] = (
    *(Kernel(f"{name}_checked", name, sums & in_order, _NUMBER, (), meets=True) for name in SUMS),
    Kernel(
        *("divide_checked", "divide", _wholes, "integers; division by zero fails", (Int,)),
        meets=True,
    ),
    Kernel("divide", "divide", _floats, "of floats of one width", (Float,), meets=True),
    Kernel("negate_checked", "negate", signed & not_unsigned, "of signed numbers", _NUMBERS),
    Kernel("abs_checked", "abs", signed, "of numbers", _NUMBERS),
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
