"""Old parts, row groups and pages have the statistics of an added column's default (trap T20)."""

from __future__ import annotations

import re
import uuid

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import UnprunablePredicate

ROWS = 200_000


@pytest.fixture(scope="module")
def table() -> Table:
    """One large part without c; c has the default 7. One small part with c = 8."""
    rows = pa.table({"id": range(ROWS), "x": [i // 100 for i in range(ROWS)]})
    made = rowsieve.create_table(f"memory:///pruned-{uuid.uuid4().hex}", rows, key=["id"])
    made.add_column("c", pa.int64(), default=7)
    made.add_column("d", pa.string())
    made.rename_column("x", "y")
    made.upsert(pa.table({"id": [ROWS], "y": [5], "c": [8], "d": ["d"]}))
    return made


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ("c = 7", 1),
        ("c = 8", 1),
        ("c = 9", 0),
        ("c > 6", 2),
        ("c IS NULL", 0),
        ("d IS NULL", 1),
        ("d IS NOT NULL", 1),
        ("d = 'd'", 1),
        ("y > 1999", 0),
        ("y = 5", 2),
        ("c = 7 AND d IS NULL", 1),
        ("c = 7 AND d = 'd'", 0),
    ],
)
def test_parts_are_pruned_by_the_default(table: Table, where: str, parts: int) -> None:
    scan = table.scan(where)
    assert sum(len(piece.parts) for split in scan.plan().splits for piece in split.pieces) == parts
    assert scan.count() == table.scan(where, pruning="off").count()


@pytest.mark.parametrize("where", ["c = 9 OR y = 1500", "d = 'q' OR y = 1500", "c < 7 OR y = 1500"])
def test_row_groups_and_pages_are_pruned_by_the_default(table: Table, where: str) -> None:
    scan = table.scan(where)
    assert scan.to_arrow().num_rows == 100
    assert scan.metrics.row_groups_read == 1
    assert scan.metrics.rows_decoded <= 2 * 8_192


def test_a_point_on_a_key_is_found_by_bloom_filters_of_old_parts(table: Table) -> None:
    assert table.scan("id = 5 AND c = 7").to_arrow().to_pylist() == [
        {"id": 5, "y": 0, "c": 7, "d": None}
    ]
    assert table.scan("id = 5 AND c = 8").to_arrow().num_rows == 0


def test_estimates_know_the_default(table: Table) -> None:
    columns = table.scan().statistics().columns
    assert columns["c"].null_count == 0
    assert (columns["c"].lower, columns["c"].upper) == (pa.scalar(7), pa.scalar(8))
    assert columns["d"].null_count == ROWS


def test_an_added_column_counts_as_prunable_before_any_part_has_it() -> None:
    made = rowsieve.create_table(
        f"memory:///pruned-{uuid.uuid4().hex}", pa.table({"id": [1]}), key=["id"]
    )
    made.add_column("c", pa.int64(), default=7)
    made.require_pruning("c = 7")
    with pytest.raises(UnprunablePredicate):
        made.require_pruning("c = c")


def test_a_checkpoint_in_shards_keeps_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowsieve.storage.checkpoint.SHARDED_FROM", 2)
    made = rowsieve.create_table(
        f"memory:///pruned-{uuid.uuid4().hex}",
        pa.table({"id": [1], "b": [5]}),
        key=["id"],
        properties={"checkpoint_interval": "4"},
    )
    made.upsert(pa.table({"id": [2], "b": [6]}))
    made.drop_column("b")
    made.add_column("b", pa.int64(), default=50)
    made.upsert(pa.table({"id": [3], "b": [5]}))  # version 4: the checkpoint
    made.add_column("e", pa.float64(), default=float("nan"))
    opened = rowsieve.open_table(made.uri)
    assert opened.scan("b = 50").to_arrow().num_rows == 2
    assert opened.scan("b = 5").to_arrow().to_pylist()[0]["id"] == 3
    assert opened.count("b = 6") == 0
    assert opened.count("e = CAST('NaN' AS double precision)") == 3
    assert opened.count("e > 1") == 3  # NaN is the greatest value
    assert opened.count("e < 1") == 0


def test_an_explanation_counts_the_bytes_of_columns_by_id(table: Table) -> None:
    renamed = str(table.scan("y = 1500", columns=["y"]).explain(row_groups=True))
    whole = re.search(r"of ([\d,]+) bytes", renamed)
    assert whole is not None
    assert whole[1] != "0"
    assert '"c" = 7' in str(table.scan("c = 7", columns=["c"]).explain(row_groups=True))
