"""A MERGE that deletes a row and inserts another one of its key, as DuckDB runs it."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import KeyViolation
from rowsieve.providers.datafusion import SessionContext

TABLE = pa.table({"id": [1, 2, 3], "v": [10, 20, 30]})
SOURCE = pa.table({"id": [2, 3, 4], "v": [-2, -3, -4]})
INSERT = "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
REPLACING = [
    f"ON t.id = s.id + 100 WHEN NOT MATCHED BY SOURCE THEN DELETE {INSERT}",
    f"ON t.id = s.id + 100 WHEN NOT MATCHED BY SOURCE AND t.id > 1 THEN DELETE {INSERT}",
    f"ON t.v = -s.v * 10 AND t.id < 3 WHEN NOT MATCHED BY SOURCE THEN DELETE {INSERT}",
]


def merged(clauses: str) -> rs.Table:
    """Run the merge over `TABLE` in our session."""
    table = rs.create_table("memory:///replacing", TABLE, key=["id"], if_exists="replace")
    session = SessionContext()
    session.register_table("t", table)
    session.register_record_batches("s", [SOURCE.to_batches()])
    session.sql(f"MERGE INTO t USING s {clauses}")
    table.refresh()
    return table


@pytest.mark.parametrize("clauses", REPLACING)
def test_an_inserted_row_replaces_the_deleted_one_of_its_key(clauses: str) -> None:
    with duckdb.connect() as peer:
        peer.register("given", TABLE)
        peer.register("s", SOURCE)
        peer.execute("CREATE TABLE t AS SELECT * FROM given")
        peer.execute(f"MERGE INTO t USING s {clauses}")
        rows = peer.sql("SELECT id, v FROM t ORDER BY id").fetchall()
    ours = merged(clauses).to_arrow().sort_by("id")
    assert [(row["id"], row["v"]) for row in ours.to_pylist()] == rows


def test_a_key_that_stays_in_the_table_is_not_inserted_again() -> None:
    with pytest.raises(KeyViolation, match="the table has 1 of the keys"):
        merged(f"ON t.id = s.id + 100 WHEN NOT MATCHED BY SOURCE AND t.id > 2 THEN DELETE {INSERT}")
