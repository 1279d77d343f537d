"""Changes of tables without a key whose rows DataFusion finds: by their places in the version."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import KeyViolation
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.changes.statement_queries import StatementQueries


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Parts (0, 'a'), (1, 'b'), (0, 'c') and so on; the rows with id 5 are hidden."""
    table = rs.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), ("v", pa.string())]))
    for part in range(3):
        ids = [part * 2, part * 2 + 1, part * 2]
        table.append(pa.table({"id": ids, "v": ["a", "b", "c"]}))
    table.delete("id = 5")
    return table


@pytest.fixture
def context(table: rs.Table) -> SessionContext:
    context = SessionContext()
    context.register_table("t", table)
    context.from_pydict({"id": [0, 3, 77], "w": ["x", "y", "z"]}, name="s")
    return context


def content(table: rs.Table) -> list[Any]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


FIRST = [(0, "a"), (0, "c"), (1, "b"), (2, "a"), (2, "c"), (3, "b"), (4, "a"), (4, "c")]
MERGE = "MERGE INTO t USING s ON t.id = s.id"


@pytest.mark.parametrize(
    ("text", "count", "gone", "new"),
    [
        ("DELETE FROM t WHERE id IN (SELECT id FROM s)", 3, FIRST[:2] + FIRST[5:6], []),
        ("DELETE FROM t WHERE id IN (SELECT id + 5 FROM s WHERE id = 0)", 0, [], []),  # hidden
        ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND t.v = 'c')",
         1, [(0, "c")], []),
        ("DELETE FROM t WHERE id = (SELECT max(id) FROM t)", 2, FIRST[6:], []),
        ("DELETE FROM t WHERE random() < 2", 8, FIRST, []),
        ("UPDATE t SET v = v || '!' WHERE id IN (SELECT id FROM s)", 3,
         FIRST[:2] + FIRST[5:6], [(0, "a!"), (0, "c!"), (3, "b!")]),
        ("UPDATE t SET id = id + (SELECT max(id) FROM s) WHERE v = (SELECT 'b')", 2,
         [(1, "b"), (3, "b")], [(78, "b"), (80, "b")]),
        (f"{MERGE} WHEN MATCHED THEN DELETE", 3, FIRST[:2] + FIRST[5:6], []),
        ((f"{MERGE} WHEN MATCHED AND t.v = 'a' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.w "
         "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.w)"), 4,
         FIRST[:2] + FIRST[5:6], [(0, "x"), (3, "y"), (77, "z")]),
        (f"{MERGE} WHEN NOT MATCHED THEN INSERT VALUES (s.id, NULL)", 1, [], [(77, None)]),
        (f"{MERGE} AND t.v = 'c' WHEN NOT MATCHED BY SOURCE AND t.id > 2 THEN DELETE", 3,
         FIRST[5:], []),
        ("MERGE INTO t USING (SELECT 1 AS k WHERE 1 = 2) e ON t.id = e.k WHEN MATCHED THEN DELETE",
         0, [], []),
        (("MERGE INTO t USING (SELECT 3 AS id UNION ALL SELECT 3) e ON t.id = e.id "
         "WHEN MATCHED THEN DELETE"), 1, [(3, "b")], []),
    ],
)  # fmt: skip
def test_changes_are_one_commit_of_hidden_and_new_rows(
    table: rs.Table,
    context: SessionContext,
    text: str,
    count: int,
    gone: Sequence[Any],
    new: Sequence[Any],
) -> None:
    before = table.version
    assert context.sql(text).to_pylist() == [{"count": count}]
    table.refresh()
    wanted = [row for row in FIRST if row not in gone] + list(new)
    assert sorted(map(str, content(table))) == sorted(map(str, wanted))
    assert table.version == before + bool(count)
    assert content(rs.open_table(table.uri, version=before)) == FIRST


@pytest.mark.parametrize(
    "clauses",
    [
        "WHEN MATCHED THEN UPDATE SET v = 'q'",
        "WHEN MATCHED AND e.n = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'q'",
        "WHEN MATCHED AND t.id = 3 THEN DELETE",
    ],
)
def test_two_rows_of_the_source_never_change_one_row(
    table: rs.Table, context: SessionContext, clauses: str
) -> None:
    source = "(SELECT 3 AS id, 1 AS n UNION ALL SELECT 3, 2) e"
    text = f"MERGE INTO t USING {source} ON t.id = e.id {clauses}"
    with pytest.raises(KeyViolation, match="several rows of the source change one row"):
        context.sql(text)
    table.refresh()
    assert content(table) == FIRST


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("DELETE FROM t WHERE id IN (SELECT id FROM s)", 5),
        (f"{MERGE} WHEN MATCHED THEN DELETE", 5),
        ("UPDATE t SET v = 'u' WHERE id IN (SELECT id FROM s)", 9),
    ],
)
def test_rows_of_a_commit_in_between_are_changed_too(
    table: rs.Table, context: SessionContext, text: str, wanted: int
) -> None:
    other, rows, left = rs.open_table(table.uri), StatementQueries.run, [1]

    def interrupted(queries: Any, *arguments: Any) -> pa.Table:
        found = rows(queries, *arguments)
        if left:
            left.clear()
            other.append(pa.table({"id": [77], "v": ["late"]}))
            other.compact()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StatementQueries, "run", interrupted)
        context.sql(text)
    table.refresh()
    assert (77, "late") not in content(table)
    assert len(content(table)) == wanted


def test_all_types_keep_their_values_and_catalogs_their_names(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "p": Decimal("1.50"),
        "f": 0.5,
        "b": b"x",
        "l": [1, None],
        "s": {"x": 1, "y": "a"},
    }
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("p", pa.decimal128(10, 2)),
            ("f", pa.float64()),
            ("b", pa.binary()),
            ("l", pa.list_(pa.int64())),
            ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
        ]
    )
    catalog = rs.Catalog(tmp_path / "lake")
    table = catalog.create_table("db.t", schema)
    table.append(pa.Table.from_pylist([row, {**row, "id": 2}], schema))
    table.append(pa.Table.from_pylist([dict.fromkeys(row)], schema))
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    context.sql("UPDATE lake.db.t SET id = id + 10 WHERE id = (SELECT min(id) FROM lake.db.t)")
    merged = "MERGE INTO lake.db.t AS x USING (SELECT 2 AS k) y ON x.id = y.k WHEN MATCHED THEN"
    context.sql(f"{merged} UPDATE SET id = 12")
    table.refresh()
    found = sorted(table.scan().to_arrow().to_pylist(), key=lambda each: each["id"] or 0)
    assert found == [dict.fromkeys(row), {**row, "id": 11}, {**row, "id": 12}]
