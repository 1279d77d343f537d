"""What is written reads back as the same tree, in every dialect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_expression, parse_predicate, to_sql
from rowsieve.bridges.sql.dialects import DIALECTS
from tests.bridges.sql.trees import Trees
from tests.profiles import examples

PREDICATES = {name: Trees(dialect).predicates(2) for name, dialect in DIALECTS.items()}
EXPRESSIONS = {name: Trees(dialect).operands(2) for name, dialect in DIALECTS.items()}


@pytest.mark.parametrize("dialect", DIALECTS)
@examples(100)
@given(data=st.data())
def test_a_predicate_reads_back_as_itself(dialect: str, data: st.DataObject) -> None:
    tree = data.draw(PREDICATES[dialect])
    assert parse_predicate(to_sql(tree, dialect), dialect) == tree


@pytest.mark.parametrize("dialect", DIALECTS)
@examples(100)
@given(data=st.data())
def test_an_expression_reads_back_as_itself(dialect: str, data: st.DataObject) -> None:
    tree = data.draw(EXPRESSIONS[dialect])
    assert parse_expression(to_sql(tree, dialect), dialect) == tree
