"""Statements on procedures are read as plain values, or refused with what is wrong."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from rowsieve import clock
from rowsieve.errors import InvalidInput
from rowsieve.statements.call_values import TimeLiteral
from rowsieve.statements.calls import (
    Call,
    CallStatement,
    DescribeProcedure,
    ExplainCall,
    ShowProcedures,
    name_parts,
)
from rowsieve.statements.parse_statement import parse

REWRITE = "rewrite_data_files"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CALL f()", Call("f")),
        (" call  F ( ) ; ", Call("f")),
        ("CALL system.f('db', 't')", Call("f", ("db", "t"))),
        (
            'CALL "my cat".system.f(1, -2, TRUE, false, NULL)',
            Call("f", (1, -2, True, False, None), catalog="my cat"),
        ),
        ("CALL System.f()", Call("f")),
        ("ALTER TABLE c.a.b EXECUTE optimize", Call(REWRITE, (), {"table": "c.a.b"}, "c")),
        ("CALL f('it''s', 'a\\b')", Call("f", ("it's", "a\\b"))),
        (
            "CALL f(table => 'db.t', where => 'a = ''x''')",
            Call("f", (), {"table": "db.t", "where": "a = 'x'"}),
        ),
        ("CALL f('db', TABLE_NAME => 't')", Call("f", ("db",), {"table_name": "t"})),
        (
            "CALL f(o => MAP(ARRAY['a', 'b'], ARRAY['1', 2]))",
            Call("f", (), {"o": {"a": "1", "b": "2"}}),
        ),
        ("CALL f(o => map('a', 'x', 'b', true))", Call("f", (), {"o": {"a": "x", "b": "true"}})),
        ("CALL f(o => map('a', 'x'))", Call("f", (), {"o": {"a": "x"}})),
        ("CALL f(o => map())", Call("f", (), {"o": {}})),
        ("CALL f(map => 'x')", Call("f", (), {"map": "x"})),
        (
            "CALL f(TIMESTAMP '2024-01-02 03:04:05 UTC', d => DATE '2024-01-02')",
            Call("f", (TimeLiteral("2024-01-02 03:04:05 UTC"),), {"d": TimeLiteral("2024-01-02")}),
        ),
        ("CALL f(\n  'a',\n  n => 5\n)", Call("f", ("a",), {"n": 5})),
        ("ALTER TABLE db.t EXECUTE optimize", Call(REWRITE, (), {"table": "db.t"})),
        (
            "alter table \"db\".t execute optimize(file_size_threshold => '128MB') where b = ')'",
            Call(
                REWRITE,
                (),
                {
                    "table": '"db".t',
                    "where": "b = ')'",
                    "options": {"file-size-threshold": "128MB"},
                },
            ),
        ),
        (
            "ALTER TABLE db.t EXECUTE remove_orphan_files(retention_threshold => '1.5h')",
            Call("remove_orphan_files", (), {"table": "db.t", "grace_s": 5_400}),
        ),
        (
            "ALTER TABLE t EXECUTE rollback_to_snapshot(7)",
            Call("rollback_to_snapshot", (), {"table": "t", "version": 7}),
        ),
        (
            "ALTER TABLE t EXECUTE rollback_to_snapshot(snapshot_id => 7)",
            Call("rollback_to_snapshot", (), {"table": "t", "version": 7}),
        ),
        (
            "ALTER TABLE t EXECUTE add_files(location => 'x', format => 'PARQUET')",
            Call("add_files", (), {"table": "t", "source": "x"}),
        ),
        (
            "ALTER TABLE t EXECUTE optimize_manifests",
            Call("rewrite_manifests", (), {"table": "t"}),
        ),
        ("EXPLAIN CALL f('a');", ExplainCall(Call("f", ("a",)))),
        ("explain\nalter table t execute optimize", ExplainCall(Call(REWRITE, (), {"table": "t"}))),
        ("-- a; comment\n/* and; another */ CALL f('a') ; -- the end", Call("f", ("a",))),
        ("CALL f('a;b', /* c */ 'd')", Call("f", ("a;b", "d"))),
        ("CALL system.\"F\"('a')", Call("f", ("a",))),
        ("/* x */ SHOW PROCEDURES;", ShowProcedures()),
        ("ALTER TABLE a.b EXECUTE optimize ;", Call(REWRITE, (), {"table": "a.b"})),
        ("DESCRIBE PROCEDURE system.F", DescribeProcedure("f")),
        ("desc procedure f", DescribeProcedure("f")),
        ('DESC PROCEDURE `my cat`.system."F"', DescribeProcedure("f")),
    ],
)
def test_statement_is_read(text: str, statement: CallStatement) -> None:
    assert parse(text) == statement


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        (
            """CALL `my cat`.system.`f`(`table` => "db.t", where => 'a = "x"')""",
            Call("f", (), {"table": "db.t", "where": 'a = "x"'}, "my cat"),
        ),
        (r"CALL f('it\'s', '\\d')", Call("f", ("it's", r"\d"))),
        (
            "EXPLAIN CALL f(map('a', \"b\"), MAP(ARRAY['a'], ARRAY['b']))",
            ExplainCall(Call("f", ({"a": "b"}, {"a": "b"}))),
        ),
        ("CALL f(TIMESTAMP '2024-01-02')", Call("f", (TimeLiteral("2024-01-02"),))),
        ("CALL f('''a''b''', '', 'c')", Call("f", ("'a'b'", "", "c"))),
        (
            'ALTER TABLE `db`.t EXECUTE optimize(file_size_threshold => "1GB")',
            Call(REWRITE, (), {"table": "`db`.t", "options": {"file-size-threshold": "1GB"}}),
        ),
    ],
)
def test_spark_quotes_texts_and_names_as_its_sql_does(text: str, statement: CallStatement) -> None:
    assert parse(text, "spark") == statement


@pytest.mark.parametrize(
    "text",
    [
        "CALL f('a'); CALL g('b')",
        "CALL f('a'); DROP TABLE db.t",
        "CALL f(';'); ; SELECT 1",
    ],
)
def test_a_second_statement_is_refused_and_not_ignored(text: str) -> None:
    with pytest.raises(InvalidInput, match="a second statement follows"):
        parse(text)


@pytest.mark.parametrize("text", ["CALL f({}", "ALTER TABLE t EXECUTE f{}(", "SHOW PROCEDURES{}x"])
def test_many_spaces_do_not_take_for_ever(text: str) -> None:
    """With a pattern that backtracks, this takes days."""
    for filler in (" " * 200_000, ";" * 200_000, " ;" * 100_000, "/**/" * 50_000):
        with suppress(InvalidInput):
            parse(filler + text.format(filler))


@pytest.mark.parametrize(
    "text", ["SELECT 1", "EXPLAIN SELECT 1", "", "CALLING f()", "ALTER TABLE t ADD COLUMN a INT"]
)
def test_other_statements_are_no_calls(text: str) -> None:
    assert not isinstance(parse(text), CallStatement)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CALL f", "name a procedure and its arguments"),
        ("CALL f() AS x", "name a procedure and its arguments"),
        ("CALL f(", "cannot be read"),
        ("CALL", "cannot be read: a part is missing or too many; a call"),
        ("CALL system.", "cannot be read: a part is missing or too many; a call"),
        ("CALL f(a =>)", "cannot be read: a part is missing or too many; a call"),
        ("CALL f(a)", "is not a literal"),
        ("CALL f(1.5)", "is not a literal"),
        ("CALL f(1 + 1)", "is not a literal"),
        ('CALL f("x")', "is not a literal"),
        ("CALL f((SELECT 1))", "is not a literal"),
        ("CALL f(CAST('1' AS bigint))", "is not a literal"),
        ("CALL f(JSON '1')", "is not a literal"),
        ("CALL f(ids => ARRAY[0])", "is a list, which no procedure takes"),
        ("CALL f(a => 1, 2)", "positional argument follows a named one"),
        ("CALL f(a => 1, A => 2)", "given twice"),
        ("CALL f(o => map('a', 'b', 'c'))", "key without a value"),
        ("CALL f(o => MAP(ARRAY['a', 'b'], ARRAY['c']))", "2 keys and 1 values"),
        ("CALL f(o => map('a', 'b', 'a', 'c'))", "a key twice"),
        ("CALL f(o => map('a', NULL))", "in a map is not a text"),
        ("ALTER TABLE t EXECUTE vacuum", "only optimize, optimize_manifests, expire_snapshots"),
        ("ALTER TABLE t EXECUTE drop_extended_stats", "statistics belong to the parts"),
        ("ALTER TABLE t EXECUTE add_files_from_table", "source => 'folder'"),
        ("ALTER TABLE t EXECUTE optimize_manifests WHERE a = 1", "takes no WHERE"),
        ("ALTER TABLE t EXECUTE expire_snapshots(retention_threshold => '7 weeks')", "'7d'"),
        ("ALTER TABLE t EXECUTE expire_snapshots('7d')", "name the arguments"),
        ("ALTER TABLE t EXECUTE add_files(location => 'x', format => 'ORC')", "files of ORC"),
        ("ALTER TABLE t EXECUTE optimize('x')", "name the arguments"),
        ("CALL f(" + "(" * 5_000 + ")" * 5_000 + ")", "cannot be read"),
        ("CALL f('" + "x" * 1_000_000 + "')", "the limit is 1,000,000"),
    ],
)
def test_wrong_call_is_refused_by_its_fault(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        parse(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("db.t", ["db", "t"]),
        ('`my cat`."db".t', ["my cat", "db", "t"]),
        ('"d""b".`t``u`', ['d"b', "t`u"]),
        ('"a.b".c-d', ["a.b", "c-d"]),
        ("db..t", []),
        ('"db.t', []),
        ("db.t ", []),
        ('"".t', []),
        ("", []),
    ],
)
def test_a_name_is_divided_at_its_dots_outside_of_quotes(text: str, parts: list[str]) -> None:
    assert list(name_parts(text)) == parts


def test_retention_threshold_is_an_age() -> None:
    call = parse("ALTER TABLE t EXECUTE expire_snapshots(retention_threshold => '7d')")
    assert isinstance(call, Call)
    older_than = call.named["older_than"]
    assert isinstance(older_than, datetime)
    age = datetime.fromtimestamp(clock.now_us() / 1e6, UTC) - older_than
    assert timedelta(days=7) <= age < timedelta(days=7, minutes=10)
