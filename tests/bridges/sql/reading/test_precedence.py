"""Text without parentheses groups as the engine groups it.

Random text is read and written again with every group in parentheses; the engine must give the same
for both, whenever it accepts the original.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate, to_sql
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from tests.bridges.sql.engines import datafusion_values, duckdb_values
from tests.profiles import examples

ROWS = pa.table(
    {
        "a": pa.array([None, 0, 1, 2, -3], pa.int64()),
        "b": pa.array([1, None, 2, 0, -1], pa.int64()),
        "c": pa.array([True, False, None, True, False]),
        "t": pa.array(["1", "a", None, "1a", ""]),
    }
)
NUMBERS = ["a", "b", "1", "- a", "- 1", "a::int", "- b::bigint", "(a + b)"]
TEXTS = ["t", "'1'", "a::text", "t::text"]
TESTS = [
    "IS NULL",
    "IS NOT NULL",
    "BETWEEN 0 AND 1",
    "NOT BETWEEN a AND b",
    "IN (0, 1)",
    "NOT IN (2)",
]
TRUTHS = ["", "", "IS TRUE", "IS NOT TRUE", "IS NULL", "= c", "<> TRUE", "IS DISTINCT FROM c"]
COMPARED = ["=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


def _chain(draw: st.DrawFn, operands: list[str], operators: list[str]) -> str:
    words = [draw(st.sampled_from(operands))]
    for _ in range(draw(st.integers(0, 2))):
        words += [draw(st.sampled_from(operators)), draw(st.sampled_from(operands))]
    return " ".join(words)


def _condition(draw: st.DrawFn) -> str:
    negation = draw(st.sampled_from(["", "", "NOT ", "NOT NOT "]))
    number = _chain(draw, NUMBERS, ["+", "-", "*"])
    text = _chain(draw, TEXTS, ["||"])
    test = draw(st.sampled_from(TESTS))
    compared = f"{draw(st.sampled_from(COMPARED))} {_chain(draw, NUMBERS, ['+', '*'])}"
    body = draw(
        st.sampled_from(
            ["c", f"{number} {test}", f"{number} {compared}", f"{text} LIKE '1%'", f"{text} = t"]
        )
    )
    return f"{negation}{body} {draw(st.sampled_from(TRUTHS))}"


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Conditions with hardly a parenthesis; some have no clear grouping."""
    words = [_condition(draw)]
    for _ in range(draw(st.integers(0, 2))):
        words += [draw(st.sampled_from(["AND", "OR"])), _condition(draw)]
    return " ".join(words)


ENGINES = {"duckdb": lambda: duckdb_values(ROWS), "datafusion": lambda: datafusion_values(ROWS)}


@pytest.mark.parametrize("engine", ENGINES)
def test_text_groups_as_the_engine_groups_it(engine: str) -> None:
    ask = ENGINES[engine]()
    agreed = 0

    @examples(960)
    @given(texts())
    def check(text: str) -> None:
        nonlocal agreed
        try:
            grouped = to_sql(parse_predicate(text, engine), engine)
            expected = ask(text)
        except (InvalidPredicate, UnsupportedOperation):
            return
        except Exception:  # the engine refuses ill-typed text in many ways
            return
        assert ask(grouped) == expected
        agreed += 1

    check()
    assert agreed >= 20


@pytest.mark.parametrize("text", ["a ^ 2 + 3 = 4", "1 + a ^ 3 = 0", "a * 3 ^ 1 = 7"])
def test_datafusions_xor_binds_loosest_and_wants_parentheses(text: str) -> None:
    with pytest.raises(InvalidPredicate, match="put \\^ and its sides in parentheses"):
        parse_predicate(text, "datafusion")
