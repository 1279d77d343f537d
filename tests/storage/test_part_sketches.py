"""Sketches of different values survive every rewrite, and are those of the rows that it wrote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.storage.manifests.part_sketches import is_sketch

ANALYZE = "CALL system.analyze('db', 't', distinct_counts => TRUE, rewrite_all => {})"
REWRITE = """
    CALL system.rewrite_data_files(table => 'db.t', options => map(
        'rewrite-all', 'true', 'max-file-group-size-bytes', '2000'))
"""


def rows(start: int, count: int, distinct: int = 40) -> pa.Table:
    ids = range(start, start + count)
    n = [None if i % 9 == 0 else i % distinct for i in ids]
    texts = [None if value is None else str(value) for value in n]
    return pa.table(
        {
            "id": ids,
            "n": pa.array(n, pa.int32()),
            "x": pa.array(n, pa.float32()),
            "text": texts,
            "raw": pa.array(texts, pa.binary()),
            "flag": [value is not None and value > 3 for value in n],
            "price": pa.array(n, pa.decimal128(9, 2)),
            "day": pa.array(n, pa.int32()).cast(pa.date32()),
            "at": pa.array(n, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "doc": pa.array(texts, pa.json_()),
            "list": [[value] for value in n],
        }
    )


def sketches(table: rs.Table) -> list[dict[str, object]]:
    """The sketches of each part, in an order that does not depend on the names of files."""
    table.refresh()
    found = table.handle.pinned.parts.only(is_sketch)
    assert len(found.schema.names) == 9  # all columns but JSON and the list
    return sorted((pa.table(found.read(found.schema.names))).to_pylist(), key=repr)


@pytest.mark.parametrize(
    ("rewrite", "key"),
    [
        ("compact", ["id"]),
        ("compact", None),
        ("sliced", ["id"]),  # two passes
        ("CALL", ["id"]),
        ("CALL", None),
    ],
)
def test_a_rewrite_keeps_distinct_counts_known(
    tmp_path: Path, rewrite: str, key: list[str] | None
) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.t", rows(0, 400), key)
    catalog.call(ANALYZE.format("FALSE"))
    for i in range(66 if rewrite == "sliced" else 5):
        more = rows(i * 30, 20, distinct=70)
        table.upsert(more) if key else table.append(more)
    table.delete("id < 17")
    assert table.distinct_counts(["n"]) == {"n": None}  # of the new parts
    if rewrite == "CALL":
        catalog.call(REWRITE)
    else:
        assert table.compact().committed
    kept = sketches(table)
    counts = table.distinct_counts()
    (n,) = table.scan(columns=["n"]).to_arrow().columns
    assert counts["n"] == pytest.approx(len(n.unique().drop_null()), abs=3)
    assert [name for name, count in counts.items() if count is None] == ["doc", "list"]
    catalog.call(ANALYZE.format("TRUE"))
    assert sketches(table) == kept
    assert table.maintain().analyzed is None


def test_a_rewrite_makes_none_that_nobody_asked_for(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), rows(0, 10), key=["id"])
    table.upsert(rows(0, 5))
    table.compact()
    assert not any(map(is_sketch, table.handle.pinned.parts.schema.names))


def test_a_rewrite_sketches_the_columns_of_today(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.t", rows(0, 50).select(["id", "n", "text"]), ["id"])
    catalog.call(ANALYZE.format("FALSE"))
    table.rename_column("text", "words")
    table.widen_column("n", pa.int64())
    table.add_column("later", "int64", default=7)
    table.drop_column("words")
    table.upsert(pa.table({"id": [1], "n": [2**40], "later": [8]}))
    table.compact()
    assert table.distinct_counts() == {
        "id": pytest.approx(50, abs=4),
        "n": pytest.approx(41, abs=3),
        "later": None,
    }
