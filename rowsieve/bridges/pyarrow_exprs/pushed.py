"""The pyarrow expressions that DataFusion pushes down, as predicates.

DataFusion means SQL by the expressions that it builds: NULL IN (…) is NULL, and NaN is above all
other numbers. Soundness: every node and option is known here or the whole expression is refused, by
`UnsupportedOperation`; nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.pyarrow_exprs.literals import literal_of, stored
from rowsieve.bridges.pyarrow_exprs.nodes import (
    Frame,
    as_operand,
    as_predicate,
    decode,
    junction,
    truth,
)
from rowsieve.bridges.pyarrow_exprs.table import ARITHMETIC, COMPARISONS
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import (
    And,
    Call,
    Comparison,
    InList,
    IsNull,
    Not,
    Operand,
    Or,
    Predicate,
    ValueSet,
)


def pushed_predicate(expression: pc.Expression) -> Predicate:
    """Read an expression as DataFusion means it; literals get their types and physical values."""
    return as_predicate(decode(expression, _call))


def _call(frame: Frame) -> Predicate | Operand:
    name, arguments = frame.function, frame.arguments
    options = {} if frame.options is None else dict(frame.options.items())
    options.pop("_type_name", None)
    if name == "is_in":
        return _is_in(as_operand(arguments[0]), options)
    if name == "is_null" and not truth(options.pop("nan_is_null", None)):
        _refuse_options(name, options)
        return IsNull(as_operand(arguments[0]))
    if name == "starts_with" and not truth(options.pop("ignore_case", None)):
        prefix = literal_of(pa.array([options.pop("pattern").as_py()], pa.string()))
        _refuse_options(name, options)
        return Call("starts_with", (as_operand(arguments[0]), prefix))
    if name in ARITHMETIC or name in _CALLS:
        if name in _CALLS:
            _refuse_options(name, options)
            return _CALLS[name](arguments)
        return Call(ARITHMETIC[name], tuple(map(as_operand, arguments)))
    if (op := COMPARISONS.get(name)) is not None:
        _refuse_options(name, options)
        left, right = map(as_operand, arguments)
        return Comparison(op, left, right)
    raise UnsupportedOperation(
        f"the pyarrow function {name!r}{' with these options' if options else ''} has no "
        "counterpart here; write the condition as SQL text"
    )


def _is_in(operand: Operand, options: dict[str, pa.Scalar]) -> Predicate:
    members = options.pop("value_set").values
    options.pop("null_matching_behavior")
    _refuse_options("is_in", options)
    return InList(operand, ValueSet(*stored(members)))


_CALLS: Mapping[str, Callable[[list[Any]], Predicate]] = {
    "and_kleene": junction(And),
    "or_kleene": junction(Or),
    "invert": lambda arguments: Not(as_predicate(arguments[0])),
    "is_valid": lambda arguments: Not(IsNull(as_operand(arguments[0]))),
}


def _refuse_options(name: str, options: Mapping[str, Any]) -> None:
    if options:
        raise UnsupportedOperation(
            f"the pyarrow function {name!r} has the option {next(iter(options))!r}, which has no "
            "counterpart here"
        )
