"""Long lists of a Connect client all at once: constants that say their type in the same way.

Soundness: of each kind one constant is resolved as any expression is; the others differ from it in
their value alone. A list with any other expression in it is None, and resolved one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rowsieve.bridges.spark_columns.connect_times import check_moments
from rowsieve.bridges.spark_columns.values import plain_type, widens
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Float, Int, LogicalType, String, type_name

# What a client's constant is by the class of its type; others have parameters.
_TYPES: Mapping[str, LogicalType | None] = {
    "NullType": None,
    "ByteType": Int(8),
    "ShortType": Int(16),
    "IntegerType": Int(32),
    "LongType": Int(64),
    "DoubleType": Float(64),
    "StringType": String(),
    "DateType": Date(),
}
_MOST_KINDS = 4  # whole numbers are of two types, and some are NULL


@dataclass(frozen=True, slots=True)
class Kind:
    """Constants of one type; `example` is one of them as it stands there, maybe cast."""

    example: Any
    type: LogicalType | None
    values: list[Any] = field(default_factory=list)

    def as_type(self, cast: LogicalType | None, target: LogicalType) -> pa.Array | None:
        """The constants as they are cast, in the type that Spark found for the whole list.

        None where either step may change a value or fail.
        """
        if self.type is None:
            return pa.nulls(len(self.values), arrow_type(target))
        if cast is None or not _holds(cast, self.type) or not _holds(target, cast):
            return None
        check_moments(type_name(self.type), self.values)
        storage = arrow_type(self.type)
        return pa.array(self.values, plain_type(self.type)).view(storage).cast(arrow_type(target))


def _holds(wide: LogicalType, narrow: LogicalType) -> bool:
    return wide == narrow or (isinstance(wide, Int) and widens(narrow, wide))


def kinds_of(expressions: Sequence[Any]) -> list[Kind] | None:
    """The constants by the way in which they say their type; None if some are none."""
    found: dict[tuple[Any, ...], Kind] = {}
    for expression in expressions:
        literal, cast = expression, None
        if type(expression).__name__ == "CastExpression":
            literal, cast = expression._expr, expression
        if type(literal).__name__ != "LiteralExpression":
            return None
        said = literal._dataType
        key = (
            type(said),
            getattr(said, "collation", None),
            None if cast is None else (str(cast._data_type), cast._eval_mode),
        )
        if (kind := found.get(key)) is None:
            name = type(said).__name__
            if name not in _TYPES or len(found) == _MOST_KINDS:
                return None
            kind = found[key] = Kind(expression, _TYPES[name])
        kind.values.append(literal._value)
    return list(found.values())
