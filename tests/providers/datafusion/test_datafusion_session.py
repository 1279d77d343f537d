"""Our SessionContext pins the versions of a statement and skips parts by its conditions."""

from __future__ import annotations

import datetime
import math
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import datafusion
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation
from rowsieve.providers.datafusion import SessionContext


def numbered(*ids: int, **more: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"v{i}" for i in ids], **more})


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Ids 0 to 99 in one part, 7 and 100 to 109 in another, every 5th below 50 deleted."""
    made = rs.create_table(str(tmp_path / "t"), numbered(*range(100)), key=["id"])
    made.upsert(numbered(7, *range(100, 110)))
    made.delete(keys=pa.table({"id": range(0, 50, 5)}))
    return made


def session(table: rs.Table, **options: Any) -> SessionContext:
    made = SessionContext(**options)
    made.register_table("t", table)
    return made


def rows_of(frame: Any) -> Counter[str]:
    """The rows as text, in which NaN equals itself."""
    return Counter(repr(row) for row in frame.to_arrow_table().to_pylist())


def explained(context: SessionContext, query: str, explain: str = "EXPLAIN") -> str:
    rows = context.sql(f"{explain} {query}").to_pylist()
    return str(next(row["plan"] for row in rows if row["plan_type"] == "rowsieve"))


QUERIES = [
    "SELECT * FROM t",
    "SELECT count(*), min(id), max(id), max(s) FROM t",
    "SELECT s, count(*) FROM t GROUP BY s",
    "SELECT id FROM t WHERE s LIKE 'v1%' AND id + 1 > 20",
    "SELECT id FROM t WHERE id IN (SELECT id + 1 FROM t WHERE s < 'v3')",
    "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id + 3 AND b.s LIKE 'v9%'",
    "SELECT a.id, b.id FROM t a FULL JOIN t b ON a.id = b.id + 30 WHERE a.id < 9 OR a.id IS NULL",
    "WITH c AS (SELECT * FROM t WHERE id < 20) SELECT c.id FROM c JOIN c e ON c.id = e.id + 1",
    "SELECT id FROM t WHERE id < 9 UNION ALL SELECT id FROM t WHERE id > 105",
    "SELECT id FROM t WHERE id < 9 EXCEPT SELECT id FROM t WHERE id = 7",
    "SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM t WHERE id > 40",
    "SELECT id FROM t WHERE id > (SELECT max(id) - 5 FROM t WHERE s LIKE 'v10%')",
    "SELECT id FROM t WHERE id >= 100 AND (SELECT count(*) FROM t WHERE id < 50) = 40",
    "SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.id = a.id + 1 AND b.s > 'v8')",
    "SELECT id FROM t WHERE CASE WHEN id > 50 THEN id - 50 ELSE id END < 3",
    "SELECT id, s FROM t ORDER BY id DESC LIMIT 4",
    "SELECT id FROM t ORDER BY id LIMIT 4 OFFSET 3",
    "SELECT id FROM t WHERE CAST(id AS VARCHAR) = '101' OR id * 2 = 16",
    "SELECT id FROM t WHERE date_trunc('day', now()) > TIMESTAMP '2001-01-01' AND id > 100",
    "(SELECT max(id) FROM t)",
]


def test_a_part_is_skipped_for_all_scans_of_a_statement_or_for_none(tmp_path: Path) -> None:
    """A scalar subquery is inside an expression, where its scan cannot be visited."""
    made = rs.create_table(str(tmp_path / "t"), numbered(*range(100)), key=["id"])
    made.upsert(numbered(*range(100, 110)))
    context = session(made)
    query = "SELECT id FROM t WHERE id > 100 AND id - 100 = (SELECT min(id) + 3 FROM t{})"
    for more, count in (("", 1), (" WHERE random() < 2", 2)):  # known before, and not known
        assert context.sql(query.format(more)).to_pylist() == [{"id": 103}]
        shown = explained(context, query.format(more), "EXPLAIN ANALYZE")
        assert f"leave {count} of 2 parts" in shown
    query = "SELECT a.id FROM t a JOIN t b ON a.id = b.id + 100 WHERE a.id > 100 AND b.id < 5"
    assert sorted(r["id"] for r in context.sql(query).to_pylist()) == [101, 102, 103, 104]


def test_now_is_of_the_run_and_skips_nothing(tmp_path: Path) -> None:
    at = pa.array([0], pa.timestamp("us", "UTC"))
    made = rs.create_table(str(tmp_path / "t"), pa.table({"id": [1], "at": at}), key=["id"])
    later = pa.array([2**60], pa.timestamp("us", "UTC"))
    made.upsert(pa.table({"id": [2], "at": later}))
    context = session(made)
    query = "SELECT id FROM t WHERE at < now()"
    assert "leave 2 of 2 parts" in explained(context, query)
    assert context.sql(query).to_pylist() == [{"id": 1}]


RECENT = [
    ("at > now() - interval '30 days'", 1),
    ("at >= now() - interval '1 month' AND id > 0", 0),
    ("NOT (at < now() - interval '100 days')", 2),
    ("at BETWEEN now() - interval '75 days' AND now()", 2),
    ("CAST(at AS DATE) > current_date() - interval '7 days'", 1),
    ("at > now() - interval '30 days' OR id = 1", 2),
    ("at > now() + interval '30 days'", 0),
    ("at <= now() - interval '30 days'", 12),
]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    """12 parts of one row: the first of an hour ago, and each next 61 days older."""
    now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    path = str(tmp_path_factory.mktemp("days") / "t")
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    made = rs.create_table(path, schema, key=["id"])
    for number in range(12):
        at = now - datetime.timedelta(days=61 * number)
        made.upsert(pa.table({"id": [number], "at": [at]}, schema=schema))
    return made


@pytest.mark.parametrize(("where", "left"), RECENT)
def test_parts_before_a_time_that_now_has_passed_are_skipped(
    where: str, left: int, days: rs.Table
) -> None:
    memory = datafusion.SessionContext()
    memory.from_arrow(days.scan().to_arrow().select(["id", "at"]), "t")
    query, context = f"SELECT id FROM t WHERE {where} ORDER BY id", session(days)
    if left < 12:
        assert f"leave {left} of 12 parts" in explained(context, query)
    assert context.sql(query).to_pylist() == memory.sql(query).to_pylist()


def test_a_statement_reads_the_newest_version_and_stays_there(table: rs.Table) -> None:
    context = session(table)
    frame = context.sql("SELECT count(*) AS n FROM t")
    rs.open_table(table.uri).delete("id >= 100")
    assert context.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 90}]
    assert context.table("t").count() == 90
    assert frame.to_pylist() == [{"n": 100}]
    context.register_table("old", rs.open_table(table.uri, version=0))
    found = context.sql("SELECT count(*) AS n FROM old LEFT ANTI JOIN t USING (id)").to_pylist()
    assert found == [{"n": 10}]


@pytest.mark.parametrize("name", ["with space", "per%20cent", "é", "a*b", "a?b", "a[b]", "x=1,y"])
def test_odd_folders_are_read(tmp_path: Path, name: str) -> None:
    made = rs.create_table(str(tmp_path / name), numbered(1, 2), key=["id"])
    assert session(made).sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 2}]


@pytest.mark.parametrize("name", ["Mixed", '"Quoted ""name"""', "public.t", "datafusion.public.t"])
def test_names_are_those_of_datafusion(table: rs.Table, name: str) -> None:
    context = SessionContext()
    context.register_table(name, table)
    assert context.sql(f"SELECT count(*) AS n FROM {name}").to_pylist() == [{"n": 100}]
    assert context.table(name).count() == 100
    context.deregister_table(name)
    with pytest.raises(Exception, match="not found"):
        context.sql(f"SELECT count(*) AS n FROM {name}")


def test_parameters_and_other_tables(table: rs.Table) -> None:
    context = session(table)
    context.from_pydict({"id": [3, 500]}, name="other")
    query = "SELECT t.id FROM t JOIN other USING (id) WHERE t.id < $top AND s = $s"
    found = context.sql(query, param_values={"top": 10, "s": "v3"}).to_pylist()
    assert found == [{"id": 3}]
    frame = context.sql("SELECT id FROM t WHERE id < 3")
    again = context.sql("SELECT count(*) AS n FROM {f}".replace("{f}", "$f"), f=frame)
    assert again.to_pylist() == [{"n": 2}]


def test_statements_of_threads_do_not_mix(tmp_path: Path) -> None:
    made = rs.create_table(str(tmp_path / "t"), numbered(*range(10)), key=["id"])
    for start in range(10, 60, 10):
        made.upsert(numbered(*range(start, start + 10)))
    context = session(made)
    wrong: list[Any] = []

    def ask(number: int) -> None:
        for _ in range(8):
            query = f"SELECT min(id) AS n FROM t WHERE id * 1 >= {number}"
            if (found := context.sql(query).to_pylist()) != [{"n": number}]:
                wrong.append((number, found))

    threads = [threading.Thread(target=ask, args=(number,)) for number in (5, 25, 45, 55)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("settings", [{}, {"datafusion.execution.target_partitions": "8"}])
def test_pruned_statements_give_the_rows_of_memory(
    table: rs.Table, settings: dict[str, str]
) -> None:
    memory = datafusion.SessionContext()
    ids = [i for i in range(110) if i >= 50 or i % 5]
    memory.register_record_batches("t", [numbered(*ids).to_batches()])
    ours = session(table, config=datafusion.SessionConfig(settings))
    whole = session(table, pruning=False)
    for query in QUERIES:
        expected = rows_of(memory.sql(query))
        assert rows_of(ours.sql(query)) == expected, query
        assert rows_of(whole.sql(query)) == expected, query


@pytest.mark.parametrize(
    "where",
    [
        "s LIKE 'w10%'",
        "id + 1 > 105",
        "upper(s) = 'W105' AND id > 60 AND id % 2 = 1 AND id >= 101",
        "CASE WHEN id > 100 THEN true ELSE false END",
        "CAST(id AS DOUBLE) > 105.5",
        "id IN (101, 102, 103, 104, 105)",
    ],
)
def test_conditions_of_all_kinds_skip_parts(tmp_path: Path, where: str) -> None:
    made = rs.create_table(str(tmp_path / "t"), numbered(*range(100)), key=["id"])
    more = [f"w{i}" for i in range(100, 110)]
    made.upsert(pa.table({"id": range(100, 110), "s": more}))
    context = session(made)
    query = f"SELECT id FROM t WHERE {where}"
    assert "leave 1 of 2 parts" in explained(context, query)
    found = rows_of(context.sql(query))
    assert found == rows_of(session(made, pruning=False).sql(query))
    assert found


def test_a_fault_of_ours_in_reading_conditions_is_not_hidden(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("rowsieve.providers.datafusion.part_choice.pruned_parts.conditions", fails)
    with pytest.raises(ZeroDivisionError):
        session(table).sql("SELECT id FROM t WHERE id > 90")
    monkeypatch.setattr("rowsieve.providers.datafusion.part_choice.pruned_parts.optimised", fails)
    assert session(table).sql("SELECT id FROM t WHERE id > 108").to_pylist() == [{"id": 109}]


def test_values_of_floats_are_found_by_datafusions_rules(tmp_path: Path) -> None:
    values = [0.0, -0.0, math.nan, 1.0, None, math.inf]
    made = rs.create_table(str(tmp_path / "t"), pa.table({"id": range(6), "f": values}), key=["id"])
    made.upsert(pa.table({"id": [6, 7], "f": [math.nan, 1.0]}))
    memory = datafusion.SessionContext()
    data = pa.table({"id": range(8), "f": [*values, math.nan, 1.0]})
    memory.register_record_batches("t", [data.to_batches()])
    context = session(made)
    for where in (
        *("f = 0", "f > 2", "f = 'NaN'", "f <> 1", "f >= 1", "NOT (f < 1)", "f IN (1, 2)"),
        *("f + 0 > 2", "abs(f) >= 1", "f IS DISTINCT FROM 1", "coalesce(f, 5) > 2", "isnan(f)"),
        *("CASE WHEN f > 1 THEN NULL ELSE true END", "NOT (f + 1 = 2)", "nullif(f, 1) IS NULL"),
    ):
        query = f"SELECT id FROM t WHERE {where}"
        assert rows_of(context.sql(query)) == rows_of(memory.sql(query)), where


def test_a_file_that_has_gone_is_an_error_not_no_rows(table: rs.Table) -> None:
    context = session(table)
    frame = context.sql("SELECT * FROM t WHERE s LIKE 'v%'")
    context.register_view("v", context.table("t"))
    for path in Path(urlsplit(table.uri).path).rglob("*.parquet"):
        path.unlink()
    for run in (
        frame.collect,
        context.table("v").collect,
        lambda: context.sql("SELECT s FROM t WHERE s LIKE 'v1%'").collect(),
        lambda: context.sql("SELECT max(s) FROM v").collect(),
    ):
        with pytest.raises(Exception, match=r"is missing: data.*parquet"):
            run()


def test_a_registered_view_keeps_its_version(table: rs.Table) -> None:
    context = session(table)
    context.register_view("v", context.sql("SELECT id FROM t WHERE id * 1 < 100"))
    table.delete("id < 50")
    counts = "SELECT (SELECT count(*) FROM v) AS v, (SELECT count(*) FROM t) AS t"
    assert context.sql(counts).to_pylist() == [{"v": 90, "t": 60}]


def test_a_copy_has_all_rows_of_its_version(table: rs.Table) -> None:
    context = session(table)
    context.sql("CREATE TABLE copy AS SELECT * FROM t WHERE s LIKE 'v10%'").collect()
    table.delete("id > 0")
    assert context.sql("SELECT count(*) AS n FROM copy").to_pylist() == [{"n": 10}]


def test_settings_that_change_conditions_turn_advice_off(tmp_path: Path) -> None:
    made = rs.create_table(str(tmp_path / "t"), numbered(*range(100)), key=["id"])
    made.upsert(numbered(*range(100, 110)))
    context = session(made)
    query = "SELECT id FROM t WHERE id + 1 > 105"
    assert "leave 1 of 2 parts" in explained(context, query)
    for setting, value, usual in (
        ("datafusion.execution.time_zone", "'+01:00'", None),
        ("datafusion.sql_parser.parse_float_as_decimal", "true", "false"),
    ):
        context.sql(f"SET {setting} = {value}").collect()
        plans = context.sql(f"EXPLAIN {query}").to_pylist()
        assert "rowsieve" not in [row["plan_type"] for row in plans]
        assert context.sql(query).count() == 5
        if usual:
            context.sql(f"SET {setting} = {usual}").collect()
        else:
            context = session(made)
        assert "leave 1 of 2 parts" in explained(context, query)


def test_a_table_that_is_replaced_is_read_anew(tmp_path: Path, table: rs.Table) -> None:
    context = session(table)
    frame = context.table("t")
    other = rs.create_table(str(tmp_path / "o"), pa.table({"x": [1, 2]}))
    context.deregister_table("t")
    context.register_table("t", other)
    assert context.sql("SELECT * FROM t WHERE x * 1 > 1").to_pylist() == [{"x": 2}]
    assert frame.count() == 100
    other.add_column("y", pa.int64())
    assert context.sql("SELECT * FROM t WHERE x * 1 > 1").to_pylist() == [{"x": 2, "y": None}]


def test_a_statement_that_makes_a_table_runs_once(table: rs.Table) -> None:
    context = session(table)
    context.sql("SELECT id INTO x FROM t WHERE id > 100").collect()
    context.sql("WITH c AS (SELECT * FROM t) SELECT id INTO y FROM c WHERE id > 105").collect()
    assert (context.table("x").count(), context.table("y").count()) == (9, 4)


def test_explain_leaves_no_table_behind(table: rs.Table) -> None:
    context = session(table)
    assert "version 2" in explained(context, "SELECT * FROM t WHERE id = 3")
    assert context.catalog().schema().names() == {"t"}


@pytest.mark.parametrize("change", ["replaced", "removed before", "spark"])
def test_functions_with_another_meaning_turn_advice_off(tmp_path: Path, change: str) -> None:
    made = rs.create_table(str(tmp_path / "u"), numbered(*range(5)), key=["id"])
    made.upsert(numbered(*range(5, 10)))
    context = session(made)
    where = "lower(s) = 'V7'"
    assert "leave 0 of 2" in explained(context, f"SELECT * FROM t WHERE {where}")
    if change != "spark":
        if change == "removed before":
            context.deregister_udf("lower")
        view = pa.string_view()
        upper = datafusion.udf(
            lambda values: pc.utf8_upper(values.cast(pa.string())).cast(view),
            [view], view, "immutable", "lower",
        )  # fmt: skip
        context.register_udf(upper)
        assert context.sql(f"SELECT id FROM t WHERE {where}").to_pylist() == [{"id": 7}]
        assert context.sql(f"DELETE FROM t WHERE {where}").to_pylist() == [{"count": 1}]
    else:
        context.enable_spark_functions()
    assert not context.has_default_semantics


def test_a_function_of_another_name_leaves_advice_on(table: rs.Table) -> None:
    context = session(table)
    one = datafusion.udf(lambda v: v, [pa.int64()], pa.int64(), "immutable", "mine")
    context.register_udf(one)
    assert context.has_default_semantics
    assert len(context.sql("SELECT id FROM t WHERE mine(id) > 100").to_pylist()) == 9


def test_tables_of_urls_need_datafusions_own_session(table: rs.Table) -> None:
    with pytest.raises(UnsupportedOperation, match="enable_url_table"):
        session(table).enable_url_table()
