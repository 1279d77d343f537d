"""Which subjects a schema's statistics speak of: every field, nested ones included, and lengths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from rowsieve.stats.model import LENGTH, Derived, Subject
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field, Float, Int, List, LogicalType, Map, Struct, is_ordered


@dataclass(frozen=True, slots=True)
class Described:
    """A subject and the type of its values; `repeated`: inside a list or map, not one a row."""

    subject: Subject
    type: LogicalType
    repeated: bool = False

    @property
    def bound_type(self) -> pa.DataType | None:
        """The storage type of its bounds; None if its type has no order."""
        return arrow_type(self.type) if is_ordered(self.type) else None

    @property
    def has_nan(self) -> bool:
        """Whether its values may be NaN."""
        return isinstance(self.type, Float)


def describe(fields: Iterable[Field]) -> Iterator[Described]:
    """The subjects of these fields, parents before their members."""
    for field in fields:
        yield from _describe(field, repeated=False)


def _describe(field: Field, *, repeated: bool) -> Iterator[Described]:
    yield Described(field.id, field.type, repeated)
    match field.type:
        case Struct(fields=members):
            for member in members:
                yield from _describe(member, repeated=repeated)
        case List(element=element):
            yield Described(Derived(field.id, LENGTH), Int(), repeated)
            yield from _describe(element, repeated=True)
        case Map(key=key, value=value):
            yield Described(Derived(field.id, LENGTH), Int(), repeated)
            yield from _describe(key, repeated=True)
            yield from _describe(value, repeated=True)
        case _:
            return
