"""Text that is refused: what the message says and where it points."""

from __future__ import annotations

import pytest

from rowsieve.bridges.sql import parse_expression, parse_predicate
from rowsieve.errors import InvalidPredicate

REFUSED: list[tuple[str, str, int | None]] = [
    ("", "the filter is empty", None),
    ("  -- nothing", "the filter is empty", None),
    ("SELECT 1", "this is a statement", 0),
    ("a = int '7'::float8 / 2", "put the constant in parentheses", 11),
    ("a = numeric(4, 1) '1.5'::int", "put the constant in parentheses", 23),
    ("a = double precision '1.5'::int", "put the constant in parentheses", 26),
    ("TIMESTAMP WITH TIME ZONE '2020-01-01'::date = a", "put the constant in parentheses", 37),
    ("a::oid = 1", "the type OID has no counterpart", None),
    ("DELETE FROM t", "this is a statement", 0),
    ("WHERE a = 1", "leave out WHERE", 0),
    ("a = 1;", "without ';'", 5),
    ("a = 1; DROP TABLE t", "without ';'", 5),
    ("delay + 5", "a value and not a condition", 0),
    ("'x'", "a value and not a condition", 0),
    ("lower(a)", "a value and not a condition", 0),
    ("a AND b + 1", "a value and not a condition", 6),
    ("a = ", "cannot read the filter", None),
    ("a = 1 b", "this is not expected here", 6),
    ("a AS b", "this is not expected here", 2),
    ("a = 'x", "not closed", None),
    ("(a = 1", "cannot read the filter", None),
    ("a = (SELECT max(b) FROM t)", "cannot hold a query", 5),
    ("a IN (SELECT b FROM t)", "not a query", 6),
    ("EXISTS (SELECT 1)", "cannot hold a query", 8),
    ("exists(a, x -> x > 1)", "function EXISTS is not supported", 0),
    ("a > ANY (b)", "only = ANY and <> ALL", 0),
    ("a = ALL (b)", "of items, write ARRAY", 0),
    ("age(a) > INTERVAL '1 year'", r"write age\(later, earlier\) of two timestamps", 0),
    ("to_jsonb(a) = '1'", "builds no JSON", 0),
    ("jsonb_build_object('a', a) IS NULL", "builds no JSON", 0),
    ("a::jsonb -> 0 IS NULL", "remove ::jsonb", 0),
    ("(CAST(a AS jsonb) -> 'b') ->> -1 = 'x'", "remove ::jsonb", 6),
    ("sum(a) > 1", "aggregate SUM", 0),
    ("count(*) > 1", "aggregate COUNT", 0),
    ("row_number() OVER () = 1", "window function", 0),
    ("a = $1", "parameter has no value", 5),
    ("a = ?", "parameter has no value", 4),
    ("a = :x", "parameter has no value", 4),
    ("f(a, x -> x + 1)", "a key of JSON", 5),
    ("f(a, b => 1)", "named arguments", 10),
    ("read_csv('x') = 1", "cannot read files", 0),
    ("pg_read_file('x') = 'y'", "cannot read files", 0),
    ("a SIMILAR TO '[x]'", "sets in brackets", 0),
    ("a ~ 'x**'", "a quantifier after", 0),
    ("initcap(a) = 'x'", "INITCAP is not supported", 8),
    ("INTERVAL '1 day' - a > b", "is added to a date", None),
    ("a + INTERVAL '1 day 02:00' > b", "each part of an interval", None),
    ("a + INTERVAL '3 days ago' > b", "each part of an interval", None),
    ("a + INTERVAL 'P1D' > b", "each part of an interval", None),
    ("a + INTERVAL '1 fortnight' > b", "not a unit of an interval", None),
    ("a + INTERVAL '1.5 months' > b", "not a whole number", None),
    ("a + INTERVAL '1-2' YEAR TO MONTH > b", "write an interval as in", None),
    ("a + b * INTERVAL '1 day' > b", "by a whole number", None),
    ("a -> b IS NULL", "quoted constant", None),
    ("(a #> '{x,\"y\"}') IS NULL", "without quotes", None),
    ("a COLLATE \"de\" = 'x'", 'the only collation is "C"', 0),
    ("a COLLATE pg_catalog.\"C\" = 'x'", 'the only collation is "C"', 0),
    ("|/ a + 1 = 2", r"write sqrt", 0),
    ("! a", "write NOT", 0),
    ("a ^@ 'x' || 'y'", "write starts_with", 2),
    ("array_append(a, 1) = b", "ARRAY APPEND is not supported", 0),
    ("a[0] = 2", "a place in a list from 1", 0),
    ("a[-1] = 2", "a place in a list from 1", 0),
    ("a[b + 1] = 2", "a place in a list from 1", 0),
    ("a[0:2] = 2", "a slice has constant places", 0),
    ("a.* = 1", "name one column", 0),
    ("a = 0x1F", "decimal digits", 4),
    ("a = b'101'", "BIT STRING is not supported", 4),
    (r"a = E'\q'", "codes of ASCII", 4),
    ("a LIKE b", "quoted constant", 7),
    ("a LIKE 'x' ESCAPE 'yz'", "one character", 18),
    ("a LIKE 'x!' ESCAPE '!'", "ends with its escape", 7),
    (r"a LIKE 'x\'", "ends with its escape", 7),
    ("a = DATE '2013-1-1'", "not a valid date", 9),
    ("a = DATE '2013-02-30'", "not a valid date", 9),
    ("a = DATE 'today'", "not a valid date", 9),
    ("a = TIMESTAMP '2013-01-01 00:00:00+01'", "offset", 14),
    ("a = CAST('300' AS UTINYINT)", "outside 0 to 255", 9),
    ("a = CAST('x' AS int)", "not a valid int32", 9),
    ("a = CAST(b AS varchar(3))", "length or precision", 9),
    ("a = CAST(b AS int[])", "no counterpart", 9),
    ("a = CAST(b AS xml)", "no counterpart", 9),
    ("a = CAST(b AS decimal(39, 0))", "1 to 38 digits", 9),
    ("a = 1e999999", "needs more than 38 digits", 4),
    ("a = " + "1" * 140_000, "more than 38 digits", 4),
    ("date_trunc('fortnight', a) = b", "date_trunc takes one of", 0),
    ("date_trunc(day, a) = b", "date_trunc takes one of", 0),
    ("extract(moon FROM a) = 1", "extract takes one of", 0),
    ("round(a, 2, 3) = 1", "cannot read|not supported", None),
    ("coalesce(DISTINCT a) = 1", "not supported", None),
]

UNCLEAR = [
    "a = b = c",
    "a < b < c",
    "a = b < c",
    "a = b IN (1, 2)",
    "a LIKE 'x' = b",
    "a BETWEEN b AND c = d",
    "a IS NULL IS NULL",
    "a = NOT b",
    "a + NOT b",
]


@pytest.mark.parametrize(("text", "message", "position"), REFUSED, ids=[row[0] for row in REFUSED])
def test_text_is_refused(text: str, message: str, position: int | None) -> None:
    with pytest.raises(InvalidPredicate, match=message) as caught:
        parse_predicate(text)
    if position is not None:
        assert caught.value.position == position
        assert f"offset {position}" in str(caught.value)


@pytest.mark.parametrize("text", UNCLEAR)
def test_a_condition_among_operators_needs_parentheses(text: str) -> None:
    with pytest.raises(InvalidPredicate, match="in parentheses"):
        parse_predicate(text)


def test_plus_next_to_pipes_needs_parentheses() -> None:
    with pytest.raises(InvalidPredicate, match="in parentheses"):
        parse_expression("a || b + c")
    parse_expression("a || (b + c)")
