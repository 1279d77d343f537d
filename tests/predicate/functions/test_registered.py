"""Functions of users: what they may be, how they fail, and what their claims do."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError, InvalidInput, InvalidPredicate, UnsoundPruning

pytestmark = pytest.mark.usefixtures("own_registry")


def doubled(values: pa.Array) -> pa.Array:
    return pc.multiply(values, 2)


def picky(values: pa.Array) -> pa.Array:
    if pc.any(pc.equal(values, 7)).as_py():
        raise ValueError("seven")
    return values


@pytest.fixture
def table() -> rs.Table:
    """Ten parts with the ids 0 to 9, 10 to 19, and so on."""
    found = rs.create_table(
        f"memory:///{uuid.uuid4().hex}",
        pa.schema([("id", pa.int64()), ("x", pa.float64())]),
        key=["id"],
    )
    for part in range(10):
        ids = list(range(part * 10, part * 10 + 10))
        found.upsert(pa.table({"id": ids, "x": [None if i % 5 == 0 else i / 2 for i in ids]}))
    return found


def ids(table: rs.Table, where: str, **options: Any) -> list[int]:
    return sorted(table.scan(where, **options).to_arrow().column("id").to_pylist())


def parts_read(table: rs.Table, where: str) -> int:
    return int(table.scan(where).explain().parts_read)


def test_a_function_without_claims_is_checked_on_every_row(table: rs.Table) -> None:
    rs.register_function("doubled", [pa.int64()], doubled, returns=pa.int64())
    assert ids(table, "doubled(id) = 84") == [42]
    assert parts_read(table, "doubled(id) = 84") == 10
    assert parts_read(table, "doubled(id) = 84 AND id > 40") == 6
    computed = table.scan("id = 3", columns={"y": "doubled(id)"}).to_arrow()
    assert computed.column("y").to_pylist() == [6]


def test_a_claim_of_monotony_skips_parts(table: rs.Table) -> None:
    rs.register_function(
        "twice", [pa.int64()], doubled, returns=pa.int64(), monotone="increasing", can_fail=False
    )
    rs.register_function(
        "less",
        [pa.int64(), pa.int64()],
        pc.subtract,
        returns=pa.int64(),
        monotone=("increasing", "decreasing"),
        can_fail=False,
    )
    assert ids(table, "twice(id) = 84") == [42]
    assert parts_read(table, "twice(id) = 84") == 1
    assert parts_read(table, "less(100, id) > 85") == 2
    assert ids(table, "less(100, id) > 97") == [0, 1, 2]


def test_a_false_claim_is_found_by_reading_softly(table: rs.Table) -> None:
    rs.register_function(
        "folded",
        [pa.int64()],
        lambda values: pc.abs(pc.subtract(values, 44)),
        returns=pa.int64(),
        monotone="increasing",
        can_fail=False,
    )
    with pytest.raises(UnsoundPruning):
        ids(table, "folded(id) < 3", pruning="soft")


def test_a_row_that_raises_fails_alone(table: rs.Table) -> None:
    rs.register_function("picky", [pa.int64()], picky, returns=pa.int64())
    assert ids(table, "picky(id) < 4 AND id <> 7") == [0, 1, 2, 3]
    with pytest.raises(EvaluationError):
        ids(table, "picky(id) < 4")


def test_null_arguments_give_null_unless_told_otherwise(table: rs.Table) -> None:
    rs.register_function(
        "half",
        [pa.float64()],
        lambda values: pc.divide(values, 2.0),
        returns=pa.float64(),
        monotone="increasing",
        can_fail=False,
    )
    rs.register_function(
        "filled",
        [pa.float64()],
        lambda values: pc.fill_null(values, -1.0),
        returns=pa.float64(),
        monotone="increasing",
        can_fail=False,
        nulls_give_null=False,
    )
    assert ids(table, "half(x) IS NULL AND id < 20") == [0, 5, 10, 15]
    assert ids(table, "filled(x) = -1 AND id < 20") == [0, 5, 10, 15]
    assert parts_read(table, "filled(x) = -1") == 10


def test_arguments_are_converted_where_nothing_is_lost(table: rs.Table) -> None:
    rs.register_function("wide", [pa.int64()], doubled, returns=pa.int64())
    assert ids(table, "wide(CAST(id AS smallint)) = 4") == [2]
    with pytest.raises(InvalidPredicate, match=r"wide\(int64\)"):
        ids(table, "wide(x) = 4")
    with pytest.raises(InvalidPredicate, match=r"wide\(int64\)"):
        ids(table, "wide(id, id) = 4")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lower", {}, "built in"),
        ("Mine", {}, "in lower case"),
        ("mine", {"monotone": "up"}, "'increasing', 'decreasing' or None"),
        ("mine", {"monotone": ("increasing",) * 2}, "each of its 1"),
        ("mine", {"types": ["int64"]}, r"types\[0\] is 'int64' .* pyarrow types"),
    ],
)
def test_invalid_registrations_are_rejected(
    name: str, options: dict[str, Any], message: str
) -> None:
    given = {"types": [pa.int64()], "returns": pa.int64(), **options}
    with pytest.raises(InvalidInput, match=message):
        rs.register_function(name, evaluator=doubled, **given)


def test_a_name_is_registered_once() -> None:
    rs.register_function("once", [pa.int64()], doubled, returns=pa.int64())
    with pytest.raises(InvalidInput, match="registered already"):
        rs.register_function("once", [pa.int64()], doubled, returns=pa.int64())


@pytest.mark.parametrize(
    "result", [pa.array([1]), pa.array(["x"] * 10), [1] * 10, np.arange(10)], ids=str
)
def test_invalid_results_of_a_function_are_rejected(table: rs.Table, result: Any) -> None:
    rs.register_function("wrong", [pa.int64()], lambda _: result, returns=pa.int64())
    with pytest.raises(InvalidInput, match="return an Arrow array"):
        ids(table, "wrong(id) = 1 AND id < 10")
