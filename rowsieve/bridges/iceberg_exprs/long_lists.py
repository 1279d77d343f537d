"""Write and read long lists of pyiceberg, sets of literal objects of one class, in one step.

pyiceberg validates each literal three times and converts each when it binds, which takes ten
seconds for a million.

Soundness: objects made here equal those of pyiceberg's constructors, which make the first one. A
list is read here only if pyiceberg would bind each of its literals unchanged.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from operator import attrgetter
from typing import Any

from rowsieve.predicate.ir import PhysicalValue
from rowsieve.types.logical import (
    Binary,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)

LONG = 1_000  # members; shorter lists are written and read one by one

# Literals that binding keeps for columns of these types; the values of numbers are tested, too.
_AS_THEY_ARE: Mapping[str, tuple[LogicalType, ...] | type[LogicalType]] = {
    "LongLiteral": Int,
    "DoubleLiteral": (Float(64),),
    "DecimalLiteral": Decimal,
    "StringLiteral": (String(),),
    "BinaryLiteral": (Binary(),),
    "DateLiteral": (Date(),),
    "TimeLiteral": (Time(),),
    "TimestampLiteral": (Timestamp(), Timestamp(utc=True)),
    "UUIDLiteral": (Uuid(),),
}


def literal_set(first: Any, values: Sequence[PhysicalValue]) -> set[Any]:
    """Return literals of the first one's class, which pyiceberg made, for values of its type."""
    kind = type(first)
    blank: Any = kind.__new__
    with _without_collection():
        made = list(map(blank, repeat(kind, len(values))))
        _assign(made, "root", values)
        _assign(made, "__pydantic_fields_set__", repeat(first.__pydantic_fields_set__))
        return set(made)


def with_literals(predicate: Any, literals: set[Any]) -> Any:
    """Replace the literals of an In or NotIn that was made of a few of them."""
    predicate.__dict__["literals"] = literals
    return predicate


def bound_values(literals: set[Any], type_: LogicalType) -> list[Any] | None:
    """Return the values of literals bound to a column; None if binding may change them.

    Literals of several classes, and columns of float32, give None.
    """
    kinds = set(map(type, literals))
    if len(kinds) != 1:
        return None
    known = _AS_THEY_ARE.get(next(iter(kinds)).__name__)
    if known is None or not (type_ in known if isinstance(known, tuple) else type(type_) is known):
        return None
    values = list(map(attrgetter("root"), literals))
    match type_:
        case Int(bits=bits, signed=signed):
            narrow = bits < 32 or (bits == 32 and signed)  # an int of Iceberg's, else a long
            most = 2**31 if narrow else 2**63
            return values if -most <= min(values) and max(values) < most else None
        case Decimal(scale=scale):
            exponents = {value.as_tuple().exponent for value in values}
            return values if exponents == {-scale} else None
        case _:
            return values


def _assign(objects: list[Any], name: str, values: Iterable[Any]) -> None:
    """Assign an attribute of each object, although the models are frozen."""
    deque(map(object.__setattr__, objects, repeat(name), values), maxlen=0)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable garbage collection, which would take most of the time; no cycles are made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
