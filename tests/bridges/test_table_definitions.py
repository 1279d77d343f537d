"""The text in the brackets of a CREATE TABLE: columns, key, defaults and constraints."""

from __future__ import annotations

import pytest

from rowsieve.bridges.sql.alterations import TableChange
from rowsieve.bridges.sql.constraint_actions import AddConstraint
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.bridges.sql.table_definitions import TableDefinition, table_definition_of
from rowsieve.errors import InvalidInput, RowsieveError, UnsupportedOperation
from rowsieve.types.evolution import SetComment, SetDefault


def columns(defined: TableDefinition) -> list[tuple[str, str, bool]]:
    return [(each.name, str(each.type), each.nullable) for each in defined.schema]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_columns_keys_defaults_and_constraints_are_read(dialect: str) -> None:
    text = """
        Id bigint, n int NOT NULL DEFAULT 5 CHECK (n > 0) CHECK (n <> 7), -- ',' in a comment
        s varchar COMMENT 'a, b' CONSTRAINT no_bracket CHECK (s <> ')'),
        CONSTRAINT small CHECK (n < 100), CHECK (n IN (1, 5)), CHECK (Id > n), PRIMARY KEY (Id)
    """
    defined = table_definition_of(text, dialect)
    assert columns(defined) == [
        ("Id", "int64", False),
        ("n", "int32", False),
        ("s", "string", True),
    ]
    assert defined.key == ("Id",)
    checks: list[TableChange] = [
        AddConstraint("n_check", "n > 0", dialect, is_named=False),
        AddConstraint("n_check_2", "n <> 7", dialect, is_named=False),
        AddConstraint("no_bracket", "s <> ')'", dialect),
        AddConstraint("small", "n < 100", dialect),
        AddConstraint("check", "n IN (1, 5)", dialect, is_named=False),
        AddConstraint("check_2", "Id > n", dialect, is_named=False),
    ]
    assert list(defined.changes) == [SetDefault(("n",), 5), SetComment(("s",), "a, b"), *checks]


def test_names_are_folded_where_the_engine_folds_them() -> None:
    text = 'Id bigint, "Na" int, PRIMARY KEY (ID, "Na"), CONSTRAINT Big CHECK (Id > 0)'
    defined = table_definition_of(text, "datafusion", folds=True)
    assert (defined.schema.names, defined.key) == (["id", "Na"], ("id", "Na"))
    assert defined.changes == (AddConstraint("big", "Id > 0", "datafusion"),)


@pytest.mark.parametrize(
    "text", ["id bigint PRIMARY KEY", "id bigint, CONSTRAINT k PRIMARY KEY (id)"]
)
def test_a_key_is_not_null(text: str) -> None:
    defined = table_definition_of(text, "postgres")
    assert (columns(defined), defined.key) == ([("id", "int64", False)], ("id",))


def test_a_key_may_be_given_without_columns() -> None:
    defined = table_definition_of("PRIMARY KEY (a, b), CHECK (a > b)", "datafusion")
    assert (len(defined.schema), defined.key, len(defined.changes)) == (0, ("a", "b"), 1)
    assert table_definition_of("", "datafusion").changes == ()


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("a int UNIQUE", UnsupportedOperation, "no other unique columns.*nothing was created"),
        ("a int, UNIQUE (a)", UnsupportedOperation, "no other unique columns"),
        ("a int REFERENCES z (q)", UnsupportedOperation, "one row"),
        ("a int, FOREIGN KEY (a) REFERENCES z (b)", UnsupportedOperation, "one row"),
        ("a int CHECK (a > 0) NOT VALID", UnsupportedOperation, "correct the rows"),
        ("a int, CHECK (a > 0) NOT ENFORCED", UnsupportedOperation, "correct the rows"),
        ("a int, PRIMARY KEY (b)", InvalidInput, "no column 'b' in .a."),
        ("a int PRIMARY KEY, b int PRIMARY KEY", InvalidInput, "write PRIMARY KEY once"),
        ("a int, a text", InvalidInput, "defined twice"),
        ("a", InvalidInput, "no type|cannot read"),
        ("a int DEFAULT b", InvalidInput, "not a constant"),
        ("a int, LIKE z", InvalidInput, "cannot read"),
        ("a int) AS (SELECT 1", InvalidInput, "cannot read"),
        ("a int); DROP TABLE z; CREATE TABLE y (b int", InvalidInput, "cannot read"),
        ("a int CHECK (a > 0", InvalidInput, "cannot read"),
        ("a int GENERATED ALWAYS AS (1)", InvalidInput, "cannot read"),
        ("a nothing", InvalidInput, "'a'"),
        ("a int CHECK " + "(" * 300 + "a > 0" + ")" * 300, InvalidInput, "nested|cannot read"),
    ],
)
def test_other_definitions_are_refused(text: str, kind: type[RowsieveError], words: str) -> None:
    with pytest.raises(kind, match=words):
        table_definition_of(text, "postgres")
