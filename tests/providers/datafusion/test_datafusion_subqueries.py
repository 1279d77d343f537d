"""Subqueries, and the first rows of an order, choose the parts that a query reads."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.part_choice import known_subqueries, pruned_parts
from rowsieve.providers.datafusion.part_choice.subquery_values import SubqueryValues

PARTS, ROWS = 12, 10
START = datetime(2026, 1, 1, tzinfo=UTC)


def rows_of(part: int) -> pa.Table:
    """Rows with ids and times of their own; `v` repeats, `w` is NULL in the first part."""
    ids = range(part * ROWS, (part + 1) * ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array([START + timedelta(hours=i) for i in ids], pa.timestamp("us", "UTC")),
            "v": pa.array([i % ROWS for i in ids], pa.int64()),
            "w": pa.array([i if part else None for i in ids], pa.int32()),
            "name": pa.array([f"n{i:04d}" for i in ids]),
        }
    )


SMALL = pa.table({"id": [33, 35, None], "x": [1, 2, 3], "name": ["n0033", "n0036", None]})
EMPTY = pa.table({"id": pa.array([], pa.int64())})


@pytest.fixture(scope="module", params=["append", "keyed", "overlapping"])
def contexts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[SessionContext, datafusion.SessionContext]:
    """Our session over `t` and `small`, and DataFusion over the same rows in memory."""
    return contexts_of(request.param, tmp_path_factory.mktemp(request.param))


def contexts_of(kind: str, folder: Path) -> tuple[SessionContext, datafusion.SessionContext]:
    parts = [rows_of(part) for part in range(PARTS)]
    key = None if kind == "append" else ["id"]
    table = rs.create_table(folder / "t", parts[0].schema, key)
    for part in parts:
        if kind == "overlapping":
            table.upsert(part.set_column(2, "v", pa.array([99] * ROWS)))
        (table.upsert if key else table.append)(part)
    table.delete("id = 119")
    ours, memory = SessionContext(), datafusion.SessionContext()
    ours.register_table("t", table)
    ours.register_table("small", rs.create_table(folder / "small", SMALL))
    whole = pa.concat_tables(parts).slice(0, PARTS * ROWS - 1)
    memory.register_record_batches("t", [whole.to_batches()])
    memory.register_record_batches("small", [SMALL.to_batches()])
    for context in (ours, memory):
        context.register_record_batches("there", [SMALL.to_batches()])
        context.register_record_batches("empty", [[pa.RecordBatch.from_pylist([], EMPTY.schema)]])
    return ours, memory


QUERIES = [
    ("id IN (SELECT id FROM small)", 1),
    ("id IN (SELECT id FROM there WHERE x < 3)", 1),
    ("t.id in(select x + 100 from there)", 1),
    ("id IN (SELECT id FROM empty)", 0),
    ("name IN (SELECT name FROM small)", 1),
    ("id IN (SELECT id FROM t WHERE name = 'n0057')", 1),
    ("id IN (SELECT id FROM small) AND v IN (SELECT x + 2 FROM small)", 1),
    ("id NOT IN (SELECT id FROM small)", PARTS),  # with a NULL: no row
    ("id NOT IN (SELECT id FROM small WHERE id > 0) AND id < 20", 2),
    ("id IN (SELECT id FROM small) OR id = 7", PARTS),
    ("id = (SELECT max(id) FROM there)", 1),
    ("id = (SELECT id FROM empty)", 0),
    ("ts >= (SELECT max(ts) FROM t) - interval '3 hours'", 1),
    ("(SELECT max(id) FROM small) < id AND id <= (SELECT max(id) FROM small) + 10", 2),
    ("id BETWEEN (SELECT min(id) FROM small) AND (SELECT max(id) FROM small)", 1),
    ("id = (SELECT max(id) FROM small WHERE small.x = t.v)", 1),  # correlated
    ("EXISTS (SELECT 1 FROM small s WHERE s.id = t.id)", 1),
    ("EXISTS (SELECT 1 FROM small s WHERE s.id = t.id AND s.x + 2 = t.v)", 1),
    ("NOT EXISTS (SELECT 1 FROM small s WHERE s.id = t.id)", PARTS),
    ("EXISTS (SELECT 1 FROM there s WHERE s.id = t.id)", PARTS),  # may change before it runs
    ("id = (SELECT count(*) FROM t)", 1),  # the parts that are left do not count again
    ("id > 1000 AND id = (SELECT 'x' || id FROM small)", 0),
]


def plain(frame: datafusion.DataFrame) -> list[str]:
    return [str(row) for row in frame.to_pylist()]


def parts_of(context: SessionContext, query: str) -> int:
    """The parts of `t` that the query leaves, when it runs."""
    text = context.sql(f"EXPLAIN ANALYZE {query}").to_pylist()[-1]["plan"]
    (count,) = re.findall(r"^t: version \d+, conditions leave (\d+) of", text, re.MULTILINE)
    return int(count)


@pytest.mark.parametrize(("condition", "parts"), QUERIES)
def test_a_subquery_chooses_parts(
    contexts: tuple[SessionContext, datafusion.SessionContext],
    request: pytest.FixtureRequest,
    condition: str,
    parts: int,
) -> None:
    ours, memory = contexts
    query = f"SELECT id, v, name FROM t WHERE {condition} ORDER BY id"
    try:
        wanted = plain(memory.sql(query))
    except Exception:
        with pytest.raises(Exception):  # noqa: B017, PT011 - DataFusion has no class for them
            ours.sql(query).to_pylist()
        return
    assert plain(ours.sql(query)) == wanted
    if "overlapping" not in request.node.name:
        assert parts_of(ours, query) == parts


@pytest.mark.parametrize(
    "condition",
    [
        "id IN (SELECT id FROM lake.db.small)",
        "id = (SELECT max(id) - 2 FROM lake.db.small)",
        "EXISTS (SELECT 1 FROM lake.db.small s WHERE s.id = t.id)",
        "EXISTS (SELECT 1 FROM lake.db.small s JOIN lake.db.small r USING (id) WHERE s.id = t.id)",
    ],
)
def test_subqueries_over_a_catalog_choose_parts(tmp_path: Path, condition: str) -> None:
    catalog = rs.Catalog(tmp_path)
    table = catalog.create_table("db.t", rows_of(0).schema, ["id"])
    for part in range(PARTS):
        table.upsert(rows_of(part))
    catalog.create_table("db.small", SMALL)
    context = SessionContext()
    context.register_catalog_provider("lake", catalog.to_datafusion())
    query = f"SELECT id FROM lake.db.t AS t WHERE {condition} ORDER BY id"
    wanted = [33] if "max" in condition else [33, 35]
    assert [row["id"] for row in context.sql(query).to_pylist()] == wanted
    text = context.sql(f"EXPLAIN ANALYZE {query}").to_pylist()[-1]["plan"]
    assert f"lake.db.t: version {PARTS}, conditions leave 1 of {PARTS} parts" in text


@pytest.mark.parametrize("explain", ["EXPLAIN", "explain verbose", "EXPLAIN FORMAT TREE"])
@pytest.mark.parametrize(
    "clauses",
    [
        "WHERE id IN (SELECT id FROM small)",
        "WHERE id = (SELECT max(id) FROM small)",
        "ORDER BY id LIMIT 3",
    ],
)
def test_explain_runs_no_subquery(
    contexts: tuple[SessionContext, datafusion.SessionContext],
    monkeypatch: pytest.MonkeyPatch,
    explain: str,
    clauses: str,
) -> None:
    ours, _ = contexts
    for module, name in ((known_subqueries, "_rows"), (pruned_parts, "condition_of")):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("it reads rows"))
    monkeypatch.setattr(SubqueryValues, "_condition", lambda *_: pytest.fail("it reads rows"))
    plans = ours.sql(f"{explain} SELECT id FROM t {clauses}").to_pylist()
    assert "t: version" in str(plans)


ORDERS = [
    ("ORDER BY id DESC LIMIT 5", 1),
    ("ORDER BY id LIMIT 3", 1),
    ("ORDER BY id LIMIT 3 OFFSET 9", 2),
    ("ORDER BY ts DESC, id LIMIT 12", 2),
    ("ORDER BY name DESC LIMIT 1", 1),
    ("WHERE v = 3 ORDER BY id DESC LIMIT 2", 2),
    ("WHERE v = 3 AND id < 50 ORDER BY id DESC LIMIT 2", 2),
    ("ORDER BY w DESC NULLS LAST, id LIMIT 5", 1),
    ("ORDER BY w DESC, id LIMIT 15", 3),  # NULLs come first
    ("ORDER BY w, id LIMIT 5", 1),
    ("ORDER BY w NULLS FIRST, id LIMIT 5", 2),
    ("ORDER BY id + 0 DESC LIMIT 5", PARTS),
    ("WHERE v > 50 ORDER BY id DESC LIMIT 2", 0),
    ("WHERE random() < 2 ORDER BY id DESC LIMIT 2", PARTS),
    ("ORDER BY id LIMIT 1000", PARTS),
]


@pytest.mark.parametrize(("clauses", "parts"), ORDERS)
def test_the_first_rows_choose_parts(
    contexts: tuple[SessionContext, datafusion.SessionContext],
    request: pytest.FixtureRequest,
    clauses: str,
    parts: int,
) -> None:
    ours, memory = contexts
    query = f"SELECT id, name, w FROM t AS t {clauses}"
    assert plain(ours.sql(query)) == plain(memory.sql(query))
    if "overlapping" not in request.node.name:
        assert parts_of(ours, query) == parts


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id = (SELECT max(id) FROM small) FROM t ORDER BY id",
        "SELECT sum(id) AS n FROM t HAVING sum(id) > (SELECT max(id) FROM small)",
        "SELECT a.id FROM t a JOIN t b ON a.id = b.v AND a.id IN (SELECT x FROM small) ORDER BY 1",
        "SELECT a.id FROM t a LEFT JOIN t b ON a.id = b.id AND b.id = (SELECT 33) ORDER BY 1",
        "SELECT count(*) AS n FROM t WHERE id IN (SELECT id FROM small UNION SELECT 4)",
        "SELECT * FROM (SELECT id FROM t ORDER BY id LIMIT 20) WHERE id > (SELECT 15) ORDER BY id",
        "SELECT * FROM (SELECT id, v FROM t ORDER BY id DESC LIMIT 9) ORDER BY v LIMIT 2",
        "SELECT a.id FROM t a, (SELECT id FROM t ORDER BY 1 LIMIT 2) b WHERE a.id = b.id + 50",
        "WITH there AS (SELECT 5 AS id) SELECT id FROM t WHERE id IN (SELECT id FROM there)",
        "SELECT id FROM t WHERE id IN (SELECT id FROM small INTERSECT SELECT 33) ORDER BY id",
        "SELECT v, count(*) FROM t WHERE id > (SELECT 5) GROUP BY v ORDER BY 2 DESC, v LIMIT 3",
    ],
)
def test_other_places_of_subqueries_give_the_same_rows(
    contexts: tuple[SessionContext, datafusion.SessionContext], query: str
) -> None:
    ours, memory = contexts
    assert sorted(plain(ours.sql(query))) == sorted(plain(memory.sql(query)))


def test_many_values_choose_by_their_ends(tmp_path: Path) -> None:
    context = SessionContext()
    for name, count in (("t", 12_000), ("u", 6_000)):
        table = rs.create_table(tmp_path / name, pa.schema([("id", pa.int64())]))
        for start in range(0, count, 3_000):
            table.append(pa.table({"id": range(start, start + 3_000)}))
        context.register_table(name, table)
    query = "SELECT count(*) AS n FROM t WHERE {}"
    for condition, parts in (
        ("EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.id > 3500)", 1),
        ("id IN (SELECT id FROM u)", 2),
        ("id = (SELECT max(id) FROM u)", 1),
    ):
        assert parts_of(context, query.format(condition)) == parts
    assert context.sql(query.format("id IN (SELECT id FROM u)")).to_pylist() == [{"n": 6_000}]
    assert not [name for name in context.catalog().schema().names() if "subquery" in name]


@pytest.mark.parametrize("kind", ["keyed", "overlapping"])
def test_deletes_of_a_table_with_a_key_read_the_parts_that_a_subquery_leaves(
    kind: str, tmp_path: Path
) -> None:
    ours, _ = contexts_of(kind, tmp_path)
    ours.sql("DELETE FROM t WHERE id IN (SELECT id FROM small)")
    assert ours.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": PARTS * ROWS - 3}]
