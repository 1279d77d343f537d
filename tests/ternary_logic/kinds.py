"""The kinds of columns that random tables have, and the values that their rows draw from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Enum,
    Field,
    Float,
    Int,
    Interval,
    Json,
    List,
    LogicalType,
    Map,
    Nanos,
    Numeric,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema
from tests.predicate.functions.sample_ranges import pool
from tests.strategies import arrow_array

_YEARS = 3_000 * 366  # days around 1970 that every engine has
_YEARS_US = _YEARS * 86_400_000_000
_MIN_DAY, _LEAST_US = 2**31, 2**63  # negative: DuckDB ends at the least time
_LONG = "z" * 69  # as long as a bound of a text gets, and longer
_SPELT = ("0", "7", "-12", "007", "1e3", "2.5", "99999999999999999999", "1E-5", "+5", "3.0000")
_DOCUMENTS = (
    *('{"a": 1}', '{"a": "x", "b": [1, 2, {"c": null}]}', '{"a": null}', "{}", "[]", "null", '"s"'),
    *("1.5", '{"a": 1, "a": 2}', '{"a": 1e400}', '{"a": 12345678901234567890123}', '{"a": 0.1}'),
    *('{"a": {"b": "\\u0000"}}', '{"a": true, "b": {"c": -0.0}}', '{"a": "1"}', '{"b": "x"}'),
    *('{"a": "2024-01-01"}', "[1, 2, 3]", '{"": 1}', ' {"a" : 10 } ', '{"a": 9007199254740993}'),
    *('{"a": [1]}', '{"a": false}', "{"),
)
_MEMBERS = (
    *({"x": 1, "y": "a", "f": -0.0}, {"x": None, "y": None, "f": None}),
    *({"x": 2, "y": "", "f": 1.5}, {"x": -1, "y": "\U0010ffff", "f": float("nan")}),
)
_ITEMS: Sequence[Any] = ([], [None], [0, 1], [2**63 - 1, -(2**63)], [1, 2, 3])
_MAPS: Sequence[Any] = ([], [("a", 1)], [("a", None), ("", 0)], [("b", 5), ("a", 5)])
_STRUCT = Struct((Field(801, "x", Int(32)), Field(802, "y", String()), Field(803, "f", Float(64))))


@dataclass(frozen=True)
class Kind:
    """A kind of columns: its type, and values that are not NULL."""

    type: LogicalType
    values: Sequence[Any]

    @classmethod
    def of(cls, type_: LogicalType) -> Kind:
        """The kind of a type with all awkward values of its pool."""
        return cls(type_, pool(type_))


def _within(type_: LogicalType, most: int) -> Kind:
    return Kind(type_, [value for value in pool(type_) if abs(value) < most])


KINDS: Mapping[str, Kind] = {
    "b": Kind.of(Bool()),
    "i8": Kind.of(Int(8)),
    "i32": Kind.of(Int(32)),
    "i64": Kind.of(Int(64)),
    "u8": Kind.of(Int(8, signed=False)),
    "u64": Kind.of(Int(64, signed=False)),
    "f32": Kind(Float(32), [*pool(Float(32)), 1e-45, 16777217.0]),
    "f64": Kind(Float(64), [*pool(Float(64)), 0.1, 5e-324, 2.0**53, 2.0**63]),
    "d": Kind(Decimal(4, 2), pool(Decimal(4, 2))[1:-1]),
    "wide": Kind(Decimal(38, 2), pool(Decimal(38, 2))[1:-1]),
    "s": Kind(String(), [*pool(String()), _LONG, _LONG + "zy", "y" * 200 + "\U0010ffff", "a%"]),
    "t": Kind(String(), _SPELT),
    "bin": Kind(Binary(), [*pool(Binary()), b"\xff" * 80]),
    "day": _within(Date(), _YEARS),
    "time": Kind.of(Time()),
    "ts": _within(Timestamp(), _YEARS_US),
    "tz": _within(Timestamp(utc=True), _YEARS_US),
    "ns": _within(Nanos(), _YEARS_US * 1_000),
    "uid": Kind.of(Uuid()),
    "far_day": _within(Date(), _MIN_DAY),
    "far_ts": _within(Timestamp(utc=True), _LEAST_US),
    "j": Kind(Json(), _DOCUMENTS),
    "num": Kind.of(Numeric()),
    "iv": Kind.of(Interval()),
    "mood": Kind(Enum(("sad", "ok", "é")), ("sad", "ok", "é")),
    "st": Kind(
        _STRUCT,
        [
            {"x": x, "y": y, "f": f}
            for x, y, f in ((1, "a", -0.0), (None, None, None), (2, "", 1.5))
        ],
    ),
    "li": Kind(List(Field(811, "element", Int(64))), _ITEMS),
    "m": Kind(
        Map(Field(821, "key", String(), nullable=False), Field(822, "value", Int(64))), _MAPS
    ),
}
"""By the name of the column; a type that joins is one entry."""


def schema_of(names: tuple[str, ...], kinds: Mapping[str, Kind] = KINDS) -> Schema:
    """The schema of a table: the number `id`, then columns of these kinds."""
    fields = [Field(1, "id", Int(64), nullable=False)]
    fields += [Field(10 * i, name, kinds[name].type) for i, name in enumerate(names, 1)]
    return Schema(0, tuple(fields))


def arrow_rows(schema: Schema, cells: Mapping[str, Iterable[Any]]) -> pa.Table:
    """Physical values by column as Arrow data, as a table takes them."""
    arrays = [arrow_array(list(cells[field.name]), field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))
