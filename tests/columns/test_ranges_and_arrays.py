"""Ranges and arrays of PostgreSQL: checked values, and conditions that PostgreSQL judges."""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from decimal import Decimal
from typing import Any, Literal

import psycopg
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate, RowsieveError, SchemaMismatch
from tests.bridges.sql.postgres import connection
from tests.profiles import some

PRUNING: tuple[Literal["on", "soft", "off"], ...] = ("on", "soft", "off")
_DIMENSION = pa.struct([("lower", pa.int32()), ("length", pa.int32())])
_ARRAY = pa.struct([("dimensions", pa.list_(_DIMENSION)), ("elements", pa.list_(pa.int64()))])


def of_bounds(type_: pa.DataType) -> pa.DataType:
    flags = [(name, pa.bool_()) for name in ("lower_inclusive", "upper_inclusive", "empty")]
    return pa.struct([("lower", type_), ("upper", type_), *flags])


def named(name: str, type_: pa.DataType, alias: str) -> pa.Field:
    return pa.field(name, type_, metadata={"ARROW:extension:name": f"rowsieve.{alias}"})


def with_columns(fields: list[pa.Field], columns: list[list[Any]]) -> rs.Table:
    schema = pa.schema([pa.field("n", pa.int64()), *fields])
    table = rs.create_table(f"memory:///{uuid.uuid4()}", schema)
    half = len(columns[0]) // 2
    for rows in (range(half), range(half, len(columns[0]))):  # two parts
        values = [pa.array(rows, pa.int64())]
        values += [
            pa.array([column[i] for i in rows], field.type)
            for column, field in zip(columns, fields, strict=True)
        ]
        table.append(pa.Table.from_arrays(values, schema=schema))
    return table


def texts_of(bounds: list[Any]) -> list[str | None]:
    """Ranges between all bounds, in all forms, as PostgreSQL writes them."""
    found: list[str | None] = [None, "empty"]
    for low, high in itertools.product([None, *bounds], repeat=2):
        if low is not None and high is not None and low > high:
            continue
        shown = ["" if each is None else f'"{each}"' for each in (low, high)]
        found += [f"{a}{shown[0]},{shown[1]}{b}" for a in "[(" for b in "])"]
    return found


def as_struct(text: str | None, parse: Any) -> dict[str, Any] | None:
    if text is None:
        return None
    if text == "empty":
        return dict(zip(of_bounds(pa.int8()).names, (None, None, False, False, True), strict=True))
    low, high = (each.strip('"') for each in text[1:-1].split(","))
    return {
        "lower": parse(low) if low else None,
        "upper": parse(high) if high else None,
        "lower_inclusive": text[0] == "[",
        "upper_inclusive": text[-1] == "]",
        "empty": False,
    }


RANGES = [
    pytest.param("int8range", pa.int64(), int, [-1, 3, 4, 5], "4::bigint", "[3,5]", id="int"),
    pytest.param("numrange", pa.decimal128(9, 2), Decimal, ["0.5", "2", "7"], "2.0", "[2,7)",
                 id="decimal"),
    pytest.param("daterange", pa.date32(), dt.date.fromisoformat,
                 ["2026-11-27", "2026-11-28", "2026-12-01"], "DATE '2026-11-28'",
                 "(2026-11-27,2026-12-01)", id="date"),
    pytest.param("tsrange", pa.timestamp("us"), dt.datetime.fromisoformat,
                 ["2026-11-27 00:00:00", "2026-11-28 12:00:00"],
                 "TIMESTAMP '2026-11-28 12:00:00'", '["2026-11-27 00:00:00",)', id="timestamp"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "name", "type_", "parse", "bounds", "value", "constant"),
    [pytest.param(place, *each.values, id=each.id) for place, each in enumerate(RANGES)],
)
def test_conditions_of_ranges_are_those_of_postgresql(
    place: int,
    name: str,
    type_: pa.DataType,
    parse: Any,
    bounds: list[Any],
    value: str,
    constant: str,
) -> None:
    texts = texts_of(bounds)
    pairs = list(itertools.product(texts, texts[:: 5 if len(texts) < 40 else 9]))
    columns = [[as_struct(each, parse) for each in side] for side in zip(*pairs, strict=True)]
    fields = [named(column, of_bounds(type_), "range.1") for column in "rq"]
    table = with_columns(fields, columns)
    judge = connection()
    judge.execute(f"CREATE TEMP TABLE ranges AS SELECT n - 1 AS n, r::{name}, q::{name} "
                  "FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS t(r, q, n)",
                  [list(side) for side in zip(*pairs, strict=True)])  # fmt: skip
    typed = f"'{constant}'::{name}"
    low, high = (
        str(bounds[place]) if name[0] in "in" else f"'{bounds[place]}'" for place in (0, 1)
    )
    made, half = f"{name}({low}, {high}, '(]')", f"{name}(NULL, {high})"
    try:
        conditions = {
            f"lower(r) = {value}": "",
            f"upper(r) > {value}": "",
            "lower(r) IS NULL": "",
            "lower(r) < upper(q)": "",
            "isempty(r)": "",
            "NOT isempty(r)": "",
            "lower_inc(r)": "",
            "NOT upper_inc(r)": "",
            "lower_inf(r) OR NOT upper_inf(r)": "",
            f"r @> {value}": "",
            f"NOT r @> {value}": "",
            f"{value} <@ r": "",
            "r @> lower(q)": "",
            "NOT r @> lower(q)": "",
            "r @> q": "",
            "NOT r @> q": "",
            "r <@ q": "",
            "r && q": "",
            "NOT r && q": "",
            "r = q": "",
            "r <> q": "",
            f"r = '{constant}'": f"r = {typed}",
            f"r @> '{constant}'": f"r @> {typed}",
            f"r && '{constant}'": f"r && {typed}",
            f"'{constant}' @> r": f"{typed} @> r",
            "r = 'empty' OR q <> 'empty'": "",
            f"r IN ('{constant}', 'empty')": "",
            f"r NOT IN ('{constant}', 'Empty')": "",
            f"r IN ('{constant}', NULL)": "",
            "r NOT IN ('empty', NULL)": "",
            f"r IS DISTINCT FROM '{constant}'": "",
            f"r IS NOT DISTINCT FROM '{constant}'": "",
            "r IS DISTINCT FROM q": "",
            "r IS NOT DISTINCT FROM q": "",
            "r IS DISTINCT FROM NULL": "",
            "r = NULL OR r && NULL OR NOT r <@ NULL": "",
            "r < q": "",
            "NOT r < q": "",
            "r <= q": "",
            "r > q OR r >= q": "",
            f"r < '{constant}'": f"r < {typed}",
            f"'{constant}' <= r": f"{typed} <= r",
            f"r BETWEEN 'empty' AND '{constant}'": f"r BETWEEN 'empty' AND {typed}",
            f"r > NULL OR NOT r >= {made}": f"r > NULL::{name} OR NOT r >= {made}",
            f"r = {made}": "",
            f"r @> {made} OR {made} @> q": "",
            f"r && {half} AND NOT r <@ {half}": "",
            f"{half} > r": "",
            f"r IS DISTINCT FROM {made} OR q IS NOT DISTINCT FROM {half}": "",
            f"r IN ({made}, {half})": "",
        }
        for where, theirs in some([*conditions.items()], 4, place):
            query = f"SELECT n FROM ranges WHERE {theirs or where}"
            wanted = sorted(row for (row,) in judge.execute(query).fetchall())
            for pruning in PRUNING:
                found = table.scan(where, pruning=pruning).to_arrow()["n"].to_pylist()
                assert sorted(found) == wanted, (where, pruning)
    finally:
        judge.execute("DROP TABLE ranges")


ARRAYS = [None, "{}", "{1}", "{1,2,3}", "[0:1]={1,2}", "{{1,2},{3,4}}", "[2:2][3:4]={{3,NULL}}",
          "{NULL}", "{3,2,1,1}", "[-2:-1]={1,2}"]  # fmt: skip


def test_conditions_of_arrays_are_those_of_postgresql() -> None:
    judge = connection()
    pairs = list(itertools.product(ARRAYS, ARRAYS))
    query = ("SELECT n, t.a::bigint[], array_dims(t.a::bigint[]) "
             "FROM unnest(%s::text[]) WITH ORDINALITY AS t(a, n)")  # fmt: skip
    stored: dict[str | None, Any] = {}
    for number, values, dimensions in judge.execute(query, [ARRAYS]).fetchall():
        ends = [tuple(map(int, each.split(":"))) for each in (dimensions or "")[1:-1].split("][")
                if each]  # fmt: skip
        flat = values
        for _ in ends[1:]:
            flat = [item for row in flat for item in row]
        stored[ARRAYS[number - 1]] = None if values is None else {
            "dimensions": [{"lower": low, "length": high - low + 1} for low, high in ends],
            "elements": flat,
        }  # fmt: skip
    columns = [[stored[each] for each in side] for side in zip(*pairs, strict=True)]
    table = with_columns([named(column, _ARRAY, "array.1") for column in "ab"], columns)
    judge.execute("CREATE TEMP TABLE arrays AS SELECT n - 1 AS n, a::bigint[], b::bigint[] "
                  "FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS t(a, b, n)",
                  [list(side) for side in zip(*pairs, strict=True)])  # fmt: skip
    try:
        for where in (
            *("array_lower(a, 1) = 0", "array_lower(a, 2) IS NULL", "array_upper(a, 1) = 2"),
            *("array_upper(a, 2) >= 2", "array_ndims(a) = 2", "array_ndims(a) IS NULL"),
            *("cardinality(a) = 2", "cardinality(a) = 0", "array_lower(a, 0) IS NULL"),
            *(
                "a @> ARRAY[1, 2]::bigint[]",
                "NOT a @> ARRAY[1]::bigint[]",
                "a @> b",
                "a <@ b",
                "a && b",
            ),
            *("NOT a && ARRAY[3]::bigint[]", "2 = ANY(a)", "a = b", "a <> b", "a = a"),
            *(f"a = '{each}'" for each in ARRAYS if each is not None),
            *("a <> ' { 1 , 2,\"3\"}'", "a = ARRAY[1,2,3]::bigint[]", "a <> ARRAY[1]::bigint[]"),
            *(
                "a = ARRAY[NULL]::bigint[]",
                "'{}' = a",
                "a = ARRAY[]::bigint[]",
                "a = '[3]={3,2,1}'",
            ),
            *("a @> '{2,1}'", "NOT a @> '{{1,2},{2,1}}'", "a <@ '[5:7]={1,2,3}'", "'{}' @> a"),
            *("a && '{NULL,3}'", "NOT a && '{}'", "a IN ('{1}', '{}')", "a NOT IN ('{1}', '{}')"),
            *("a IN ('{1}', NULL)", "a NOT IN ('{1}', NULL)", "a = NULL OR a <> NULL"),
            *("a IS DISTINCT FROM b", "a IS NOT DISTINCT FROM b", "a IS DISTINCT FROM NULL"),
            *("a IS DISTINCT FROM '{1}'", "a IS NOT DISTINCT FROM ARRAY[1]::bigint[]"),
            "a IS DISTINCT FROM ARRAY[1, 2, 3]::bigint[]",
            *("a[1] = 1", "a[2] IS NULL", "a[3] > a[1]", "NOT a[1] = b[1]", "a[2] IN (2, NULL)"),
            *("array_length(a, 1) = 2", "array_length(a, 2) = 2", "array_length(a, 1) IS NULL"),
            *("array_length(a, 0) IS NULL", "nullif(cardinality(a), 0) = 4"),
        ):
            query = f"SELECT n FROM arrays WHERE {where}"
            wanted = sorted(row for (row,) in judge.execute(query).fetchall())
            for pruning in PRUNING:
                found = table.scan(where, pruning=pruning).to_arrow()["n"].to_pylist()
                assert sorted(found) == wanted, (where, pruning)
    finally:
        judge.execute("DROP TABLE arrays")


_TEXTS = pa.struct([_ARRAY.field("dimensions"), ("elements", pa.list_(pa.string()))])


def test_text_of_arrays_is_read_as_postgresql_reads_it() -> None:
    texts = [
        *('{a,"",null}', '{"NULL",NULL, a b , "a,b" }', "{}", " { } ", r'{"q\"","b\\",\{\}}'),
        *('{" x ",é}', "{{a},{null}}", '[0:0][-1:0]={{"{}",a}}', "[2]={a,b}", "{{{a}}}", "{a\nb}"),
    ]
    stored = []
    query = "SELECT array_dims(a), ARRAY(SELECT unnest(a)) FROM (SELECT %s::text[] AS a) AS t"
    for text in texts:
        shape, elements = connection().execute(query, [text]).fetchone() or (None, None)
        ends = [each.split(":") for each in (shape or "")[1:-1].split("][") if each]
        dimensions = [{"lower": int(a), "length": int(b) - int(a) + 1} for a, b in ends]
        stored.append({"dimensions": dimensions, "elements": elements})
    table = with_columns([named("a", _TEXTS, "array.1")], [stored])
    for text, value in zip(texts, stored, strict=True):
        same = [n for n, other in enumerate(stored) if other == value]
        assert sorted(table.scan(f"a = '{text}'").to_arrow()["n"].to_pylist()) == same, text


def test_text_that_postgresql_does_not_take_for_an_array_is_refused() -> None:
    table = with_columns([named("a", _TEXTS, "array.1")], [[None, None]])
    for text in (
        *("", "{", "a", "{a}}", "{a}{b}", "{a,}", "{,a}", "{{a},b}", "{{a},{b,c}}", '{"a"b}'),
        *("[1:2]={a}", "[1:2]{a,b}", "[2:1]={a}", "[x]={a}", "={a}", "{a} x", "{{a}", '{"a}'),
        *("[2147483647:2147483647]={a}", "[9999999999]={a}", "{{{{{{{a}}}}}}}", '{a"b"}'),
    ):
        with pytest.raises(psycopg.Error):
            connection().execute("SELECT %s::text[]", [text])
        with pytest.raises(InvalidPredicate, match="write its items in braces"):
            table.scan(f"a = '{text}'")


def test_ranges_get_the_form_that_postgresql_gives_them() -> None:
    greatest = 2**31 - 1
    without_values = (f"({greatest},{greatest}]", f"({greatest - 1},{greatest})")
    texts = [*texts_of([-1, 0, 1, 7]), *without_values]
    field = named("r", of_bounds(pa.int32()), "range.1")
    table = with_columns([field], [[as_struct(each, int) for each in texts]])
    query = "SELECT t::int4range::text FROM unnest(%s::text[]) AS t"
    wanted = [as_struct(text, int) for (text,) in connection().execute(query, [texts]).fetchall()]
    assert table.to_arrow()["r"].to_pylist() == wanted


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((5, 1, True, False, False), "lower bound of a range is above"),
        ((1, 5, None, False, False), "NULL in its field lower_inclusive"),
        ((1, 5, True, False, None), "NULL in its field empty"),
        ((1, 2**63 - 1, True, True, False), "overflow"),
    ],
)
def test_ranges_that_postgresql_does_not_have_are_refused(value: Any, message: str) -> None:
    type_ = of_bounds(pa.int64())
    inner = dict(zip(type_.names, value, strict=True))
    with pytest.raises(SchemaMismatch, match=f"'r' is a range.1: .*{message}.*row 1"):
        with_columns([named("r", type_, "range.1")], [[None, None, None, inner]])
    nested = pa.field("s", pa.list_(named("item", type_, "range.1")))
    with pytest.raises(SchemaMismatch, match=message):
        with_columns([nested], [[[inner], None]])


@pytest.mark.parametrize(
    ("dimensions", "elements", "message"),
    [
        ([(1, 3)], [1, 2], "multiply to 3, and it has 2"),
        ([], [1], "multiply to 0, and it has 1"),
        ([(1, 2), (1, 2)], [1, 2, 3], "multiply to 4"),
        ([(1, 0)], [], "no length"),
        ([(2**31 - 1, 2)], [1, 2], "beyond 32 bits"),
        ([(1, 1)] * 7, [1], "more than 6"),
        ([(None, 1)], [1], "NULL"),
        (None, [1], "NULL instead"),
        ([(1, 1)], None, "NULL instead"),
    ],
)
def test_arrays_with_other_dimensions_are_refused(
    dimensions: Any, elements: Any, message: str
) -> None:
    shape = None if dimensions is None else [dict(zip(_DIMENSION.names, each, strict=True))
                                             for each in dimensions]  # fmt: skip
    value = {"dimensions": shape, "elements": elements}
    with pytest.raises(SchemaMismatch, match=message):
        with_columns([named("a", _ARRAY, "array.1")], [[None, value]])


def test_conditions_of_ranges_skip_parts() -> None:
    field = named("r", of_bounds(pa.int64()), "range.1")
    ranges = [as_struct(f"[{i},{i + 10})", int) for i in range(0, 100, 5)]
    table = with_columns([field], [ranges])
    for where in ("r @> 5", "r @> '[90,92)'", "r = '[0,10)'", "r && '[0,3)'",
                  "r IN ('[0,10)', '[5,15)')", "r IS NOT DISTINCT FROM '[0,10)'",
                  "r < '[5,6)'", "r > int8range(90, 100)",
                  "r = int8range(0, 9, '[]')"):  # fmt: skip
        scan = table.scan(where)
        assert 0 < scan.to_arrow().num_rows <= 2
        assert scan.metrics.parts_read == 1, where


def test_what_postgresql_refuses_and_other_dialects_are_refused() -> None:
    table = with_columns(
        [named("r", of_bounds(pa.int64()), "range.1"), named("a", _ARRAY, "array.1"),
         named("acl", pa.binary(), "acl_item.1"), named("v", pa.list_(pa.int16()), "int2vector.1")],
        [[None, None], [None, None], [b"\x01", b"\x02"], [[1], [2]]],
    )  # fmt: skip
    for where in ("a < a", "acl < acl", "a < ARRAY[2]", "r = int8range(n, 5)", "r = int8range(1)",
                  "r < int8range(5, 1)", "r = numrange(1, 5)", "r = int8range(1, 5, '[[')",
                  "r = int8range('', 5)", "r = int8range(1.5, 5)", "int8range(1, 5) = '[1,5)'",
                  "n = int8range(1, 5)", "r = int8multirange(1, 5)", "a[1][1] = 1",
                  "int4range(1, n) @> 3", "isempty(tstzrange(n, n))", "array_length(v, 2) = 1",
                  "r = '5'", "r = '[5,1)'", "r @> '[x,1)'",
                  "array_lower(a, n) = 1", "array_length(a, n) = 1", "a = '{x}'",
                  "a = ARRAY[ARRAY[1]]", "r IN ('5')", "r IN (5)"):  # fmt: skip
        with pytest.raises(InvalidPredicate):
            table.scan(where).to_arrow()
    for where in ("r @> 5", "isempty(r)", "r = r", "acl = acl"):
        for dialect in ("duckdb", "trino"):
            with pytest.raises(RowsieveError):
                table.scan(where, dialect=dialect).to_arrow()
    assert table.scan("acl = '\\x01'::bytea").count() == 1
    assert table.scan("acl <> acl").count() == 0
    assert table.scan("v = ARRAY[2]").count() == 1
