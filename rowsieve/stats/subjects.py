"""Lists the subjects of statistics: every field, nested fields included, and derived values.

Values that are derived from a field:

- `length`: the length of a list or map;
- `interval_us`: the length of an interval in microseconds, which SQL compares;
- `numeric_bytes`, `numeric_approx`: the exact bytes of an unbounded number, and its float;
- `st_xmin`, `st_ymin`, `st_xmax`, `st_ymax`: the extent of a geometry, NULL where it has none;
- `as_int`, `as_number`: numbers in text; known only if every text of the part is a number;
- `as_upper`, `as_lower`: text in one case; known only if all text of the part is ASCII;
- `json/a/b`: the kinds of values at a JSON path; `json/a/b:int`, `:float`, `:string`: the values
  of that kind. `[0]` to `[7]` are elements of a list, `[*]` is all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.functions.casting.unbounded_numbers import APPROX_TYPE, EXACT_TYPE
from rowsieve.predicate.functions.times.interval_length import LENGTH_TYPE
from rowsieve.stats.model import Derived, Subject
from rowsieve.types import logical
from rowsieve.types.alias_forms.wkb import SIDES, side_of
from rowsieve.types.aliases import GEOMETRY
from rowsieve.types.encodings import arrow_type
from rowsieve.types.interval_bytes import total_us
from rowsieve.types.numeric_bytes import approx_of, exact_of

LENGTH: Final = "length"
AS_INT: Final = "as_int"
AS_NUMBER: Final = "as_number"
AS_UPPER: Final = "as_upper"
AS_LOWER: Final = "as_lower"
TEXT_FACTS: Final = frozenset({AS_INT, AS_NUMBER, AS_UPPER, AS_LOWER})
JSON: Final = "json"


@dataclass(frozen=True, slots=True)
class Comparable:
    """A function whose values conditions compare instead of the stored ones: name, type, kernel."""

    what: str
    type: logical.LogicalType
    kernel: Callable[[pa.Array], pa.Array]


COMPARABLES: Mapping[type[logical.LogicalType], tuple[Comparable, ...]] = {
    logical.Interval: (Comparable("interval_us", LENGTH_TYPE, total_us),),
    logical.Numeric: (
        Comparable("numeric_bytes", EXACT_TYPE, exact_of),
        Comparable("numeric_approx", APPROX_TYPE, approx_of),
    ),
}
"""By type, the subjects of its statistics that have bounds."""

EXTENTS: Final = tuple(
    Comparable(side, logical.Float(64), partial(side_of, side=side)) for side in SIDES
)
"""The subjects of a column of geometries."""


def comparables(column: logical.Field) -> tuple[Comparable, ...]:
    """Return the derived subjects of a field that have bounds."""
    return EXTENTS if column.alias == GEOMETRY else COMPARABLES.get(type(column.type), ())


_DERIVED: dict[str, logical.LogicalType] = {
    LENGTH: logical.Int(),
    **{each.what: each.type for group in (*COMPARABLES.values(), EXTENTS) for each in group},
    AS_INT: logical.Int(),
    AS_NUMBER: logical.ANY_DECIMAL,
    AS_UPPER: logical.String(),
    AS_LOWER: logical.String(),
}
_OF_KIND: dict[str, logical.LogicalType] = {
    "int": logical.Int(),
    "float": logical.Float(),
    "string": logical.String(),
}


def _same(values: Any) -> Any:
    return values


@dataclass(frozen=True, slots=True)
class Described:
    """A subject and the type of its values; `repeated`: in a list or map, not one per row.

    `float_since`: in parts of schemas before this one the values were integers. The values are
    `of_parent` of those of the subject `parent`, which is described before; a column has none.
    """

    subject: Subject
    type: logical.LogicalType
    repeated: bool = False
    float_since: int = 0
    parent: Subject | None = None
    of_parent: Callable[[Any], Any] = field(default=_same, compare=False)

    @property
    def bound_type(self) -> pa.DataType | None:
        """The storage type of the bounds; None if the subject's type has no order."""
        return arrow_type(self.type) if logical.is_ordered(self.type) else None

    @property
    def facts(self) -> list[tuple[str, pa.DataType]]:
        """The names of the subject's facts, with their types in the manifest."""
        if isinstance(self.subject, Derived) and isinstance(self.type, logical.Json):
            return [("kinds", pa.int64())]
        return _facts(self.bound_type, isinstance(self.type, logical.Float), self.repeated)


@lru_cache(maxsize=64)
def _facts(
    bound: pa.DataType | None, is_float: bool, repeated: bool
) -> list[tuple[str, pa.DataType]]:
    facts = [("null_count", pa.int64())]
    if bound is not None:
        facts += [("lower", bound), ("upper", bound)]
        facts += [("lower_exact", pa.bool_()), ("upper_exact", pa.bool_())]
    if is_float:
        facts.append(("nan_count", pa.int64()))
    if repeated:
        facts.append(("value_count", pa.int64()))
    return facts


def describe(fields: Iterable[logical.Field]) -> Iterator[Described]:
    """The subjects of these columns, parents before the fields inside them."""
    for column in fields:
        yield from _described(
            Described(column.id, column.type, float_since=column.float_since), column
        )


def _described(own: Described, column: logical.Field) -> Iterator[Described]:
    """A field's own subject, the values that are derived from it, and the fields inside it."""
    yield own
    id_, repeated = column.id, own.repeated
    for each in comparables(column):
        values = partial(_by_chunks, each.kernel, arrow_type(each.type))
        yield Described(Derived(id_, each.what), each.type, repeated, 0, id_, values)
    match column.type:
        case logical.Struct(fields=members):
            for place, member in enumerate(members):
                yield from _inside(member, column, partial(_member, place), repeated=repeated)
        case logical.List(element=element):
            yield Described(Derived(id_, LENGTH), logical.Int(), repeated, 0, id_, _lengths)
            yield from _inside(element, column, pc.list_flatten, repeated=True)
        case logical.Map(key=key, value=value):
            yield Described(Derived(id_, LENGTH), logical.Int(), repeated, 0, id_, _lengths)
            for place, member in enumerate((key, value)):
                yield from _inside(member, column, partial(_member_of_pairs, place), repeated=True)


def _inside(
    member: logical.Field, of: logical.Field, values: Callable[[Any], Any], *, repeated: bool
) -> Iterator[Described]:
    own = Described(member.id, member.type, repeated, member.float_since, of.id, values)
    return _described(own, member)


def _by_chunks(kernel: Callable[[pa.Array], pa.Array], type_: pa.DataType, values: Any) -> Any:
    if not isinstance(values, pa.ChunkedArray):
        return kernel(values)
    return pa.chunked_array([kernel(chunk) for chunk in values.chunks], type_)


def _member(place: int, values: Any) -> Any:
    return pc.struct_field(values, [place])


def _lengths(values: Any) -> Any:
    lists = _as_list_of_pairs(values) if pa.types.is_map(values.type) else values
    return pc.list_value_length(lists).cast(pa.int64())


def _member_of_pairs(place: int, values: Any) -> Any:
    return pc.struct_field(pc.list_flatten(_as_list_of_pairs(values)), [place])


def _as_list_of_pairs(values: Any) -> Any:
    """Convert maps to lists of structs, whose values Arrow can access."""
    key = pa.field("key", values.type.key_type, nullable=False)
    value = pa.field("value", values.type.item_type)
    return values.cast(pa.list_(pa.struct([key, value])))


def derived(subject: Derived) -> Described | None:
    """Describe a derived subject of a field with one value per row; None if `what` is unknown."""
    what, _, kind = subject.what.partition(":")
    if what.startswith(JSON):
        type_ = _OF_KIND.get(kind) if kind else logical.Json()
    else:
        type_ = _DERIVED.get(subject.what)
    return None if type_ is None else Described(subject, type_)
