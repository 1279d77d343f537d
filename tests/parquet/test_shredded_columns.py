"""Facts of a JSON path come from bounds and counts, and fail open where these do not add up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rowsieve.parquet.leaf_columns import FileColumn
from rowsieve.parquet.shredded_columns import PathFacts, path_facts
from rowsieve.parquet.statistics.stored_bounds import StoredBounds
from rowsieve.stats.json_kinds import EVERYTHING, JsonKind
from rowsieve.stats.json_shredding import FIELDS, MAX_CHARACTERS

PHYSICAL = {"kinds": "INT32", "int": "INT64", "float": "DOUBLE", "string": "BYTE_ARRAY"}
COLUMNS = {
    name: FileColumn(index, name, type_, PHYSICAL[name], 0)
    for index, (name, type_) in enumerate(FIELDS.items())
}
ROWS = 10


def facts(**stored: tuple[int, Any, Any] | None) -> PathFacts:
    """The facts of 10 rows; a column has (values, lower, upper), or None for no statistics."""

    def read(column: FileColumn) -> StoredBounds:
        found = stored.get(column.name, (0, None, None))
        count, lower, upper = (ROWS + 1, None, None) if found is None else found
        return StoredBounds(
            np.array([ROWS]),
            np.array([ROWS - count]),
            np.array([lower is not None]),
            [lower],
            [upper],
        )

    return path_facts(COLUMNS, read)


def bounds(found: PathFacts, kind: str) -> tuple[Any, Any]:
    known = found.values[kind]
    assert known is not None
    return known.lower[0].as_py(), known.upper[0].as_py()


@pytest.mark.parametrize(
    ("lower", "upper", "kinds"),
    [
        (1, 1, JsonKind.MISSING),
        (4, 8, JsonKind.FALSE | JsonKind.TRUE),
        (1, 8, JsonKind.MISSING | JsonKind.NULL | JsonKind.FALSE | JsonKind.TRUE),
        (8, 256, JsonKind.TRUE | JsonKind.EXPONENT | JsonKind.LIST),
        (512, 1024, EVERYTHING),
        (3, 8, EVERYTHING),
        (8, 4, EVERYTHING),
        (0, 1, EVERYTHING),
        (16, 32, EVERYTHING),
        (1, 2048, EVERYTHING),
        (-1, 1, EVERYTHING),
        (None, None, EVERYTHING),
    ],
)
def test_kinds_between_the_bounds_occur(lower: int | None, upper: int | None, kinds: int) -> None:
    assert facts(kinds=(ROWS, lower, upper)).kinds.tolist() == [int(kinds)]


def test_values_have_a_kind_and_bounds() -> None:
    found = facts(int=(4, 3, 7), float=(3, 0.5, 1e300), string=(3, b"a", "é".encode()))
    assert found.kinds.tolist() == [int(JsonKind.INT | JsonKind.FLOAT | JsonKind.STRING)]
    assert bounds(found, "int") == (3, 7)
    assert bounds(found, "string") == ("a", "é")
    low, high = bounds(found, "float")  # long integers were rounded
    assert (low, high) == (math.nextafter(0.5, -1), math.nextafter(1e300, math.inf))


@pytest.mark.parametrize(
    "stored",
    [
        {"int": (9, 3, 7)},  # a row without a value
        {"int": (10, 3, 7), "kinds": None},
        {"int": (10, 3, 7), "string": None},
        {"int": (9, 3, 7), "kinds": (1, 1024, 1024)},
        {},
    ],
)
def test_nothing_is_known_where_counts_do_not_add_up(stored: dict[str, Any]) -> None:
    found = facts(**stored)
    assert found.kinds.tolist() == [EVERYTHING]
    for kind in ("int", "float", "string"):
        known = found.values[kind]
        assert known is None or not known.empty[0]
        assert known is None or bounds(found, kind) == (None, None)


@pytest.mark.parametrize(
    ("last", "upper"),
    [
        ("a" * (MAX_CHARACTERS - 1), "a" * (MAX_CHARACTERS - 1)),
        ("a" * MAX_CHARACTERS, "a" * (MAX_CHARACTERS - 1) + "b"),
        ("a" + "\U0010ffff" * (MAX_CHARACTERS - 1), "b"),
        ("\U0010ffff" * MAX_CHARACTERS, None),
    ],
)
def test_a_longest_string_stands_for_all_with_this_prefix(last: str, upper: str | None) -> None:
    found = facts(string=(ROWS, b"", last.encode()))
    assert bounds(found, "string") == ("", upper)
    assert upper is None or upper == last or upper > last + "\U0010ffff" * 3


def test_text_that_is_not_utf_8_has_no_bounds() -> None:
    found = facts(string=(ROWS, b"\xff", b"\xff"))
    assert found.values["string"] is None
    assert found.kinds.tolist() == [int(JsonKind.STRING)]
