"""Statements of our session that change tables: what they do, and what they refuse."""

from __future__ import annotations

import datetime as dt
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import (
    EvaluationError,
    InvalidData,
    InvalidInput,
    KeyViolation,
    RowsieveError,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedOperation,
)
from rowsieve.metrics import ScanReport
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.changes.statement_queries import StatementQueries
from tests.stores.s3_server import S3


def made(folder: Path, name: str = "t", **options: Any) -> rs.Table:
    data = pa.table({"id": [1, 2, 3], "v": [1.5, 2.5, None], "s": ["a", "b", "c"]})
    return rs.create_table(str(folder / name), data, **({"key": ["id"]} | options))


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return made(tmp_path)


@pytest.fixture
def context(table: rs.Table) -> SessionContext:
    session = SessionContext()
    session.register_table("t", table)
    session.from_pydict({"id": [1, 9], "v": [7.0, 8.0]}, name="src")
    return session


def run(context: SessionContext, statement: str, **more: Any) -> int:
    return int(context.sql(statement, **more).to_pylist()[0]["count"])


def content(table: rs.Table) -> list[tuple[Any, ...]]:
    rows = table.scan().to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def test_a_statement_runs_at_once_and_once(context: SessionContext, table: rs.Table) -> None:
    frame = context.sql("INSERT INTO t VALUES (4, 4, 'd'), (5, NULL, NULL)")
    assert table.scan().count() == 5
    version = rs.open_table(table.uri).version
    assert frame.to_pylist() == frame.to_pylist() == [{"count": 2}]
    frame.collect()
    assert rs.open_table(table.uri).version == version
    assert frame.schema() == pa.schema([pa.field("count", pa.uint64(), nullable=False)])
    assert context.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 5}]


def test_an_insert_never_replaces_a_row(context: SessionContext, table: rs.Table) -> None:
    before = content(table)
    with pytest.raises(KeyViolation, match=r"'id': 2.*INSERT OR REPLACE"):
        run(context, "INSERT INTO t VALUES (4, 0, ''), (2, 0, ''), (5, 0, '')")
    with pytest.raises(KeyViolation, match="repeat the key"):
        run(context, "INSERT INTO t VALUES (4, 0, ''), (4, 0, '')")
    with pytest.raises(KeyViolation, match="NULL"):
        run(context, "INSERT INTO t (id, v) VALUES (NULL, 1)")
    with pytest.raises(SchemaMismatch, match="lacks the key column"):
        run(context, "INSERT INTO t (v) VALUES (1)")
    assert content(table) == before
    assert run(context, "INSERT INTO t (id, v) VALUES (2, 0), (4, 0) ON CONFLICT DO NOTHING") == 1
    assert run(context, "INSERT OR REPLACE INTO t (s, id) VALUES ('z', 3)") == 1
    assert run(context, "REPLACE INTO t SELECT 1, 1 AS v, 'one'") == 1
    assert content(table) == [
        (1, 1.0, "one"), (2, 2.5, "b"), (3, None, "z"), (4, 0.0, None),
    ]  # fmt: skip
    assert [c.operation for c in table.history(3)] == ["upsert", "upsert", "insert"]


def test_on_conflict_updates_rows_by_both_rows(context: SessionContext, table: rs.Table) -> None:
    text = (
        "INSERT INTO t (id, v) SELECT id, v FROM src ON CONFLICT (id) "
        "DO UPDATE SET v = excluded.v + t.v, s = t.s || '!' WHERE t.v < 9"
    )
    assert run(context, text) == 2
    assert run(context, text) == 2
    assert content(table) == [(1, 15.5, "a!!"), (2, 2.5, "b"), (3, None, "c"), (9, 16.0, None)]
    for text in (
        "INSERT INTO t VALUES (1, 1, '') ON CONFLICT (v) DO NOTHING",
        "INSERT INTO t VALUES (1, 1, '') ON CONFLICT DO UPDATE SET v = 1",
        "INSERT OR REPLACE INTO t VALUES (1, 1, '') ON CONFLICT DO NOTHING",
    ):
        with pytest.raises(InvalidInput):
            run(context, text)


def test_do_nothing_inserts_the_first_row_of_a_key(
    context: SessionContext, table: rs.Table
) -> None:
    text = "INSERT INTO t VALUES (8, 1, 'a'), (2, 9, 'x'), (8, 2, 'b'), (7, 0, ''), (8, 3, 'c')"
    assert run(context, f"{text} ON CONFLICT DO NOTHING") == 2
    assert run(context, f"{text} ON CONFLICT (id) DO NOTHING") == 0
    assert content(table)[1:] == [
        (2, 2.5, "b"), (3, None, "c"), (7, 0.0, ""), (8, 1.0, "a"),
    ]  # fmt: skip


def test_rows_may_be_deleted_by_several_rows_of_the_source(
    context: SessionContext, table: rs.Table
) -> None:
    source = "MERGE INTO t USING (VALUES (1, 5), (1, 6), (2, 7), (40, 8)) s(k, n) ON id = k "
    text = source + "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (k, n, 'new')"
    assert run(context, text) == 3
    assert content(table) == [(3, None, "c"), (40, 8.0, "new")]
    source = "MERGE INTO t USING (VALUES (3, 1), (3, 2)) s(k, n) ON id = k "
    update = "WHEN MATCHED AND n = 1 THEN UPDATE SET v = n WHEN MATCHED THEN DELETE"
    with pytest.raises(KeyViolation, match="two rows of the source"):
        run(context, source + update)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UPDATE t SET v = src.v FROM src, src r WHERE src.id = t.id", "UPDATE … FROM.*subquery"),
        ("DELETE FROM t USING src JOIN src r ON true", "DELETE … USING.*subquery"),
        ("alter table if exists public.t rename to u", "RENAME TO is not available"),
        ("SELECT * FROM t VERSION AS OF 0", "version=n"),
        ("SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00'", "version=n"),
        ("SELECT * FROM t FOR TIMESTAMP AS OF '2026-01-01'", "version=n"),
        ("SELECT * FROM t AS OF 0", "only FOR VERSION AS OF"),
    ],
)
def test_statements_of_other_engines_are_refused_by_name(
    context: SessionContext, table: rs.Table, text: str, message: str
) -> None:
    with pytest.raises(UnsupportedOperation, match=rf"sql: .*{message}"):
        run(context, text)
    assert table.refresh() == 0


def test_distinct_from_is_a_comparison(context: SessionContext, table: rs.Table) -> None:
    assert run(context, "UPDATE t SET v = CASE WHEN s IS DISTINCT FROM 'a' THEN 1 END") == 3
    text = "UPDATE t SET v = CAST(s IS DISTINCT FROM 'a' AS INT) WHERE s IS NOT DISTINCT FROM 'b'"
    assert run(context, text) == 1
    with pytest.raises(Exception, match=r"(?i)alter"):
        context.sql("ALTER TABLE src ADD COLUMN z bigint")
    assert table.count() == 3


def test_a_column_called_conflict_is_no_clause(context: SessionContext, table: rs.Table) -> None:
    context.from_pydict({"conflict": [1], "n": [7]}, name="c")
    text = "INSERT INTO t (id) SELECT n FROM src JOIN c ON conflict = id"
    assert run(context, text) == 1
    assert (7, None, None) in content(table)


NO_LOSS = [
    pytest.param(pa.int32(), "3.0", 3, id="whole float"),
    pytest.param(pa.int32(), "3.5", None, id="fraction"),
    pytest.param(pa.int32(), "3000000000", None, id="too large"),
    pytest.param(pa.int32(), "'12'", 12, id="digits"),
    pytest.param(pa.int32(), "'12.5'", None, id="text of a fraction"),
    pytest.param(pa.float32(), "0.1", 0.10000000149011612, id="nearest float"),
    pytest.param(pa.float32(), "1e300", None, id="beyond float32"),
    pytest.param(pa.float64(), "9007199254740993", None, id="beyond the digits of a float"),
    pytest.param(pa.decimal128(20, 2), "0.1", Decimal("0.10"), id="decimal"),
    pytest.param(pa.decimal128(20, 2), "0.125", None, id="three digits"),
    pytest.param(pa.decimal128(20, 2), "'0.12000000000000000000001'", None, id="many digits"),
    pytest.param(pa.date32(), "'2024-02-29'", dt.date(2024, 2, 29), id="date"),
    pytest.param(pa.date32(), "'1066-10-14'", dt.date(1066, 10, 14), id="old date"),
    pytest.param(pa.date32(), "TIMESTAMP '2024-02-29 01:00:00'", None, id="an hour of a date"),
    pytest.param(pa.timestamp("us"), "'2024-02-29 01:00:00.5'",
                 dt.datetime(2024, 2, 29, 1, 0, 0, 500_000), id="text of a time"),
    pytest.param(pa.timestamp("us"), "'2024-02-29 01:00:00.0000001'", None, id="nanoseconds"),
    pytest.param(pa.timestamp("us"), "TIMESTAMP '2024-02-29' AT TIME ZONE 'UTC'",
                 None, id="instant as local time"),
    pytest.param(pa.string(), "7", "7", id="number as text"),
    pytest.param(pa.bool_(), "'true'", True, id="boolean"),
    pytest.param(pa.list_(pa.int32()), "[1, 2]", [1, 2], id="list"),
    pytest.param(pa.binary(), "7", None, id="number as bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "text", "value"), NO_LOSS)
def test_a_value_is_stored_whole_or_not_at_all(
    tmp_path: Path, type_: pa.DataType, text: str, value: Any
) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", type_)])
    keyed = rs.create_table(str(tmp_path / "keyed"), schema, key=["id"])
    plain = rs.create_table(str(tmp_path / "plain"), schema)
    for made_table in (keyed, plain):
        context = SessionContext()
        context.register_table("t", made_table)
        statements = [
            f"INSERT INTO t VALUES (1, {text})",
            f"INSERT INTO t SELECT 2, {text}",
            f"UPDATE t SET x = {text} WHERE id = 3",
        ]
        if made_table is keyed:
            statements.append(
                f"MERGE INTO t USING (SELECT 4 AS k) s ON id = k WHEN NOT MATCHED THEN INSERT "
                f"(id, x) VALUES (k, {text})"
            )
        run(context, "INSERT INTO t (id) VALUES (3)")
        for statement in statements:
            if value is None:
                with pytest.raises((EvaluationError, InvalidData, SchemaMismatch)):
                    run(context, statement)
            else:
                assert run(context, statement) == 1
        found = made_table.scan().to_arrow().column("x").to_pylist()
        assert found == ([None] if value is None else [value] * (len(statements)))


def test_whole_numbers_beside_fractions_keep_their_digits(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.decimal128(20, 1))])
    table = rs.create_table(str(tmp_path / "t"), schema, key=["id"])
    context = SessionContext()
    context.register_table("t", table)
    run(context, "INSERT INTO t VALUES (1, 9007199254740993), (2, 0.5)")
    text = "INSERT INTO t VALUES (1, 9007199254740995), (3, 1.5) ON CONFLICT (id) "
    run(context, text + "DO UPDATE SET x = excluded.x")
    assert content(table) == [
        (1, Decimal("9007199254740995.0")), (2, Decimal("0.5")), (3, Decimal("1.5")),
    ]  # fmt: skip
    with pytest.raises(InvalidData):
        run(context, "INSERT INTO t VALUES (4, 9007199254740993), (5, 0.25)")
    assert table.scan().count() == 3


REFUSED = [
    ("UPDATE t SET id = id + 1", UnsupportedOperation, "key column 'id'"),
    ("UPDATE t SET v = 1, v = 2", InvalidInput, "assigned twice"),
    ("UPDATE t SET nosuch = 1", RowsieveError, "nosuch"),
    ("INSERT INTO t (nosuch) VALUES (1)", RowsieveError, "nosuch"),
    ("INSERT INTO t (id, id) VALUES (1, 2)", RowsieveError, "id"),
    ("INSERT INTO t VALUES (1)", RowsieveError, "."),
    ("INSERT OVERWRITE t SELECT * FROM t", UnsupportedOperation, "INSERT OVERWRITE"),
    ("DELETE FROM t WHERE id = 1 LIMIT 1", UnsupportedOperation, "LIMIT"),
    ("DELETE FROM t WHERE id = 1) OR (TRUE", RowsieveError, "."),
    ("DELETE FROM t WHERE id = 1; DELETE FROM t", UnsupportedOperation, "several statements"),
    ("DELETE FROM t; SELECT 1", UnsupportedOperation, "several statements"),
    ("(DELETE FROM t)", InvalidInput, "brackets"),
    ("UPDATE t SET", InvalidInput, "expected a name"),
    ("UPDATE t SET v = 1 / 0", EvaluationError, "nothing was changed"),
    ("INSERT INTO t VALUES (9, 1 / 0, '')", EvaluationError, "nothing was changed"),
    ("DELETE FROM t AS a WHERE t.id = 1", InvalidInput, "(?s)t.id.*nothing was changed"),
    ("DELETE FROM t AS a WHERE a.id = 1) OR (TRUE", InvalidInput, "condition"),
    ("UPDATE t SET v = 1) OR (1 WHERE TRUE", InvalidInput, "."),
    ("UPDATE t SET v = CASE WHEN s IN (SELECT s FROM src) THEN 1 END", EvaluationError, "."),
    ("DELETE FROM seen WHERE id = 1", UnsupportedOperation, "seen is a view"),
    ("INSERT INTO seen VALUES (9, 9, '')", UnsupportedOperation, "seen is a view"),
    ("MERGE INTO seen USING src ON seen.id = src.id WHEN MATCHED THEN DELETE",
     UnsupportedOperation, "seen is a view"),
    ("DELETE FROM t WHERE nosuch = 1", RowsieveError, "nosuch"),
    ("DELETE FROM t WHERE 1 IN (TIME '10:00:00', id)", InvalidInput, "types.*nothing was changed"),
    ("UPDATE t SET v = v + TIME '10:00:00'", InvalidInput, "coerce.*nothing was changed"),
    ("DELETE FROM t WHERE (id IN (1, 2)) = 1 RETURNING id", InvalidInput, "type.*nothing was"),
    ("DELETE FROM t WHERE v / (id - 1) > CAST(s AS INT)", RowsieveError, "(?i)cast|divide"),
    ("INSERT INTO t SELECT id, v, CAST('x' AS INT) FROM src", RowsieveError, "(?i)cast"),
    ("MERGE INTO t USING src s ON t.id = s.id WHEN MATCHED THEN INSERT VALUES (1, 2, '')",
     RowsieveError, "."),
    ("MERGE INTO t USING src s ON t.id = s.id WHEN NOT MATCHED THEN DELETE", RowsieveError, "."),
    ("MERGE INTO t USING src s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.id + 1",
     UnsupportedOperation, "another value to the key"),
    ("MERGE INTO t USING src s ON t.id = s.id + 1 WHEN NOT MATCHED THEN INSERT (id) VALUES (1)",
     KeyViolation, "."),
    ("MERGE INTO t x USING (SELECT 1 AS k) X ON id = k WHEN MATCHED THEN DELETE",
     InvalidInput, "alias"),
    ("MERGE INTO t USING (VALUES (1),(1)) s(k) ON id = k WHEN MATCHED AND k = 1 THEN DELETE",
     KeyViolation, "two rows of the source"),
    ("MERGE INTO t USING (VALUES (7),(7)) s(k) ON id=k WHEN NOT MATCHED THEN INSERT VALUES(7,1,'')",
     KeyViolation, "repeat the key"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "error", "message"), REFUSED)
def test_a_refused_or_failed_statement_changes_nothing(
    context: SessionContext, table: rs.Table, text: str, error: type[Exception], message: str
) -> None:
    before, version = content(table), table.version
    context.sql("CREATE VIEW seen AS SELECT * FROM t")
    with pytest.raises(error, match=message):
        run(context, text)
    fresh = rs.open_table(table.uri)
    assert (content(fresh), fresh.version) == (before, version)
    assert context.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 3}]


def test_a_table_of_a_fixed_version_is_read_only(tmp_path: Path, table: rs.Table) -> None:
    context = SessionContext()
    context.register_table("old", rs.open_table(table.uri, version=0))
    for text in (
        "INSERT INTO old VALUES (9, 9, '')", "INSERT OR REPLACE INTO old VALUES (9, 9, '')",
        "DELETE FROM old", "UPDATE old SET v = 1", "TRUNCATE TABLE old",
        "MERGE INTO old USING (SELECT 1 AS k) s ON id = k WHEN MATCHED THEN DELETE",
    ):  # fmt: skip
        with pytest.raises(UnsupportedOperation, match="read-only"):
            run(context, text)


def test_names_are_found_as_datafusion_finds_them(tmp_path: Path) -> None:
    data = pa.table({"Id": [1, 2], 'a "b"': [1, 2], "select": ["x", "y"]})
    table = rs.create_table(str(tmp_path / "t"), data, key=["Id"])
    context = SessionContext()
    context.register_table('"My ""T"""', table)
    name = 'datafusion.public."My ""T"""'
    text = (
        f'/* UPDATE x */ UPDATE {name} -- DELETE\n SET "a ""b""" = "Id" + 10, '
        "\"select\" = 'it''s; -- /* ' WHERE \"select\" = 'x' ;"
    )
    assert run(context, text) == 1
    assert run(context, f'insert into {name} ("select", "Id") values (\'WHERE\', 3)') == 1
    assert run(context, f'DELETE FROM {name} WHERE "Id" = 2') == 1
    assert content(table) == [(1, 11, "it's; -- /* "), (3, None, "WHERE")]
    with pytest.raises(Exception, match=r"(?i)id"):
        run(context, f"DELETE FROM {name} WHERE Id = 1")
    with pytest.raises((UnknownColumn, Exception), match=r"(?i)id"):
        run(context, f"INSERT INTO {name} (Id) VALUES (9)")
    assert table.scan().count() == 2


def test_case_expressions_do_not_end_a_clause(context: SessionContext, table: rs.Table) -> None:
    text = """MERGE INTO t USING src AS s ON t.id = s.id
        WHEN MATCHED AND CASE WHEN t.v > 1 THEN TRUE ELSE FALSE END THEN UPDATE SET
          v = CASE WHEN s.v > 5 THEN -s.v ELSE s.v END, s = 'WHEN MATCHED THEN DELETE'
        WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, CASE s.v WHEN 8 THEN 80 END)"""
    assert run(context, text) == 2
    assert (1, -7.0, "WHEN MATCHED THEN DELETE") in content(table)
    assert (9, 80.0, None) in content(table)


def test_parameters_are_values_and_frames(context: SessionContext, table: rs.Table) -> None:
    values = {"new": "it's", "low": 2}
    text = "UPDATE t SET s = $new WHERE id >= $low"
    assert run(context, text, param_values=values) == 2
    assert run(context, "DELETE FROM t WHERE s = $a", param_values={"a": "a"}) == 1
    assert run(context, "INSERT INTO t VALUES ($1, $2, NULL)", param_values={"1": 5, "2": 0.5}) == 1
    frame = context.sql("SELECT id + 100 AS id FROM src")
    assert run(context, "INSERT INTO t (id) SELECT id FROM $f", f=frame) == 2
    text = "MERGE INTO t USING (SELECT id AS k FROM $f) s ON id = k WHEN MATCHED THEN DELETE"
    assert run(context, text, f=frame) == 2
    assert content(table) == [(2, 2.5, "it's"), (3, None, "it's"), (5, 0.5, None)]


def test_options_and_settings_are_obeyed(context: SessionContext, table: rs.Table) -> None:
    options = datafusion.SQLOptions().with_allow_dml(allow=False)
    with pytest.raises(Exception, match="DML not supported"):
        context.sql("DELETE FROM t", options)
    with pytest.raises(Exception, match="DML not supported"):
        context.sql_with_options("INSERT INTO t VALUES (8, 8, '')", options)
    context.sql("SET datafusion.sql_parser.dialect = 'mysql'").collect()
    with pytest.raises(UnsupportedOperation, match="dialect"):
        run(context, "DELETE FROM t")
    assert table.scan().count() == 3


def test_tables_of_datafusion_are_changed_by_datafusion(
    context: SessionContext, table: rs.Table
) -> None:
    context.sql("CREATE TABLE m (id BIGINT) AS VALUES (1), (2)").collect()
    context.sql("INSERT INTO m SELECT id + 10 FROM t").collect()
    context.sql("DELETE FROM m WHERE id = 1").collect()
    assert context.sql("SELECT count(*) AS n FROM m").to_pylist() == [{"n": 4}]
    assert run(context, "DELETE FROM t WHERE id IN (SELECT id FROM m)") == 1


def test_a_dropped_or_replaced_name_is_forgotten(context: SessionContext, table: rs.Table) -> None:
    context.sql("DROP TABLE t").collect()
    rs.open_table(table.uri).delete("id = 1")
    with pytest.raises(Exception, match="not found"):
        context.sql("SELECT * FROM t")
    assert rs.open_table(table.uri).scan().count() == 2
    context.register_table("t", table)
    context.sql("CREATE OR REPLACE TABLE t AS SELECT 1 AS a").collect()
    context.sql("INSERT INTO t VALUES (2)").collect()
    assert context.sql("SELECT a FROM t ORDER BY a").to_pylist() == [{"a": 1}, {"a": 2}]
    assert rs.open_table(table.uri).scan().count() == 2


def test_a_refused_drop_keeps_following_the_table(context: SessionContext, table: rs.Table) -> None:
    options = datafusion.SQLOptions().with_allow_ddl(allow=False)
    for text in ("DROP TABLE t", "CREATE OR REPLACE TABLE t AS SELECT 1 AS a"):
        with pytest.raises(Exception, match="DDL not supported"):
            context.sql(text, options)
    context.sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS a")
    rs.open_table(table.uri).delete("id = 1")
    assert context.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 2}]


def test_a_table_without_a_key(tmp_path: Path) -> None:
    table = made(tmp_path, key=None)
    context = SessionContext()
    context.register_table("t", table)
    context.from_pydict({"id": [1]}, name="src")
    assert run(context, "INSERT INTO t SELECT * FROM t WHERE id = 1") == 1
    assert run(context, "UPDATE t SET v = v + 1 WHERE s LIKE 'a%'") == 2
    assert run(context, "DELETE FROM t WHERE id = 3") == 1
    assert content(table) == [(1, 2.5, "a"), (1, 2.5, "a"), (2, 2.5, "b")]
    for text in (
        "INSERT OR REPLACE INTO t VALUES (1, 1, '')",
        "INSERT INTO t VALUES (1, 1, '') ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (1, 1, '') ON CONFLICT (id) DO UPDATE SET v = 1",
    ):
        with pytest.raises(RowsieveError, match="key"):
            run(context, text)
    assert run(context, "UPDATE t SET v = (SELECT max(id) FROM t)") == 3
    assert run(context, "TRUNCATE TABLE t") == 3
    assert run(context, "TRUNCATE TABLE t") == 0


def test_two_names_of_a_table_stand_for_one_version(tmp_path: Path, table: rs.Table) -> None:
    context = SessionContext()
    context.register_table("t", table)
    context.register_table("twin", rs.open_table(table.uri))
    assert run(context, "INSERT INTO t SELECT id + 10, v, s FROM twin") == 3
    assert run(context, "DELETE FROM t WHERE id IN (SELECT id + 10 FROM twin)") == 3
    assert run(context, "DELETE FROM twin WHERE v = (SELECT max(v) FROM t)") == 1
    assert table.scan().count() == 2


def test_only_the_parts_of_the_keys_are_read(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    table = rs.create_table(str(tmp_path / "t"), schema, key=["id"])
    for start in range(0, 50, 10):
        ids = range(start, start + 10)
        table.upsert(pa.table({"id": ids, "v": ids}))
    context = SessionContext()
    context.register_table("t", table)
    reads: list[int] = []

    class Reporter:
        def report(self, report: Any) -> None:
            if isinstance(report, ScanReport):
                reads.append(report.metrics.parts_read)

    table.report_to(Reporter())
    text = (
        "MERGE INTO t USING (SELECT 41 AS k) s ON (t.id = s.k) "
        "WHEN MATCHED THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN INSERT VALUES (k, 1)"
    )
    assert run(context, text) == 1
    assert max(reads) == 1
    text = (
        "MERGE INTO t USING (SELECT 41 AS k) s ON t.id = s.k "
        "WHEN MATCHED AND (SELECT count(*) FROM t) = 50 THEN UPDATE SET v = 99"
    )
    assert run(context, text) == 1
    assert table.scan("id = 41").to_arrow().column("v").to_pylist() == [99]


def test_a_stream_of_conflicts_is_seen_through(
    context: SessionContext, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three commits come in between; the fourth attempt reads all of them."""
    other, rows, left = rs.open_table(table.uri), StatementQueries.run, [3]

    def interrupted(queries: Any, *arguments: Any) -> pa.Table:
        found = rows(queries, *arguments)
        if left[0]:
            left[0] -= 1
            other.update({"v": "coalesce(v, 0) + 1"}, where="id = 3")
        return found

    monkeypatch.setattr(StatementQueries, "run", interrupted)
    assert run(context, "UPDATE t SET v = v * 10 WHERE id = 3") == 1
    assert (3, 30.0, "c") in content(table)


ON_ONE = "MERGE INTO t USING (SELECT 1 AS k) s ON t.id = s.k WHEN "
ON_NEW = "MERGE INTO t USING (SELECT 90 AS k) s ON t.id = s.k WHEN MATCHED AND t.v > 1 THEN DELETE "
PHANTOMS = [
    ("UPDATE t SET v = 0 WHERE s = (SELECT max(s) FROM t)", [(90, 0.0, "z")]),
    ("UPDATE t SET v = (SELECT count(*) FROM t) WHERE id = 1", [(1, 4.0, "a")]),
    ("DELETE FROM t WHERE (SELECT count(*) FROM t) = 3", [(1, 1.5, "a")]),
    ("INSERT INTO t (id, s) SELECT 100, max(s) FROM t", [(100, None, "z")]),
    ("INSERT OR REPLACE INTO t (id, s) SELECT 1, max(s) FROM t", [(1, None, "z")]),
    (f"{ON_ONE} MATCHED AND (SELECT count(*) FROM t) = 3 THEN DELETE", [(1, 1.5, "a")]),
    (f"{ON_ONE} NOT MATCHED BY SOURCE THEN UPDATE SET v = 6", [(90, 6.0, "z")]),
    (f"{ON_NEW} WHEN NOT MATCHED THEN INSERT (id) VALUES (1000)", [(90, 1.0, "z")]),
]


@pytest.mark.parametrize(("text", "wanted"), PHANTOMS)
def test_a_row_that_comes_meanwhile_is_read(
    context: SessionContext, table: rs.Table, text: str, wanted: list[tuple[Any, ...]]
) -> None:
    """It is none of the rows that the statement writes."""
    other, rows, left = rs.open_table(table.uri), StatementQueries.run, [1]
    row = pa.table({"id": [90], "v": [1.0], "s": ["z"]})

    def interrupted(queries: Any, *arguments: Any) -> pa.Table:
        found = rows(queries, *arguments)
        if left.pop() if left else 0:
            other.upsert(row)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StatementQueries, "run", interrupted)
        run(context, text)
    found = content(table)
    assert set(wanted) <= set(found)
    assert len(found) == len({each[0] for each in found}) == (5 if "100," in text else 4)


def test_sessions_that_insert_one_key_have_one_winner(table: rs.Table) -> None:
    won: list[int] = []

    def insert(number: int) -> None:
        session = SessionContext()
        session.register_table("t", rs.open_table(table.uri))
        for key in range(10, 13):
            try:
                session.sql(f"INSERT INTO t (id, v) VALUES ({key}, {number})")
            except KeyViolation:
                continue
            won.append(key)

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [10, 11, 12]
    assert table.scan("id >= 10").count() == 3


def test_a_table_on_an_object_store(s3: S3) -> None:
    data = pa.table({"id": [1, 2], "v": [1.0, 2.0]})
    table = rs.create_table(s3.fresh_uri(), data, key=["id"], storage_options=s3.options)
    context = SessionContext()
    context.register_table("t", table)
    assert run(context, "INSERT INTO t VALUES (3, 3)") == 1
    text = "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED AND s.id > 1 THEN DELETE"
    assert run(context, text) == 2
    assert run(context, "UPDATE t SET v = (SELECT max(v) + 1 FROM t)") == 1
    fresh = rs.open_table(table.uri, storage_options=s3.options)
    assert content(fresh) == [(1, 2.0)]


def test_a_comment_ends_at_a_line_feed_alone(context: SessionContext, table: rs.Table) -> None:
    assert run(context, "DELETE FROM t WHERE id = 1 --\r OR id = 2\n") == 1
    assert run(context, "DELETE FROM t --\r\n WHERE id = 2\r") == 1
    assert run(context, "UPDATE t SET s = 'a\rb'") == 1
    assert content(table) == [(3, None, "a\rb")]


def test_text_that_is_inserted_may_read_the_table(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(pa.table({"id": [50], "v": [99.0], "s": ["z"]}))
    context = SessionContext()
    context.register_table("t", table)
    merge = "MERGE INTO t USING (SELECT 1 AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "
    assert run(context, merge + "v = $x", x="(SELECT max(v) FROM t)") == 1
    assert run(context, merge + "s = (SELECT max(s) FROM $x)", x="t") == 1
    assert content(table)[0] == (1, 99.0, "z")


def test_a_source_may_not_have_the_column_that_a_merge_adds(context: SessionContext) -> None:
    with pytest.raises(InvalidInput, match="rename the column '_rowsieve_row'"):
        context.sql(
            "MERGE INTO t USING (SELECT 1 AS id, 2 AS _rowsieve_row) AS s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE"
        )


@pytest.mark.parametrize(
    "where", ["a.id = 1", "id = 1", "EXISTS (SELECT 1 FROM src WHERE a.id = 1)"]
)
def test_the_alias_of_a_deleted_table_is_known_in_its_condition(
    context: SessionContext, table: rs.Table, where: str
) -> None:
    for text in (f"DELETE FROM t AS a WHERE {where}", f"DELETE FROM t a WHERE {where}"):
        run(context, text)
        table.refresh()
        assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [2, 3]
