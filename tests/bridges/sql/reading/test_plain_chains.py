"""Long chains of plain comparisons: read by shape to the tree that the grammar gives."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.sql.reading import parse, plain_chains
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.ir import Or, Predicate
from tests.profiles import examples

DIALECTS = ("postgres", "duckdb", "spark", "datafusion")
_NUMBERS = st.sampled_from(
    ["0", "7", "-7", "- 7", "1.5", "-1.50", "1e3", "-0e0", "9223372036854775808", "00", "5."]
)
_NAMES = st.sampled_from(["a", "B", '"c d"', '"or"', "date", "connect_by_root", "user", "x1"])
_OPS = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">=", "=="])
_BETWEENS = st.sampled_from(["BETWEEN", "between", "NOT BETWEEN", "BETWEEN SYMMETRIC"])
_PLAIN = st.one_of(
    st.tuples(_NAMES, _OPS, _NUMBERS).map(" ".join),
    st.tuples(_NUMBERS, _OPS, _NAMES).map("".join),
    st.tuples(_NAMES, _OPS, _NAMES).map(" ".join),
    st.builds("{} {} {} AND {}".format, _NAMES, _BETWEENS, _NUMBERS, _NUMBERS | _NAMES),
)


@st.composite
def _terms(draw: st.DrawFn) -> str:
    plain = draw(st.lists(_PLAIN, min_size=1, max_size=3))
    joined = draw(st.sampled_from([" AND ", " and ", " OR "])).join(plain)
    return draw(st.sampled_from(["{}", "({})", "(({}))", "({}) AND (a = 1)"])).format(joined)


@pytest.fixture(autouse=True)
def _short_chains() -> Iterator[None]:
    with mock.patch.object(plain_chains, "MIN_TERMS", 2):
        yield


def _outcome(text: str, dialect: str) -> Predicate | str:
    try:
        return parse.predicate(text, dialect)
    except InvalidPredicate as error:
        return str(error)


@examples(300)
@given(
    st.lists(_terms(), min_size=2, max_size=5),
    st.sampled_from([" OR ", " AND ", "\nor -- why\n"]),
    st.sampled_from(DIALECTS),
)
def test_a_chain_is_the_tree_of_the_grammar(terms: list[str], by: str, dialect: str) -> None:
    text = by.join(terms)
    found = _outcome(text, dialect)
    with mock.patch.object(parse, "plain_chain", return_value=None):
        assert found == _outcome(text, dialect)


def test_the_grammar_reads_one_term_of_each_shape() -> None:
    terms = [f"(a = {i} AND b < {i % 7})" for i in range(50)] + [f"a = {i}" for i in range(50)]
    with mock.patch.object(parse, "_node", wraps=parse._node) as grammar:
        found = parse.predicate(" OR ".join(terms), "postgres")
    assert isinstance(found, Or)
    assert len(found.terms) == 100
    assert grammar.call_count == 2


def test_chains_that_the_parser_reads_differently_are_read_by_it() -> None:
    source = parse._source("a = 1 OR a = 2 OR b = 3", dialect_named("postgres"))
    odd = parse.predicate("a = 5", "postgres")
    assert plain_chains.plain_chain(source, lambda _: odd) is None


def test_a_number_that_is_too_long_is_named_with_its_place() -> None:
    text = f"a = 1 OR a = 2 OR a = {'1' * 90}"
    with pytest.raises(InvalidPredicate, match="at offset 22"):
        parse.predicate(text, "duckdb")
