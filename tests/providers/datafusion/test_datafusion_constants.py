"""Filters that DataFusion folds to a constant arrive as a boolean, not as an expression.

Next to others, DataFusion 55 cannot push them to a dataset of Python: our session fences its scans.
"""

from __future__ import annotations

from pathlib import Path

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("at = TIMESTAMP '2024-02-28' AND at IN (TIMESTAMP '2024-02-29')", 0),
        ("id = 1 AND id IN (2)", 0),
        ("id = id OR id IS NULL", 2),
        ("NULL", 0),
        ("1 = 1", 2),
    ],
)
def test_a_filter_folded_to_a_constant_selects_all_or_nothing(where: str, count: int) -> None:
    columns = {"id": pa.array([1, 2]), "at": pa.array([0, 1], pa.timestamp("us"))}
    table = rs.create_table("memory://folded", pa.table(columns), key=["id"], if_exists="ignore")
    context = datafusion.SessionContext()
    context.register_table("t", table)
    assert context.sql(f"SELECT * FROM t WHERE {where}").count() == count
    assert len(context.sql(f"SELECT id FROM t WHERE {where}").to_pylist()) == count


FOLDED = (
    "SELECT id FROM t WHERE v = NULL AND id < 3",
    "SELECT id FROM t WHERE v IN (NULL, 4) OR id > 2",
    "SELECT id FROM t WHERE v NOT IN (NULL, 4)",
    "SELECT id FROM t WHERE v >= (SELECT max(v) FROM u WHERE id > 50) AND id < 3",
    "SELECT id FROM (SELECT * FROM t UNION ALL SELECT * FROM u) WHERE id IS NOT NULL AND v > 1",
    "SELECT t.id FROM t LEFT JOIN u ON t.id = u.id WHERE t.v = NULL AND t.id < 3",
    "SELECT v, count(*) AS id FROM t WHERE id < 3 GROUP BY v HAVING v = NULL",
    "WITH q AS (SELECT * FROM t WHERE v = 4) SELECT id FROM q WHERE v IN (NULL, 4) AND id = 1",
    "SELECT id FROM few WHERE v > 1 AND id IS NOT NULL",
)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> SessionContext:
    """Tables with hidden rows, one of them also in a catalog, and a view of both."""
    folder = tmp_path_factory.mktemp("folded")
    rows = pa.table({"id": [1, 2, 3], "v": [1, 2, None]})
    catalog = rs.Catalog(str(folder / "lake"))
    table = catalog.create_table("db.t", rows, key=["id"])
    table.upsert({"id": [1], "v": [4]})
    table.tag("now")
    session = SessionContext()
    session.register_table("t", table)
    session.register_table("u", rs.create_table(str(folder / "u"), rows))
    session.register_catalog_provider("lake", catalog.to_datafusion())
    session.sql("CREATE VIEW few AS SELECT id, v FROM t UNION ALL SELECT id, v FROM u").collect()
    return session


@pytest.fixture(scope="module")
def memory() -> datafusion.SessionContext:
    context = datafusion.SessionContext()
    rows = pa.table({"id": [1, 2, 3], "v": [4, 2, None]})
    context.register_record_batches("t", [rows.to_batches()])
    rows = pa.table({"id": [1, 2, 3], "v": [1, 2, None]})
    context.register_record_batches("u", [rows.to_batches()])
    context.sql("CREATE VIEW few AS SELECT id, v FROM t UNION ALL SELECT id, v FROM u").collect()
    return context


def _ids(frame: datafusion.DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.to_pylist())


@pytest.mark.parametrize("query", FOLDED)
def test_our_session_reads_what_a_constant_next_to_other_conditions_selects(
    ours: SessionContext, memory: datafusion.SessionContext, query: str
) -> None:
    expected = _ids(memory.sql(query))
    assert _ids(ours.sql(query)) == expected
    assert _ids(ours.sql(query.replace("FROM t ", "FROM lake.db.t "))) == expected
    frame = ours.sql(query).filter(datafusion.col("id") > 1)
    assert _ids(frame) == [each for each in expected if each > 1]


@pytest.mark.parametrize("name", ["t FOR VERSION AS OF 1", "t@now", "lake.db.t@now"])
@pytest.mark.parametrize("query", FOLDED[:3])
def test_a_version_may_be_read_by_a_constant_next_to_other_conditions(
    ours: SessionContext, memory: datafusion.SessionContext, name: str, query: str
) -> None:
    assert _ids(ours.sql(query.replace("FROM t ", f"FROM {name} "))) == _ids(memory.sql(query))


@pytest.mark.parametrize("where", ["= 'a(b'", "IN ('x', 'a(b')", "IS NOT NULL", "<> 'a(b'"])
@pytest.mark.parametrize("rest", ["", " AND id > 1", " OR id = 1"])
def test_one_pass_of_the_optimiser_may_leave_comparisons_of_constants(
    memory: datafusion.SessionContext, where: str, rest: str
) -> None:
    table = rs.create_table("memory://passed", {"id": [1, 2, 3]}, key=["id"], if_exists="ignore")
    session = SessionContext(datafusion.SessionConfig({"datafusion.optimizer.max_passes": "1"}))
    session.register_table("t", table)
    query = f"SELECT id FROM (SELECT 'a(b' AS c, id FROM t) AS q WHERE (c {where}){rest}"
    assert _ids(session.sql(query)) == _ids(memory.sql(query))


def test_a_parameter_may_be_null(ours: SessionContext) -> None:
    query = "SELECT id FROM t WHERE v = $v AND id < 3"
    assert _ids(ours.sql(query, param_values={"v": None})) == []
    assert _ids(ours.sql(query, param_values={"v": 4})) == [1]
    ours.sql(f"PREPARE p AS {query.replace('$v', '$1')}").collect()
    assert _ids(ours.sql("EXECUTE p(NULL)")) == []
    assert _ids(ours.sql("EXECUTE p(4)")) == [1]


def test_a_change_may_have_a_null_next_to_other_conditions(tmp_path: Path) -> None:
    catalog = rs.Catalog(str(tmp_path))
    table = catalog.create_table("db.t", {"id": [1, 2], "v": [1, 2]}, key=["id"])
    table.upsert({"id": [1], "v": [4]})
    query = "UPDATE db.t SET v = 9 WHERE v = $v AND id < 3"
    assert catalog.sql(query, params={"v": None}).to_pylist() == [{"count": 0}]
    assert catalog.sql(query, params={"v": 2}).to_pylist() == [{"count": 1}]


@pytest.mark.parametrize("words", ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE"])
def test_a_plan_with_bytes_that_are_no_text_is_shown(tmp_path: Path, words: str) -> None:
    """pyarrow has no text for such a condition of our dataset, and DataFusion 55 panics."""
    catalog = rs.Catalog(str(tmp_path))
    rows = pa.table(
        {"id": [1, 2], "b": [b"\xff", b"a"], "c": pa.array([b"ab", b"ff"], pa.binary(2))}
    )
    table = catalog.create_table("db.t", rows, key=["id"])
    for byte in (b"\xfe", b"\x80"):
        table.upsert(pa.table({"id": [1], "b": [byte], "c": pa.array([b"ab"], pa.binary(2))}))
    session = SessionContext()
    session.register_table("t", table)
    session.register_catalog_provider("lake", catalog.to_datafusion())
    for name in ("t", "lake.db.t"):
        for where in ("b = x'80'", "b IN (x'61', x'C8')", "c > x'00ff'", "b <> x'7f'"):
            plan = session.sql(f"{words} SELECT id FROM {name} WHERE {where}").to_pylist()
            assert any("DatasetExec" in row["plan"] for row in plan)
