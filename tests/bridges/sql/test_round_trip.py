"""What is written reads back as the same tree, in every dialect."""

from __future__ import annotations

import decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_expression, parse_predicate, to_sql
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.predicate import ir
from rowsieve.types.logical import Decimal, Int
from tests.bridges.sql.trees import Trees
from tests.profiles import examples

FREE = {name: dialect for name, dialect in DIALECTS.items() if not dialect.listed_only}
PREDICATES = {name: Trees(dialect).predicates(2) for name, dialect in FREE.items()}
EXPRESSIONS = {name: Trees(dialect).operands(2) for name, dialect in FREE.items()}


@pytest.mark.parametrize("dialect", FREE)
@examples(100)
@given(data=st.data())
def test_a_predicate_reads_back_as_itself(dialect: str, data: st.DataObject) -> None:
    tree = data.draw(PREDICATES[dialect])
    assert parse_predicate(to_sql(tree, dialect), dialect) == tree


@pytest.mark.parametrize("dialect", FREE)
@examples(100)
@given(data=st.data())
def test_an_expression_reads_back_as_itself(dialect: str, data: st.DataObject) -> None:
    tree = data.draw(EXPRESSIONS[dialect])
    assert parse_expression(to_sql(tree, dialect), dialect) == tree


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "datafusion"])
@pytest.mark.parametrize("values", [[0], [0, None, 2**63], [2**64 - 1], list(range(100))])
def test_a_list_of_unsigned_numbers_reads_back_with_its_type(
    dialect: str, values: list[int | None]
) -> None:
    unsigned = Int(64, signed=False)
    tree = ir.InList(ir.Column("x"), ir.ValueSet(pa.array(values, pa.uint64()), unsigned))
    assert parse_predicate(to_sql(tree, dialect), dialect) == tree


@pytest.mark.parametrize("scale", [35, 36, 37, 38])
@pytest.mark.parametrize("text", ["0E-{0}", "1E-{0}", "-0.{1}"])
def test_a_decimal_of_many_digits_reads_back_as_itself(text: str, scale: int) -> None:
    value = decimal.Decimal(text.format(scale, "123456789" * 4 + "15"))
    with decimal.localcontext(prec=60):
        scaled = value.quantize(decimal.Decimal(1).scaleb(-scale), decimal.ROUND_DOWN)
    tree = ir.IsNull(ir.Literal(scaled, Decimal(38, scale)))
    for dialect in FREE:
        assert parse_predicate(to_sql(tree, dialect), dialect) == tree


TEXTS = [
    ("postgres", "ts > now() - INTERVAL '30 days'", None),
    ("postgres", "ts + INTERVAL '1 month 2 days' < ts", None),
    ("postgres", "ts + 3 * INTERVAL '2 hours' > ts", None),
    ("postgres", "INTERVAL '02:30:00.5' + ts > ts", None),
    ("postgres", "-INTERVAL '1' DAY + ts > ts", None),
    ("postgres", "j -> 'a' -> 'b' ->> 0 = '1'", "\"j\" -> 'a' -> 'b' ->> 0 = '1'"),
    ("postgres", "(j ->> 'k')::numeric(10, 2) < 5", None),
    ("postgres", "j #>> '{a,0}' = 'x'", "\"j\" #>> '{a,0}' = 'x'"),
    ("postgres", "j -> -1 IS NULL", None),
    ("postgres", "a[2] = 1", '"a"[2] = 1'),
    ("postgres", "cardinality(a) = 2", 'cardinality("a") = 2'),
    ("postgres", "trim(LEADING 'x' FROM s) = 'a'", "trim(LEADING 'x' FROM \"s\") = 'a'"),
    ("duckdb", "a[2] = 3", '"a"[2] = 3'),
    ("duckdb", "d + INTERVAL '1 hour' > d", None),
    ("datafusion", "d + INTERVAL '1 day' > d", None),
    ("datafusion", "ts + INTERVAL '1 hour' > ts", None),
    ("spark", "get(a, 0) = 1", "get(`a`, 0) = 1"),
    ("spark", "size(a) = 1", "size(`a`) = 1"),
    ("spark", "d + INTERVAL '1 month' - INTERVAL '2 days' > d", None),
    ("spark", "m['k'] = 1", "`m`['k'] = 1"),
]


@pytest.mark.parametrize(("dialect", "text", "written"), TEXTS)
def test_members_and_intervals_read_back_as_themselves(
    dialect: str, text: str, written: str | None
) -> None:
    tree = parse_predicate(text, dialect)
    found = to_sql(tree, dialect)
    assert parse_predicate(found, dialect) == tree
    assert written is None or found == written
