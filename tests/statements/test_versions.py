"""Versions in the text of a query become names of tables."""

from __future__ import annotations

import pytest

from rowsieve.errors import InvalidInput
from rowsieve.statements.versions import with_named_versions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", "SELECT 1"),
        (
            "SELECT * FROM db.T FOR VERSION AS OF 12 WHERE t.x = 1",
            'SELECT * FROM db."t@v12" AS "t" WHERE t.x = 1',
        ),
        ("FROM a for version as of 1 AS b", 'FROM "a@v1" AS b'),
        ("FROM a FOR VERSION AS OF 1 b, c", 'FROM "a@v1" b, c'),
        ('FROM "d b"."T ""x" FOR VERSION AS OF 007', 'FROM "d b"."T ""x@v7" AS "T ""x"'),
        (
            "FROM a FOR VERSION AS OF 1 JOIN a FOR VERSION AS OF 2 AS b ON TRUE",
            'FROM "a@v1" AS "a" JOIN "a@v2" AS b ON TRUE',
        ),
        (
            "EXPLAIN ANALYZE VERBOSE SELECT * FROM a FOR VERSION AS OF 1",
            'EXPLAIN ANALYZE VERBOSE SELECT * FROM "a@v1" AS "a"',
        ),
        (
            "prepare p(int) as SELECT * FROM a FOR VERSION AS OF 1 b",
            'prepare p(int) as SELECT * FROM "a@v1" b',
        ),
        (
            "SELECT 'a FOR VERSION AS OF 1' -- a FOR VERSION AS OF 1\n",
            "SELECT 'a FOR VERSION AS OF 1' -- a FOR VERSION AS OF 1\n",
        ),
    ],
)
def test_clause_becomes_a_name(text: str, expected: str) -> None:
    assert with_named_versions(text) == expected


@pytest.mark.parametrize("text", ["FROM a FOR VERSION AS OF x b", "FROM a FOR VERSION AS OF -1"])
def test_version_is_a_number(text: str) -> None:
    with pytest.raises(InvalidInput, match="give the number of a version"):
        with_named_versions(text)
