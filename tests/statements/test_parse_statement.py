"""One text is one value, whatever stands in its literals and comments."""

from __future__ import annotations

import pytest

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.statements.alter import AlterTable
from rowsieve.statements.calls import Call, ExplainCall, ShowProcedures
from rowsieve.statements.catalog_names import CreateNamespace, RenameTable, ShowTables
from rowsieve.statements.merge_statement import Action, Merge, MergeClause, When
from rowsieve.statements.parse_statement import ExplainedChange, Statement, parse
from rowsieve.statements.queries import (
    Deallocate,
    Execute,
    Other,
    Query,
    QueryDefinition,
    Setting,
    read_definition,
)
from rowsieve.statements.read_change import Change, DropTable, read_change
from rowsieve.statements.refused import Refused
from rowsieve.statements.tokens import Target

SELECTS = Query()


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("SELECT 1", SELECTS),
        ("  -- CALL f()\n /* DELETE */ (select 1) UNION (SELECT 2)", SELECTS),
        ("(/* a */SELECT 1)", SELECTS),
        ("( -- a\n (with x AS (SELECT 1) SELECT 1))", SELECTS),
        ("(SET a = 1)", Other("SET")),
        ("SELECT1", Other("")),
        ("SELECT 'DELETE FROM t' AS \"merge\"", SELECTS),
        ("VALUES (1)", SELECTS),
        ("WITH x AS (SELECT 1) SELECT * FROM x", SELECTS),
        ("WITH delete AS (SELECT 1) SELECT * FROM delete", SELECTS),
        ("EXPLAIN SELECT 1", Query(explains=True, runs=False)),
        ("explain verbose /* analyze */ select 1", Query(explains=True, runs=False)),
        ("EXPLAIN -- a\n ANALYZE VERBOSE SELECT 1", Query(explains=True)),
        ("EXPLAIN VERBOSE ANALYSE SELECT 1", Query(explains=True)),
        ("-- a\nEXPLAIN DELETE FROM t", Query(explains=True, runs=False)),
        ("EXECUTE P(1)", Execute("p")),
        ('EXECUTE "P"', Execute("P")),
        ("DEALLOCATE PREPARE p", Deallocate("p")),
        ("SET a = 1", Setting()),
        ("reset a", Setting()),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", QueryDefinition(is_view=True, replaces=True)),
        ("create /* a */ temporary view v AS SELECT 1", QueryDefinition(is_view=True)),
        ("CREATE VIEW v AS SELECT 'x", QueryDefinition(is_view=True)),
        ("PREPARE p AS SELECT 1", QueryDefinition(is_view=False)),
        ("CALL f('DELETE')", Call("f", ("DELETE",))),
        ("EXPLAIN CALL f()", ExplainCall(Call("f"))),
        ("show procedures", ShowProcedures()),
        (
            "ALTER TABLE IF EXISTS T ADD COLUMN b int;",
            AlterTable(Target("T", ("t",)), "ADD COLUMN b int"),
        ),
        ("ALTER -- a\n TABLE /* b */ t DROP b", AlterTable(Target("t", ("t",)), "DROP b")),
        ("ALTER TABLE t", AlterTable(Target("t", ("t",)), "")),
        ("ALTER TABLE t DROP b; DROP c", Other("ALTER")),
        ('ALTER TABLE a."B" RENAME TO c', AlterTable(Target('a."B"', ("a", "B")), "RENAME TO c")),
        ("ALTER VIEW v AS SELECT 1", Other("ALTER")),
        ("COPY t TO 'x'", Other("COPY")),
        ("DROP VIEW v; SELECT 1", Other("DROP")),
        ("", Other("")),
    ],
)
def test_a_statement_is_read(text: str, statement: Statement) -> None:
    assert parse(text) == statement


@pytest.mark.parametrize(
    ("text", "verb", "name"),
    [
        ("INSERT INTO a.B VALUES (1)", "INSERT", ("a", "b")),
        ("-- x\nREPLACE INTO t SELECT 1", "REPLACE", ("t",)),
        ('/* a */ DELETE FROM "T"', "DELETE", ("T",)),
        ("WITH x AS (SELECT 1) UPDATE t SET a = (SELECT 1 FROM x)", "UPDATE", ("t",)),
        ("merge into t using s on true when matched then delete", "MERGE", ("t",)),
        ("TRUNCATE TABLE t", "TRUNCATE", ("t",)),
        ("CREATE OR REPLACE TABLE t AS SELECT 1", "CREATE", ("t",)),
        ("CREATE TABLE IF NOT EXISTS c.d.t (a int)", "CREATE", ("c", "d", "t")),
        ("DROP TABLE IF EXISTS t", "DROP", ("t",)),
    ],
)
def test_a_change_is_known_by_its_verb_and_table(
    text: str, verb: str, name: tuple[str, ...]
) -> None:
    change = parse(text)
    assert isinstance(change, Change)
    assert (change.verb, change.name) == (verb, name)
    explained = parse(f"EXPLAIN ANALYZE {text}")
    assert isinstance(explained, ExplainedChange)
    assert explained.change.name == name


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE SCHEMA IF NOT EXISTS a", CreateNamespace("a", ignores_existing=True)),
        ("SHOW TABLES IN a", ShowTables("a")),
        ("ALTER TABLE a.b RENAME TO c", RenameTable(("a", "b"), ("a", "c"))),
        ("DROP TABLE a.B PURGE", DropTable(Target("a.B", ("a", "B")), if_exists=False, purge=True)),
    ],
)
def test_names_of_a_catalog_are_read_where_they_are_asked_for(
    text: str, statement: Statement
) -> None:
    assert parse(text, names=True) == statement
    assert parse(text) != statement


@pytest.mark.parametrize(
    "text",
    [
        *(
            "VACUUM",
            "OPTIMIZE t ZORDER BY (a)",
            "BEGIN",
            "START TRANSACTION",
            "commit;",
            "ROLLBACK",
        ),
        *("/* a */ SAVEPOINT a", "ANALYZE TABLE t", "RESTORE TABLE t TO VERSION AS OF 1"),
        *("CREATE INDEX i ON t (a)", "DROP INDEX i", "SHOW CREATE TABLE t", "show create view v"),
        *("ALTER INDEX i RENAME TO j", "REINDEX TABLE t", "GRANT SELECT ON t TO r", "LOCK TABLE t"),
        *("CREATE TRIGGER r AFTER INSERT ON t EXECUTE FUNCTION f()", "COMMENT ON TABLE t IS 'x'"),
        *("VACUUM(FULL) t", "ANALYZE(VERBOSE)", "EXPLAIN VACUUM(FULL) t"),
        *("EXPLAIN CREATE INDEX i ON t (a)", "explain verbose -- x\nVACUUM t"),
    ],
)
def test_a_statement_of_others_is_refused_by_name(text: str) -> None:
    statement = parse(text)
    assert isinstance(statement, Refused)
    assert f"sql: {statement.verb} is not available: " in str(statement.error)
    assert statement.verb in text.upper()


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("/* a /* b */ DELETE FROM t -- */ SELECT 1", SELECTS),
        ("/* a /* b */ */ SELECT 1", SELECTS),
        ("( /* /**/ DELETE */ SELECT 1)", SELECTS),
        ("/* a /* b */ DELETE FROM t", Other("")),
        ("/*" * 20_000 + "*/" * 20_000 + "SELECT 1", SELECTS),
    ],
)
def test_comments_are_nested_as_engines_nest_them(text: str, statement: Statement) -> None:
    """Else a text that only returns rows would be run as the change in its comment."""
    assert parse(text) == statement


def test_a_view_is_cut_into_its_name_and_its_query() -> None:
    text = "CREATE VIEW a.V (x) AS /* q */ SELECT 1 AS y"
    view = parse(text)
    assert isinstance(view, QueryDefinition)
    kept = read_definition(view)
    assert (kept.name, kept.query) == (("a", "v"), "SELECT 1 AS y")
    assert text[kept.start :] == "SELECT 1 AS y"
    unfolded = parse(text, folds=False)
    assert isinstance(unfolded, QueryDefinition)
    assert read_definition(unfolded).name == ("a", "V")


@pytest.mark.parametrize("text", ["CREATE VIEW v AS SELECT 'x", "PREPARE p AS SELECT 1; SELECT 2"])
def test_a_view_that_is_not_one_statement_cannot_be_kept(text: str) -> None:
    kept = parse(text)
    assert isinstance(kept, QueryDefinition)
    with pytest.raises(InvalidInput, match="one statement"):
        read_definition(kept)


def merge_of(clauses: str) -> Merge:
    change = parse(f"MERGE INTO t AS a USING (SELECT 1 AS k) AS s ON a.k = s.k {clauses}")
    assert isinstance(change, Change)
    merge = read_change(change.tokens)
    assert isinstance(merge, Merge)
    return merge


def test_merge_has_clauses_with_conditions_and_actions() -> None:
    merge = merge_of(
        "WHEN MATCHED AND s.k > 1 THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED THEN INSERT (k, V) VALUES (s.k, f(1, 2)) "
        "WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (1, 'WHEN') "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = CASE WHEN a.k = 1 THEN 2 END"
    )
    assert merge.clauses == (
        MergeClause(When.MATCHED, 1, Action.DELETE, None, "s.k > 1"),
        MergeClause(When.MATCHED, 2, Action.UPDATE),
        MergeClause(When.NOT_MATCHED, 1, Action.INSERT),
        MergeClause(When.NOT_MATCHED, 2, Action.INSERT, {"k": "s.k", "v": "f(1, 2)"}),
        MergeClause(When.NOT_MATCHED, 3, Action.INSERT, ("1", "'WHEN'")),
        MergeClause(
            When.NOT_MATCHED_BY_SOURCE, 1, Action.UPDATE, {"v": "CASE WHEN a.k = 1 THEN 2 END"}
        ),
    )
    assert [merge.clauses[i].takes_source for i in range(3)] == [False, True, True]


def test_a_merge_is_written_with_columns_in_place_of_stars() -> None:
    merge = merge_of("WHEN MATCHED AND true THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    spelled = merge.spelled_out(["k", 'a"b'])
    again = parse(spelled.text)
    assert isinstance(again, Change)
    assert read_change(again.tokens) == spelled
    assert spelled.clauses[0].values == {"k": 's."k"', 'a"b': 's."a""b"'}


@pytest.mark.parametrize(
    ("clauses", "reason"),
    [
        ("WHEN MATCHED THEN INSERT *", "WHEN MATCHED cannot INSERT"),
        ("WHEN NOT MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED cannot UPDATE or DELETE"),
        ("WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", "has no row of the source"),
        ("WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", "1 values for the 2 columns"),
        ("WHEN NOT MATCHED THEN INSERT (a, A) VALUES (1, 2)", "names a column twice"),
        ("WHEN NOT MATCHED THEN INSERT * WHERE TRUE", "INSERT \\* in MERGE with 'WHERE TRUE'"),
        ("WHEN MATCHED THEN UPDATE SET *, a = 1", "UPDATE SET \\* in MERGE with ', a = 1'"),
        ("", "expected a condition|needs a clause"),
    ],
)
def test_a_wrong_clause_is_refused_by_its_fault(clauses: str, reason: str) -> None:
    with pytest.raises((InvalidInput, UnsupportedOperation), match=reason):
        merge_of(clauses)


@pytest.mark.parametrize("text", ["SELECT{}1", "EXPLAIN{}ANALYZE x", "CREATE{}VIEW v AS SELECT 1"])
def test_many_spaces_and_comments_do_not_take_for_ever(text: str) -> None:
    """With a pattern that backtracks, this takes days."""
    for filler in (" " * 100_000, " /**/ " * 20_000, " -- a\n" * 20_000):
        assert parse(filler + text.format(" ")) == parse(text.format(" "))


def test_comments_between_the_words_of_a_refused_statement_are_skipped() -> None:
    statement = parse("create /* x */ unique -- y\nindex i ON t (a)")
    assert isinstance(statement, Refused)
    assert statement.verb == "CREATE UNIQUE INDEX"
    assert not isinstance(parse("EXPLAIN BEGIN"), Refused)  # it would begin a transaction
