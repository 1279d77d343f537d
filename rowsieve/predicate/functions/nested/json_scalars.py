"""Numbers and booleans that are JSON values, as PostgreSQL 18 casts `jsonb` to them.

JSON null, and text that is not JSON, is NULL. A value of another kind fails: the string "1" is not
a number. A number keeps all of its digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, as_mask, null_mask, without
from rowsieve.predicate.functions.nested.json_access import is_json
from rowsieve.predicate.functions.row import Argument, Function, NullRule, Signature
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Bool, Decimal, Float, Int, Json, LogicalType, Numeric
from rowsieve.types.numeric_bytes import parsed

NUMBER, TRUTH = "json_number", "json_boolean"
_NUMERAL = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_TRUTH = "^(?:true|false)$"


def as_scalar(target: LogicalType) -> bool:
    """Return whether a JSON value is cast to this type by its number or boolean."""
    return isinstance(target, Bool | Int | Float | Decimal | Numeric)


def function_for(target: LogicalType) -> str:
    """Return the function whose result is cast to the target type."""
    return TRUTH if isinstance(target, Bool) else NUMBER


def _number(texts: pa.Array) -> pa.Array:
    numbers, fine = parsed(without(texts, ~as_mask(pc.match_substring_regex(texts, _NUMERAL))))
    return without(numbers, ~fine)


def _truth(texts: pa.Array) -> pa.Array:
    booleans = without(texts, ~as_mask(pc.match_substring_regex(texts, _TRUTH)))
    return pc.equal(booleans, "true")


def _evaluator(read: Callable[[pa.Array], pa.Array]) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
        texts = pc.utf8_trim(arguments[0].cast(pa.string()), " \t\n\r")
        scalars = read(texts)
        others = ~null_mask(texts) & null_mask(scalars) & ~as_mask(pc.equal(texts, "null"))
        if others.any():  # text that is not JSON has no values
            odd = pc.fill_null(without(texts, ~others), "")
            others &= as_mask(pa.array([bool(text) and is_json(text) for text in odd.to_pylist()]))
        return Computed(scalars, others if others.any() else None)

    return evaluate


def _row(name: str, result: LogicalType, read: Callable[[pa.Array], pa.Array]) -> Function:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if len(arguments) != 1 or not isinstance(arguments[0].type, Json):
            return None
        return Signature((Json(),), result)

    return Function(f"{name}(json)", resolve, _evaluator(read), nulls=NullRule.PARTIAL)


ROWS = (_row(NUMBER, Numeric(), _number), _row(TRUTH, Bool(), _truth))
