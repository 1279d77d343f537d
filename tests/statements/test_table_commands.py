"""Commands on one table, as values."""

from __future__ import annotations

import pytest

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.errors import RowsieveError
from rowsieve.statements.alter import read_alter
from rowsieve.statements.table_commands import (
    DescribeDetail,
    DescribeHistory,
    Optimize,
    Restore,
    TableCommand,
    Vacuum,
    read_table_command,
)
from rowsieve.statements.tokens import Target

SPARK = dialect_named("spark")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("OPTIMIZE db.t", Optimize(Target("db.t", ("db", "t")))),
        (
            "optimize `a b`.T where x = 'ZORDER BY' zorder by (`c d`, e.f);",
            Optimize(Target("`a b`.T", ("a b", "T")), "x = 'ZORDER BY'", ("c d", "e.f")),
        ),
        ("OPTIMIZE t ZORDER BY a, b", Optimize(Target("t", ("t",)), "", ("a", "b"))),
        ("/* x */ VACUUM t -- y", Vacuum(Target("t", ("t",)))),
        ("VACUUM t RETAIN 5 HOURS DRY RUN", Vacuum(Target("t", ("t",)), 5, dry_run=True)),
        ("RESTORE TABLE t TO VERSION AS OF 12", Restore(Target("t", ("t",)), 12)),
        ('RESTORE t TO TIMESTAMP AS OF "2026"', Restore(Target("t", ("t",)), None, "2026")),
        ("DESCRIBE HISTORY rowsieve.`/a.b`", DescribeHistory(Target("x", ("rowsieve", "/a.b")))),
        ("DESC HISTORY t LIMIT 3", DescribeHistory(Target("t", ("t",)), 3)),
        ("desc detail t", DescribeDetail(Target("t", ("t",)))),
        (
            "DESCRIBE HISTORY '/a/b c' LIMIT 1",
            DescribeHistory(Target("x", ("rowsieve", "/a/b c")), 1),
        ),
        ("VACUUM 's3://x/y' DRY RUN", Vacuum(Target("x", ("rowsieve", "s3://x/y")), dry_run=True)),
    ],
)
def test_a_command_is_a_value(text: str, command: TableCommand) -> None:
    statement = read_table_command(text, SPARK)
    assert statement is not None
    assert statement.target.parts == command.target.parts
    fields = [name for name in type(command).__slots__ if name != "target"]
    assert type(statement) is type(command)
    assert [getattr(statement, name) for name in fields] == [
        getattr(command, name) for name in fields
    ]


@pytest.mark.parametrize(
    "text",
    ["SELECT 1", "DESCRIBE t", "DESCRIBE HISTORY", "VACUUM a; VACUUM b", "-- VACUUM t", "DESC t x"],
)
def test_other_statements_are_not_commands(text: str) -> None:
    assert read_table_command(text, SPARK) is None


@pytest.mark.parametrize(
    "text",
    [
        "OPTIMIZE 't'",
        "OPTIMIZE t WHERE",
        "OPTIMIZE t ZORDER BY ()",
        "OPTIMIZE t ZORDER BY (a",
        "OPTIMIZE t FULL",
        "VACUUM t RETAIN x HOURS",
        "VACUUM t RETAIN 5",
        "VACUUM t RETAIN 5 HOURS LITE",
        "RESTORE t",
        "RESTORE t TO VERSION AS OF '5'",
        "RESTORE t TO VERSION AS OF 5 NOW",
        "RESTORE t TO TIMESTAMP AS OF now()",
        "DESCRIBE HISTORY t LIMIT all",
        "DESCRIBE DETAIL t LIMIT 1",
    ],
)
def test_a_command_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(RowsieveError, match="sql: "):
        read_table_command(text, SPARK)


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        (
            "ALTER TABLE t ADD COLUMNS (a INT, b DECIMAL(9, 2))",
            "ADD COLUMN a INT, ADD COLUMN b DECIMAL(9, 2)",
        ),
        ("ALTER TABLE t ADD COLUMN (`a,b` STRING)", "ADD COLUMN `a,b` STRING"),
        ("ALTER TABLE t ADD COLUMN a INT", "ADD COLUMN a INT"),
        ("ALTER TABLE t ADD COLUMNS (a INT), DROP COLUMN c", "ADD COLUMNS (a INT), DROP COLUMN c"),
    ],
)
def test_columns_in_brackets_are_added_one_by_one(text: str, actions: str) -> None:
    statement = read_alter(text, SPARK)
    assert statement is not None
    assert statement.actions == actions
