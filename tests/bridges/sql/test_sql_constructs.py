"""The table of constructs says what is written, dialect by dialect."""

from __future__ import annotations

import pytest

from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.bridges.sql.language import to_text
from rowsieve.bridges.translation import Exactness
from rowsieve.predicate.semantics import Semantics
from tests.strategies import SCHEMA
from tools.matrices.sql_constructs import CONDITIONS, Construct


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("construct", CONDITIONS, ids=lambda each: each.name)
def test_a_construct_is_written_or_refused_as_listed(construct: Construct, dialect: str) -> None:
    predicate = parse_predicate(construct.example)
    made = to_text(predicate, SCHEMA, Semantics.SQL, dialect=dialect)
    assert (made.exactness is Exactness.EXACT) == (dialect not in construct.refused), made.notes
