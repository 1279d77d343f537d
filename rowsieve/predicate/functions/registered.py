"""Functions that users register, in addition to the built-in functions.

Soundness: a function without claims may return anything, NULL or an error, so conditions on it are
evaluated on every row that other conditions do not exclude, and prune nothing. A false claim hides
rows; `scan(pruning="soft")` detects it. An exception counts only for the rows that cause it, by
bisecting the batch, so a row that other conditions exclude raises nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
import pyarrow as pa

from rowsieve.arguments import Example, checked
from rowsieve.errors import InvalidInput
from rowsieve.predicate.arrays import Computed, Mask, null_mask, without
from rowsieve.predicate.functions.casting.casts import cast_rule
from rowsieve.predicate.functions.registry import BUILT_IN, FUNCTIONS, add_row
from rowsieve.predicate.functions.row import (
    Argument,
    Direction,
    Evaluator,
    Function,
    NullRule,
    Resolver,
    Signature,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type, logical_type
from rowsieve.types.logical import LogicalType, type_name

UserFunction: TypeAlias = Callable[..., pa.Array]

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_DIRECTIONS = {
    None: Direction.NONE,
    "increasing": Direction.INCREASING,
    "decreasing": Direction.DECREASING,
}


@checked
def register_function(
    name: str,
    types: Annotated[Sequence[pa.DataType], Example("[pa.int64()]", "a list of pyarrow types")],
    evaluator: UserFunction,
    *,
    returns: Annotated[pa.DataType, Example("pa.int64()", "a pyarrow type")],
    monotone: Sequence[str | None] | str | None = None,
    can_fail: bool = True,
    nulls_give_null: bool = True,
) -> None:
    """Register a function for conditions and expressions in this process.

    `evaluator` takes one Arrow array per argument, of the given `types`, and returns an array of
    the type `returns` and the same length. The same arguments must always give the same result. If
    it raises, the rows that cause the exception have failed. `monotone` claims for each argument
    that the result never falls ("increasing") or never rises ("decreasing") in it while the other
    arguments are fixed, and that the result is defined between any two arguments for which it is
    defined; None claims nothing. `can_fail=False` claims that it never raises. Unless
    `nulls_give_null` is false, a NULL argument gives NULL.

    Other processes, such as Spark's workers, must register it too. `InvalidInput` for a name that
    is taken or a type that no column can have.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"a function is named like other_name, in lower case, not {name!r}")
    if name in FUNCTIONS:
        kind = "built in" if name in BUILT_IN else "registered already"
        raise InvalidInput(f"the function {name!r} is {kind}; choose another name")
    arguments = tuple(_logical(type_, name) for type_ in types)
    signature = Signature(arguments, _logical(returns, name))
    shown = ", ".join(type_name(type_) for type_ in arguments)
    directions = _directions(name, monotone, len(arguments))
    add_row(
        Function(
            f"{name}({shown})",
            _resolver(signature),
            _evaluator(name, evaluator, skips_nulls=nulls_give_null),
            direction=lambda _: directions,
            can_fail=lambda _: can_fail,
            nulls=NullRule.PARTIAL if nulls_give_null else NullRule.ANY,
        )
    )


def _logical(type_: pa.DataType, name: str) -> LogicalType:
    return logical_type(pa.field(name, type_), lambda: 0)


def _directions(
    name: str, monotone: Sequence[str | None] | str | None, count: int
) -> tuple[Direction, ...]:
    directions = (
        [monotone] * count if monotone is None or isinstance(monotone, str) else [*monotone]
    )
    if len(directions) != count or any(each not in _DIRECTIONS for each in directions):
        raise InvalidInput(
            f"monotone of {name!r} is 'increasing', 'decreasing' or None for each of its {count} "
            f"arguments, not {monotone!r}"
        )
    return tuple(_DIRECTIONS[each] for each in directions)


def _resolver(signature: Signature) -> Resolver:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if len(arguments) != len(signature.arguments):
            return None
        for argument, wanted in zip(arguments, signature.arguments, strict=True):
            if argument.type is None or argument.type == wanted:
                continue
            rule = cast_rule(argument.type, wanted)
            if rule is None or (rule.can_fail and not argument.is_constant):
                return None
        return signature

    return resolve


def _evaluator(name: str, function: UserFunction, *, skips_nulls: bool) -> Evaluator:
    def evaluate(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
        wanted = arrow_type(signature.result)
        row_count = len(arguments[0]) if arguments else 1
        nulls = np.zeros(row_count, dtype=np.bool_)
        if skips_nulls:
            nulls = np.logical_or.reduce([nulls, *(null_mask(each) for each in arguments)])
        present = [each.filter(pa.array(~nulls)) for each in arguments]
        values, failed = _guarded(name, function, present, wanted)
        places = np.cumsum(~nulls) - 1
        back = values.take(pa.array(np.where(nulls, 0, places), mask=nulls))
        spread = np.zeros(row_count, dtype=np.bool_)
        spread[~nulls] = failed
        return Computed(without(back, spread), spread if spread.any() else None)

    return evaluate


def _guarded(
    name: str, function: UserFunction, arguments: list[pa.Array], wanted: pa.DataType
) -> tuple[pa.Array, Mask]:
    """Return the values, and the mask of rows on which the function raises."""
    row_count = len(arguments[0]) if arguments else 1
    if not row_count:
        return pa.nulls(0, wanted), np.zeros(0, dtype=np.bool_)
    try:
        values = function(*arguments)
    except Exception:
        if row_count == 1:
            return pa.nulls(1, wanted), np.ones(1, dtype=np.bool_)
        middle = row_count // 2
        halves = [
            _guarded(name, function, [each.slice(start, length) for each in arguments], wanted)
            for start, length in ((0, middle), (middle, row_count - middle))
        ]
        return (
            pa.concat_arrays([values for values, _ in halves]),
            np.concatenate([failed for _, failed in halves]),
        )
    return _checked(name, values, row_count, wanted), np.zeros(row_count, dtype=np.bool_)


def _checked(name: str, values: Any, row_count: int, wanted: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not isinstance(values, pa.Array) or len(values) != row_count or values.type != wanted:
        actual = getattr(values, "type", type(values).__name__)
        count = len(values) if isinstance(values, pa.Array) else "no"
        raise InvalidInput(
            f"the function {name!r} gave {count} values of {actual} for {row_count} rows where "
            f"{wanted} is wanted; return an Arrow array of that type, one value a row"
        )
    return values
