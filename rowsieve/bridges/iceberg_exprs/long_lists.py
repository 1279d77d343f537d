"""Long lists of pyiceberg's: a set of literal objects of one class, made and read all at once.

pyiceberg validates each literal three times and converts each when it binds, which takes ten
seconds for a million. Soundness: objects made here equal those that its constructors make, as the
first ones, which are made by them, show; and a list is read here only if pyiceberg would bind each
of its literals as it is.
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

LONG = 1_000  # members from which on a list is made or read here

# Literals that `to` returns as they are, for columns of these types. Numbers are looked at as well.
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
    """Literals of the first one's class, which pyiceberg made, for values of its type."""
    kind = type(first)
    blank: Any = kind.__new__
    with _without_collection():
        made = list(map(blank, repeat(kind, len(values))))
        _assign(made, "root", values)
        _assign(made, "__pydantic_fields_set__", repeat(first.__pydantic_fields_set__))
        return set(made)


def with_literals(predicate: Any, literals: set[Any]) -> Any:
    """The In or NotIn, just made of a few of the literals, with all of them instead."""
    predicate.__dict__["literals"] = literals
    return predicate


def bound_values(literals: set[Any], type_: LogicalType) -> list[Any] | None:
    """The values that bound literals for a column of this type have; None where that is not known.

    The column must not be a float of 32 bits, nor the literals of several classes.
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
    """`object.name = value` for each, past the models that are frozen once they are made."""
    deque(map(object.__setattr__, objects, repeat(name), values), maxlen=0)


@contextmanager
def _without_collection() -> Iterator[None]:
    """No search for cycles meanwhile: there are none, and it takes longer than the rest."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
