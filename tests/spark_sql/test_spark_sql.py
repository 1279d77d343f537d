"""Files of Spark's SQL give over our tables what they give over Spark's own.

`ROWSIEVE_SPARK_SQL_TESTS` names a folder with files of another project, such as Spark's own tests:
they run in the deep profile. To run them alone and to add up what they show:
`python -m tests.spark_sql.runs FOLDER`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.profiles import IS_DEEP
from tests.spark_sql.given_tables import tables_named_in
from tests.spark_sql.inline_tables import with_views
from tests.spark_sql.runs import run_file
from tests.spark_sql.statements import Statement, settings, statements

FILES = Path(__file__).parent / "files"
FOREIGN = os.environ.get("ROWSIEVE_SPARK_SQL_TESTS") if IS_DEEP else None


@pytest.mark.spark
@pytest.mark.skipif(not IS_DEEP, reason="ten seconds: in the deep run")
@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("path", sorted(FILES.glob("*.sql")), ids=lambda path: path.stem)
def test_queries_have_the_same_rows_over_our_tables(
    spark: Any, tmp_path: Path, path: Path, merges: bool
) -> None:
    outcome = run_file(spark, path, tmp_path, merges=merges)
    assert outcome.wrong + outcome.raised + outcome.answered == []
    assert outcome.undecided == []
    assert outcome.tables_of_spark == 0
    assert outcome.tables == 3  # one of them again after the INSERT
    assert outcome.over_our_tables == outcome.compared == 20
    assert outcome.pruned >= 5
    assert len(outcome.failed_in_both) == 1  # the dropped table


@pytest.mark.spark
@pytest.mark.skipif(not FOREIGN, reason="needs the deep profile and ROWSIEVE_SPARK_SQL_TESTS")
def test_files_of_another_project_give_what_spark_gives(
    spark: Any, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    assert FOREIGN
    paths = sorted(Path(FOREIGN).rglob("*.sql"))
    assert paths, f"{FOREIGN} has no files of SQL"
    for path in paths:
        with subtests.test(str(path.relative_to(FOREIGN))):
            outcome = run_file(spark, path, tmp_path, merges=True)
            assert outcome.wrong + outcome.raised + outcome.answered == []


def test_a_file_is_read_as_spark_reads_it(tmp_path: Path) -> None:
    (tmp_path / "other.sql").write_text("--SET a=1, b = x=y\nSELECT 0;\n")
    path = tmp_path / "file.sql"
    path.write_text(
        "--IMPORT other.sql\n--CONFIG_DIM1 c=2\n-- a comment; of two\nSELECT ';',\n"
        "  -- another\n  1;\n--QUERY-DELIMITER-START\nBEGIN SELECT 1; SELECT 2; END;\n"
        "--QUERY-DELIMITER-END\nSELECT 3"
    )
    assert settings(path) == {"a": "1", "b": "x=y"}
    assert [*statements(path)] == [
        Statement(2, "SELECT 0"),
        Statement(4, "SELECT ';',\n\n  1"),
        Statement(8, "BEGIN SELECT 1; SELECT 2; END"),
        Statement(10, "SELECT 3"),
    ]


def test_an_import_is_the_nearest_other_file_above(tmp_path: Path) -> None:
    folder = tmp_path / "legacy"
    folder.mkdir()
    (tmp_path / "file.sql").write_text("SELECT 1")
    (folder / "file.sql").write_text("--IMPORT file.sql\n--SET a=1\n")
    assert [*statements(folder / "file.sql")] == [Statement(1, "SELECT 1")]
    assert settings(folder / "file.sql") == {"a": "1"}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT * FROM VALUES (1, ')'), (2, ';') AS t(a, b)",
            "SELECT * FROM (TABLE v0) AS t(a, b)",
        ),
        ("SELECT * FROM (values(1)), VALUES (2)", "SELECT * FROM ((TABLE v0)), (TABLE v1)"),
        ("VALUES (1), (2)", "(TABLE v0)"),
        ("FROM VALUES ((1)), ((2)) t(x) LIMIT 1", "FROM (TABLE v0) t(x) LIMIT 1"),
        ("SELECT 'FROM VALUES (1)' AS `VALUES (1)` -- VALUES (1)\n", None),
        ("SELECT x FROM VALUES 1, 2 AS t(x)", None),
        ("SELECT x FROM VALUES (1), 2 AS t(x)", None),
        ("SELECT x FROM VALUES (1", None),
    ],
)
def test_inline_tables_become_views(sql: str, expected: str | None) -> None:
    found: list[str] = []
    views = with_views(sql, lambda rows: found.append(rows) or f"v{len(found) - 1}")  # type: ignore[func-returns-value]
    assert views == (sql if expected is None else expected)
    assert all(rows.upper().startswith("VALUES") for rows in found)


def test_a_file_gets_the_tables_that_it_names() -> None:
    found = tables_named_in("SELECT * FROM OneK JOIN aggtest ON a = ten")
    assert {name: rows.num_rows for name, rows in found.items()} == {"aggtest": 4, "onek": 1000}
    rows = found["onek"].to_pylist()
    assert sorted(row["unique1"] for row in rows) == [row["unique2"] for row in rows]
