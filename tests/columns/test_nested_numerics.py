"""Unbounded numbers inside lists, structs and maps: writes, conditions, pruning, schema changes."""

from __future__ import annotations

import decimal
import random
from operator import eq, gt, le
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate, SchemaMismatch
from rowsieve.types.numeric_bytes import to_text

D = decimal.Decimal
_TEXTS = ["0", "-1", "1.5", "2", "1e400", "-1e400", "9007199254740993", "9" * 60, "1e-50", None]
_NUMBER = pa.field("n", pa.string(), metadata={"ARROW:extension:name": "rowsieve.numeric.1"})
_COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("s", pa.struct([_NUMBER])),
        pa.field("l", pa.list_(_NUMBER.with_name("item"))),
        pa.field("m", pa.map_(pa.string(), _NUMBER.with_name("value"))),
        pa.field("ls", pa.list_(pa.struct([_NUMBER]))),
    ]
)
_CHOOSER = random.Random(5)
_ROWS: list[str | None] = [_CHOOSER.choice(_TEXTS) for _ in range(60)]


def _nested(texts: list[str | None], first: int) -> pa.Table:
    """Each text in every column; a NULL is now a member, now the column, now an empty list."""
    ids = range(first, first + len(texts))

    def column(make: Any, none: Any) -> list[Any]:
        """`none` or NULL in two of three rows without a number."""
        return [
            make(text) if text is not None or id_ % 3 == 0 else (None, none)[id_ % 3 - 1]
            for id_, text in zip(ids, texts, strict=True)
        ]

    return pa.table(
        {
            "id": ids,
            "s": column(lambda text: {"n": text}, {"n": None}),
            "l": column(lambda text: [text, "7"], []),
            "m": column(lambda text: [("k", text)], []),
            "ls": column(lambda text: [{"n": text}], []),
        },
        schema=_COLUMNS,
    )


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    table = rs.create_table(str(tmp_path_factory.mktemp("n") / "t"), _COLUMNS, key=["id"])
    for first in range(0, len(_ROWS), 20):
        table.upsert(_nested(_ROWS[first : first + 20], first))
    return table


def _kept(table: rs.Table, where: str, **settings: Any) -> list[int]:
    return sorted(table.scan(where=where, **settings).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    ("operand", "dialect"),
    [
        ("(s).n", "postgres"),
        ("s.n", "duckdb"),
        ("l[1]", "postgres"),
        ("l[1]", "duckdb"),
        ("m['k']", "duckdb"),
        ("ls[1].n", "duckdb"),
        ("(ls[1]).n", "postgres"),
    ],
)
def test_conditions_compare_numbers_inside_columns_exactly(
    nested: rs.Table, operand: str, dialect: str
) -> None:
    numbers = {id_: D(text) for id_, text in enumerate(_ROWS) if text is not None}
    for constant in ("1.5", "9007199254740992"):
        other = D(constant)
        for compare in (gt, le, eq):
            operator = {gt: ">", le: "<=", eq: "="}[compare]
            wanted = [id_ for id_, number in numbers.items() if compare(number, other)]
            where = f"{operand} {operator} '{constant}'"
            assert _kept(nested, where, dialect=dialect) == wanted, where
    missing = [id_ for id_, text in enumerate(_ROWS) if text is None]
    assert _kept(nested, f"{operand} IS NULL", dialect=dialect) == missing


def test_parts_are_skipped_by_numbers_in_structs_and_lists(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), _COLUMNS, key=["id"])
    for first in range(0, 40, 4):
        table.upsert(_nested([f"{10**50 + first + i}" for i in range(4)], first))
    scan = table.scan(where=f"(s).n = '{10**50 + 17}'")
    assert scan.to_arrow()["id"].to_pylist() == [17]
    assert scan.metrics.parts_pruned == 9
    assert _kept(table, f"l[1] = '{10**50 + 17}'") == [17]


def test_values_survive_changes_of_rows_and_columns(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), _COLUMNS, key=["id"])
    table.upsert(_nested(["1.50", "1e400", None], 0))
    table.add_column("s.more", "numeric", default="0.25")
    wide = pa.struct([("n", pa.decimal128(5, 2)), ("more", pa.decimal256(50, 3))])
    other_forms = {
        "id": [5],
        "s": pa.array([{"n": D("3"), "more": D("2.5")}], wide),
        "l": [[2**63 - 1, None]],
        "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "ls": [[]],
    }
    table.upsert(pa.table(other_forms))
    table.rename_column("s.n", "number")
    table.delete(where="(s).number = '1e400'")
    table.compact()
    found = table.scan().to_arrow().sort_by("id")
    assert found["id"].to_pylist() == [0, 2, 5]
    members = found["s"].combine_chunks().flatten()
    assert to_text(members[0]).to_pylist() == ["1.5", None, "3"]
    assert to_text(members[1]).to_pylist()[::2] == ["0.25", "2.5"]
    items = found["l"].combine_chunks().flatten()
    assert to_text(items).to_pylist() == ["1.5", "7", str(2**63 - 1), None]
    assert _kept(table, "(s).more > 2") == [5]


def test_what_is_not_a_number_is_refused_with_its_place(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), _COLUMNS, key=["id"])
    rows = _nested(["1", "2"], 0)
    wrong = rows.set_column(2, "l", pa.array([["1"], ["x"]]))
    with pytest.raises(SchemaMismatch, match=r"'l\.item'.*'x' is not a number.*row 1"):
        table.upsert(wrong)
    for where in ("l = l", "s = s", "1.5 = ANY(l)", "l @> ARRAY[1.5]"):
        with pytest.raises(InvalidPredicate, match="numeric"):
            table.scan(where=where)
