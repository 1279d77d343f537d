"""Long and deep text: read where it is flat, refused with a clear error where it is deep."""

from __future__ import annotations

import pytest

from rowsieve.bridges.sql import parse_expression, parse_predicate
from rowsieve.bridges.sql.reading.text_limits import MAX_NESTING, MAX_TEXT
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir

NESTED = {
    "parentheses": lambda n: "(" * n + "a = 1" + ")" * n,
    "not": lambda n: "NOT " * n + "a",
    "signs": lambda n: "- " * n + "a = 1",
    "case": lambda n: "CASE WHEN " * n + "a" + " THEN true END" * n,
    "functions": lambda n: "f(" * n + "a" + ")" * n,
    "casts": lambda n: "CAST(" * n + "a" + " AS int)" * n + " = 1",
    "lists": lambda n: "a IN (" * n + "1" + ")" * n,
}


@pytest.mark.parametrize("form", NESTED)
def test_nesting_is_read_up_to_the_limit_and_refused_past_it(form: str) -> None:
    parse_predicate(NESTED[form](MAX_NESTING))
    with pytest.raises(InvalidPredicate, match=f"deeper than {MAX_NESTING}") as caught:
        parse_predicate(NESTED[form](MAX_NESTING + 2))
    assert caught.value.position is not None


@pytest.mark.parametrize(
    "text",
    [
        "NOT (" * 20 + "a" + ")" * 20,
        "(" * 100_000,
        "[" * 100_000,
        "NOT " * 100_000,
        "a" + "['x']" * 3_000,
        "a" + "::int" * 3_000,
        "a" + " IS NULL" * 3_000,
        "a" + " = 1" * 3_000,
        "a" + " + 1" * 3_000,
        "a" + ".b" * 3_000,
        "a" + " IS DISTINCT FROM a" * 3_000,
        "a" + " AT TIME ZONE 'x'" * 3_000,
        "interval " * 3_000,
        "case " * 3_000,
        "f(" + "x -> " * 3_000 + "x)",
    ],
    ids=lambda text: text[:20],
)
def test_deep_text_is_an_error_and_never_a_crash(text: str) -> None:
    with pytest.raises(InvalidPredicate):
        parse_predicate(text)


@pytest.mark.parametrize(("word", "node"), [("OR", ir.Or), ("AND", ir.And)])
def test_ten_thousand_terms_are_one_node(word: str, node: type[ir.And | ir.Or]) -> None:
    tree = parse_predicate(f" {word} ".join(f"a = {i}" for i in range(10_000)))
    assert isinstance(tree, node)
    assert len(tree.terms) == 10_000


def test_flat_forms_may_be_long() -> None:
    tree = parse_expression(" || ".join(["a"] * 1_000))
    assert isinstance(tree, ir.Call)
    assert len(tree.arguments) == 1_000
    tree = parse_expression("CASE " + "WHEN a = 1 THEN 2 " * 500 + "END")
    assert isinstance(tree, ir.Case)
    assert len(tree.branches) == 500
    flat = parse_predicate(" AND ".join(["NOT a", "-b = -1", "(c)"] * 40))
    assert isinstance(flat, ir.And)
    assert len(flat.terms) == 120


def test_text_past_its_length_is_refused() -> None:
    with pytest.raises(InvalidPredicate, match="at most 2,000,000 are read"):
        parse_predicate("a = '" + "x" * MAX_TEXT + "'")


def test_a_long_list_does_not_count_as_text() -> None:
    tree = parse_predicate("a IN (" + ",".join(map(str, range(400_000))) + ")")
    assert isinstance(tree, ir.InList)
    assert len(tree.values) == 400_000
