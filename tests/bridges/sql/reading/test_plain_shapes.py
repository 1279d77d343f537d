"""Plain conditions mean what the grammar reads in them, in every dialect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate, plain_shapes
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.bridges.sql.reading import parse
from rowsieve.errors import RowsieveError
from rowsieve.predicate.ir import InList, Predicate
from tests.profiles import examples

NAMES = ("id", "Id", "_x", "order", "true", "null", "current_date", "not", "date", "user", "x1")
NUMBERS = st.one_of(
    st.integers(0, 999_999_999).map(str),
    st.sampled_from(
        ["0", "00", "007", "-1", "999999999", "1000000000", "9999999999", "1.5", "1e3"]
    ),
)
TEXTS = st.one_of(
    st.builds(
        "{} {} {}".format, st.sampled_from(NAMES), st.sampled_from(["=", "<>", "<", ">="]), NUMBERS
    ),
    st.builds("{} BETWEEN {} AND {}".format, st.sampled_from(NAMES), NUMBERS, NUMBERS),
    st.builds(
        "{} IN ({})".format, st.sampled_from(NAMES), st.lists(NUMBERS, max_size=4).map(", ".join)
    ),
)


def outcome(read: object, text: str, dialect: str) -> tuple[object, ...]:
    try:
        found: Predicate = read(text, dialect)  # type: ignore[operator] # a function
    except RowsieveError as error:
        return type(error), str(error)
    types = (found.values.type, found.values.array) if isinstance(found, InList) else ()
    return repr(found), found, *types


@examples(300)
@given(TEXTS, TEXTS, st.sampled_from(sorted(DIALECTS)))
def test_a_text_is_read_as_by_the_grammar_whatever_was_read_before(
    before: str, text: str, dialect: str
) -> None:
    for each in (before, text, text):
        assert outcome(parse_predicate, each, dialect) == outcome(parse.predicate, each, dialect)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("id = 5", "id = 70"),
        ("id BETWEEN 1 AND 2", "id BETWEEN 30 AND 40"),
        ("id IN (1, 2)", "id IN (3,4)"),
    ],
)
def test_the_grammar_reads_a_plain_shape_once(
    first: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_shapes, "_plain", {})
    asked: list[str] = []

    def read(text: str, dialect: str) -> Predicate:
        asked.append(text)
        return parse.predicate(text, dialect)

    for text in (first, then, first):
        found = plain_shapes.read_plain(text, "postgres", read)
        assert outcome(lambda *_, found=found: found, text, "") == outcome(
            parse.predicate, text, "postgres"
        )
    assert asked == [first]


@pytest.mark.parametrize("text", ["true = 5", "current_date = 5", "null = 1", "user = 1"])
def test_keywords_are_read_by_the_parser(text: str) -> None:
    other = text.replace("5", "6").replace("1", "2")
    for each in (text, other):
        assert outcome(parse_predicate, each, "postgres") == outcome(
            parse.predicate, each, "postgres"
        )
