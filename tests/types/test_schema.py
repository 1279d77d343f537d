"""A table's schema: columns by name, however many there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowsieve.errors import UnknownColumn
from rowsieve.types.logical import Field, Int, String
from rowsieve.types.schema import Schema

WIDE = 1_000


class Counted(str):
    """A name that counts how often a name is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def wide() -> Schema:
    return Schema(0, tuple(Field(i + 1, Counted(f"c{i}"), Int()) for i in range(WIDE)))


def test_selecting_all_columns_takes_work_linear_in_their_number() -> None:
    schema = wide()
    Counted.compared = 0
    assert len(schema.select(tuple(f"c{i}" for i in range(WIDE)))) == WIDE
    assert Counted.compared <= 2 * WIDE


def test_a_name_matches_exactly_or_else_the_only_one_in_another_case() -> None:
    fields = (Field(1, "a", Int()), Field(2, "A", String()), Field(3, "b", Int()))
    schema = Schema(0, fields)
    assert [schema.field(name).id for name in ("a", "A", "b", "B")] == [1, 2, 3, 3]
    with pytest.raises(UnknownColumn, match="did you mean 'b'"):
        schema.field("bb")
    with pytest.raises(UnknownColumn, match="ambiguous"):
        Schema(0, (*fields[:2], Field(3, "ab", Int()), Field(4, "AB", Int()))).field("Ab")


def test_a_schema_is_its_id_and_fields_whatever_was_looked_up() -> None:
    first, second = wide(), wide()
    assert first.field("c7").id == 8
    assert (first, hash(first), repr(first)) == (second, hash(second), repr(second))
    changed = replace(first, fields=first.fields[:3])
    assert changed != first
    with pytest.raises(UnknownColumn):
        changed.field("c7")
