"""sqlglot has a compiled build, `sqlglot[c]`, whose classes cannot be subclassed in Python."""

import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import rowsieve.bridges.sql
import rowsieve.procedures
from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.sql.alterations import alterations_of
from rowsieve.bridges.sql.column_list import columns_of
from rowsieve.bridges.sql.syntax import in_syntax
from rowsieve.errors import InvalidPredicate, RowsieveError
from rowsieve.statements.parse_statement import parse
from rowsieve.types.schema import Schema

DIALECTS = ("spark", "datafusion", "duckdb", "postgres", "trino")


def subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for each in type.__subclasses__(kind):
        yield each
        yield from subclasses(each)


def package_of(kind: type[Any]) -> str:
    return str(kind.__module__).partition(".")[0]


def test_no_class_inherits_from_a_class_of_sqlglot() -> None:
    """Classes made while a text is read count too; the compiled build rejects their instances."""
    for package in (rowsieve.bridges.sql, rowsieve.procedures):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    for dialect in DIALECTS:
        parse_predicate("a = b AND CAST(c AS INT) + 1 > 2", dialect)
    parse("CALL f(o => map('a', 'x'))")
    ours = {kind for kind in subclasses(object) if package_of(kind) == "rowsieve"}
    assert ours
    assert not [
        kind for kind in ours if any(package_of(base) == "sqlglot" for base in kind.__mro__)
    ]


@pytest.mark.parametrize("dialect", ["spark", "datafusion"])
def test_comments_do_not_change_a_safe_equality(dialect: str) -> None:
    text = "a /* sqlglot.meta start=x */ <=> /* 2 */ b AND c = /* 2 */ d -- 2"
    plain = "a <=> b AND c = d"
    assert parse_predicate(text, dialect) == parse_predicate(plain, dialect)
    nested = "(a <=> (b <=> c)) <=> coalesce(d <=> e, f = g)"
    same = nested.replace("<=>", "IS NOT DISTINCT FROM")
    assert parse_predicate(nested, dialect) == parse_predicate(same, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("op", ["<=>", "="])
def test_a_comparison_in_a_struct_is_not_the_name_of_a_field(dialect: str, op: str) -> None:
    """The grammar reads `struct(a = b)` like `struct(b AS a)`; in Spark it is one boolean field."""
    with pytest.raises(InvalidPredicate, match="put it in parentheses"):
        parse_predicate(f"struct(a {op} b) IS NULL", dialect)
    with pytest.raises(InvalidPredicate, match="put it in parentheses"):
        parse_predicate(f"c = d OR struct(1, a {op} b) IS NULL", dialect)


@pytest.mark.parametrize("damaged", ["MAP {: 1}", "{: 1}", "-> x", "x ->", "id ?", "map(k)"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_text_without_an_operand_is_refused(dialect: str, damaged: str) -> None:
    """The grammar goes on with None there, and its functions raise errors of their own."""
    for read in (
        lambda: parse_predicate(f"{damaged} = m", dialect),
        lambda: columns_of(f"a int DEFAULT {damaged}", dialect),
        lambda: alterations_of(f"ADD COLUMN a int DEFAULT {damaged}", Schema(0, ()), dialect),
        lambda: parse(f"CALL f(o => {damaged})"),
        lambda: in_syntax(damaged, "mysql", "duckdb"),
    ):
        with suppress(RowsieveError):
            read()


@pytest.mark.parametrize("text", ["position(NULL IN s #> ) IS NULL", "MAP {: 1} = m"])
def test_a_missing_operand_has_a_place(text: str) -> None:
    with pytest.raises(InvalidPredicate, match="not expected here") as caught:
        parse_predicate(text, "trino" if "{" in text else "postgres")
    assert caught.value.position is not None


def test_quotes_that_are_not_closed_are_refused_in_every_dialect() -> None:
    with pytest.raises(InvalidPredicate, match="as mysql SQL"):
        in_syntax("x = 'a", "mysql", "duckdb")
