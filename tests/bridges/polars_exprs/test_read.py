"""What is read keeps, under our evaluator, the rows that polars keeps."""

from __future__ import annotations

import datetime
import decimal
import functools
import math
import operator
import random
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.bridges.polars_exprs import from_polars, is_polars_expression, to_polars
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import UnknownColumn, UnsupportedOperation
from rowsieve.predicate.ir import And, InList, Or
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.conformance import ours
from tests.bridges.polars_exprs.engine import theirs
from tests.profiles import examples

D = decimal.Decimal
UTC = datetime.UTC
c = pl.col
NAN = pl.lit(math.nan)
MOMENT = datetime.datetime(2024, 3, 31, 2, 30, 15, 250)
CELLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "b": (pa.bool_(), [True, False]),
    "b2": (pa.bool_(), [True, False]),
    "i8": (pa.int8(), [0, 1, -1, 127, -128, 7]),
    "i32": (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31), 7, -7]),
    "k": (pa.int64(), [0, 1, 2**53 + 1, -(2**63), 2**63 - 1, 7, -7]),
    "u": (pa.uint64(), [0, 1, 2**63, 2**64 - 1, 7]),
    "f": (pa.float64(), [0.0, -0.0, 0.1, 1.5, -2.5, math.nan, -math.nan, math.inf, -math.inf]),
    "g": (pa.float32(), [0.0, -0.0, 0.1, 1.5, 16777216.0, math.nan, math.inf]),
    "d": (pa.decimal128(8, 2), [D("0.00"), D("1.50"), D("-999999.99")]),
    "w": (pa.decimal128(38, 10), [D("1.5"), D("9" * 28), D("-1e-10")]),
    "s": (
        pa.string(),
        ["", "a", "ab", "ba", "é", "a%", "A", "\U0010ffff", "\ue000", "  a", "ab\n"],
    ),
    "y": (pa.binary(), [b"", b"a", b"\xff"]),
    "day": (pa.date32(), [datetime.date(1970, 1, 1), datetime.date(1, 1, 1), MOMENT.date()]),
    "ts": (pa.timestamp("us"), [MOMENT, datetime.datetime(1969, 12, 31, 23, 59, 59, 1)]),
    "tz": (pa.timestamp("us", "UTC"), [MOMENT.replace(tzinfo=UTC)]),
    "time": (pa.time64("us"), [datetime.time(0), datetime.time(1, 2, 3, 4)]),
    "l": (pa.list_(pa.int64()), [[], [1, None], [2]]),
    "p": (pa.struct([("x", pa.int32()), ("y", pa.string())]), [{"x": 1, "y": "a"}, {"x": None}]),
}
SCHEMA = schema_of(pa.schema([(name, type_) for name, (type_, _) in CELLS.items()]))[0]
EXPRESSIONS: list[pl.Expr] = [
    c("b"),
    ~c("b"),
    c("b") & c("b2"),
    c("b") | ~c("b2"),
    c("b") ^ c("b2"),
    c("b") & pl.lit(None, dtype=pl.Boolean),
    c("b") == c("b2"),
    c("b") == True,  # noqa: E712 - a comparison in polars
    pl.lit(value=True) & c("b"),
    pl.any_horizontal(c("b"), c("i32") > 0, c("f").is_nan()),
    pl.all_horizontal(c("b"), c("i32") > 0),
    c("i32").eq_missing(None),
    c("i32").ne_missing(7),
    c("f").eq_missing(math.nan),
    c("f").ne_missing(c("f")),
    c("i32") == pl.lit(None),
    *(c(name) == c(name) for name in CELLS if name not in ("l", "p")),
    c("i32") < c("k"),
    c("u") > c("k"),
    c("u") > -1,
    c("u") == 2**64 - 1,
    c("i8") < 200,
    c("k") == 2**70,
    c("k") < 2**70,
    c("k") > 9007199254740992.0,
    c("i8") < 1.00000001,
    c("i32") == 7.0,
    c("k") != 1.5,
    c("f") == NAN,
    c("f") < NAN,
    c("f") >= math.inf,
    c("f") == 0,
    c("f") == -0.0,
    c("f") > c("g"),
    c("g") == 0.1,
    c("g") == pl.lit(0.1, dtype=pl.Float64),
    c("g") > 1,
    c("g") <= NAN,
    *(getattr(c("f"), name)() for name in ("is_nan", "is_not_nan", "is_finite", "is_infinite")),
    c("d") == c("w"),
    c("d") == D("1.5"),
    c("d") > D("-1e-3"),
    c("w") < D("9" * 28),
    c("s") < "\U0010ffff",
    c("y") >= b"a",
    c("day") > datetime.date(1970, 1, 1),
    c("ts") >= MOMENT,
    c("tz") == MOMENT.replace(tzinfo=UTC),
    c("ts") < pl.lit(MOMENT, dtype=pl.Datetime("us")),
    c("time") < datetime.time(1, 2, 3, 4),
    c("i32").is_between(-1, 7),
    c("f").is_between(0.0, math.nan, closed="right"),
    c("s").is_between(pl.lit("a"), pl.lit("b"), closed="left"),
    c("i32").is_null(),
    c("f").is_not_null(),
    (c("i32") > 1).is_null(),
    c("i32").is_in([1, 7]),
    c("i32").is_in([1, None]),
    ~c("i32").is_in([1, None]),
    c("i32").is_in([1, None], nulls_equal=True),
    ~c("i32").is_in([1, None], nulls_equal=True) & c("i32").is_null(),
    c("i32").is_in([]),
    c("u").is_in([-1, 1]),
    c("f").is_in([0.0, math.nan, 1.5, 2.0, 3.0]),
    c("g").is_in([0.1, 1.5]),
    c("s").is_in(["a", "é"]),
    c("d").is_in([D("1.5")]),
    c("day").is_in([datetime.date(1, 1, 1)]),
    c("ts").is_in([MOMENT]),
    c("k").is_in(pl.lit(pl.Series([1, 2**53 + 1])).implode()),
    c("k").is_in(pl.Series([1, 7]).implode()),
    c("b").is_in([True]),
    c("i32") + 1 < 0,
    c("i8") * 2 > 0,
    c("i8") - c("i8") == 0,
    c("i32") % 3 == 1,
    c("k") // 2 < -1,
    c("u") // c("u") == 1,
    c("u") % c("u") == 0,
    c("k").truncdiv(-2) == 3,
    c("i32").truncdiv(c("i32")) == 1,
    c("k") / 0 > 0,
    c("i32") / 2 == 3.5,
    c("k") * 1.5 > 10.0,
    c("f") / c("f") == 1.0,
    c("f") / 0.5 == 3.0,
    c("g") / 4 < 0.1,
    1 / c("f") > 0.5,
    c("f") - c("f") > 5.0,
    c("g") * 0.1 < 1.0,
    -c("i8") < 0,
    -c("f") > 0,
    c("f").abs() > 1.0,
    c("f").floor() == 1.0,
    c("f").ceil() == 2.0,
    c("f").round() == -2.0,
    c("i8").cast(pl.Int64) == -128,
    c("k").cast(pl.Int32, strict=False) == 7,
    c("k").cast(pl.Float64) > 9.0e15,
    c("k").cast(pl.String) == "7",
    c("day").cast(pl.String) == "0001-01-01",
    c("ts").cast(pl.Date) == MOMENT.date(),
    c("ts").dt.date() == MOMENT.date(),
    c("g").cast(pl.Float64) > 0.1,
    c("f").cast(pl.Int64, strict=False) == -2,
    c("d").cast(pl.Int8, strict=False) == 1,
    c("ts").cast(pl.Datetime("us", "UTC")) == MOMENT.replace(tzinfo=UTC),
    pl.when(c("b")).then(c("i32")).when(c("b2")).then(7).otherwise(None) == 7,
    pl.coalesce(c("i32"), 1) == 1,
    c("f").fill_null(1.5) == 1.5,
    c("f").fill_nan(None).is_null(),
    pl.max_horizontal(c("i32"), 1) == 1,
    pl.min_horizontal(c("s"), pl.lit("a")) == "a",
    c("s").str.starts_with("a"),
    c("s").str.ends_with("a"),
    c("s").str.contains("%", literal=True),
    *(c("s").str.contains(pattern) for pattern in ("a", "^a", "b$", "^ab$", "", "%", "^", "$")),
    c("s").str.to_uppercase() == "A",
    c("s").str.to_lowercase() == "a",
    c("s").str.len_chars() > 1,
    c("s").str.slice(1, 1) == "b",
    c("s").str.slice(1) == "b",
    c("s").str.slice(2**31) == "",
    c("s").str.slice(0, 2**40) == "a",
    pl.lit(None, dtype=pl.String).str.head(1).is_null() & c("b"),
    c("s").str.head(1) == "a",
    c("s").str.tail(-1) == "b",
    c("s").str.strip_chars(" ") == "a",
    c("s").str.strip_chars_start(" ") == "a",
    c("s").str.strip_chars_end("%") == "a",
    c("s").str.replace_all("a", "b", literal=True) == "b",
    c("s") + c("s") == "aa",
    pl.concat_str(c("s"), pl.lit("x"), ignore_nulls=True) == "x",
    c("p").struct.field("x") == 1,
    c("p").struct.field("y").is_null(),
    c("l").list.len() == 0,
    c("l").list.get(0, null_on_oob=True) == 1,
    c("ts").dt.truncate("1mo") == datetime.datetime(2024, 3, 1),
    c("tz").dt.truncate("1w") < MOMENT.replace(tzinfo=UTC),
    *(
        getattr(c("ts").dt, part)() > 3
        for part in ("quarter", "month", "week", "day", "ordinal_day", "hour", "minute")
    ),
    c("day").dt.year() == 1,
    c("day").dt.offset_by("-1mo1d") < datetime.date(2024, 2, 29),
    c("ts").dt.offset_by("1mo") > MOMENT,
    c("ts") + datetime.timedelta(days=1) > MOMENT,
    c("ts") - pl.duration(days=1) < MOMENT,
    (c("i32") > 1).alias("named"),
]


def rows(seed: int, row_count: int) -> pa.RecordBatch:
    chosen = random.Random(seed)
    return pa.record_batch(
        {
            name: pa.array(chosen.choices([None, *cells], k=row_count), type_)
            for name, (type_, cells) in CELLS.items()
        }
    )


MANY = rows(1, 500)


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_rows_are_those_of_polars(expression: pl.Expr) -> None:
    read = from_polars(expression, SCHEMA)
    assert read.exactness is Exactness.EXACT, read.notes
    found = theirs(expression, MANY)
    assert found is not None
    assert ours(read.exact(), SCHEMA, MANY, Semantics.POLARS) == found
    written = to_polars(read.exact(), SCHEMA)
    assert theirs(written.exact(), MANY) == found


@examples(150)
@given(
    seed=st.integers(0, 2**32),
    parts=st.lists(st.sampled_from(range(len(EXPRESSIONS))), min_size=2, max_size=5),
)
def test_junctions_of_them_too(seed: int, parts: list[int]) -> None:
    batch = rows(seed, 20)
    terms = [EXPRESSIONS[part] for part in parts]
    joined = functools.reduce(operator.or_, [terms[0] & ~terms[1], *terms[2:]])
    read = from_polars(joined, SCHEMA).exact()
    assert ours(read, SCHEMA, batch, Semantics.POLARS) == theirs(joined, batch)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (c("i32").max() > 1, "Agg: it does not compute a value for each row"),
        (c("i32").sum().over("b") > 1, "Over: it does not compute a value for each row"),
        (pl.len() > 1, "Len: it does not compute a value for each row"),
        (c("i32").is_unique(), "is_unique: it does not compute a value for each row"),
        (c("i32").shift(1) > 1, "Shift: it has no counterpart in Rowsieve"),
        (pl.all() > 1, "Selector: it can select several columns"),
        (pl.col("i32", "k") > 1, "Selector: it can select several columns"),
        (
            c("i32").map_elements(bool, return_dtype=pl.Boolean),
            "AnonymousFunction: Python functions",
        ),
        (c("f").is_close(1.0), "is_close: its tolerance"),
        (c("i32").is_in(c("l")), "is_in is read with a list of constants"),
        (c("i32").is_in(pl.Series([2**70], dtype=pl.Int128)), "a type of polars' own"),
        (c("ts") <= pl.lit(MOMENT, dtype=pl.Datetime("ms")), "a constant of milliseconds"),
        (c("ts").is_in(pl.Series([MOMENT], dtype=pl.Datetime("ms"))), "cast them to us"),
        (~c("i32").is_between(pl.lit(3), pl.lit(None)), "an untyped NULL"),
        (c("f") / 49.0 == 1.0, "reciprocal of a constant divisor"),
        (c("i32") / 49 == 1.0, "reciprocal of a constant divisor"),
        (c("f") / 5e-324 != 0, "reciprocal of a constant divisor"),
        (c("f") / pl.lit(3.0, pl.Float64).neg() > 1, "divide by a power of 2"),
        (c("g").is_between(0.1, pl.lit(math.nan, pl.Float64)), "is_between with bounds of two"),
        (c("g").is_between(0.1, c("f")), "is_between with bounds of two"),
        (~c("i32").is_in([1], nulls_equal=True), "leave nulls_equal out"),
        (c("i32") // -2 > 1, "FloorDivide of signed numbers is read for a constant"),
        (c("f") % 2.0 > 1.0, "Modulus of floats"),
        (c("i32") + c("k") > 1, "Plus of int32, int64: cast all to one type"),
        (c("i8") + 200 > 1, "Plus of a int8 and 200"),
        (c("u") == c("d"), "a comparison of uint64 with decimal(8,2)"),
        (c("i32") == c("f"), "a comparison of int32 with float64"),
        (c("d") == 1.5, "a comparison of decimal(8,2) with 1.5"),
        (c("f") == 2**53 + 1, "compared with a float"),
        (c("g") == 1e300, "beyond float32"),
        (pl.lit(1) == pl.lit(1), "a comparison of constants without a type"),
        (c("ts") == c("tz"), "a comparison of timestamp with timestamptz"),
        (c("ts") == pl.lit(1, dtype=pl.Datetime("ns")), "less than a microsecond"),
        (c("tz") == pl.lit(MOMENT).dt.replace_time_zone("Asia/Tokyo"), "ReplaceTimeZone"),
        (c("s") == pl.lit("x", dtype=pl.Categorical), "Categorical has no counterpart"),
        (c("s").str.contains("(?s)a.b"), "the group '(?s)'"),
        (c("s").str.contains_any(["a"]), "ContainsAny: it has no counterpart"),
        (c("s").str.strip_chars() == "a", "with an explicit constant only"),
        (c("s").cast(pl.Int64) == 1, "a cast from string to int64"),
        (c("k").cast(pl.Int8, wrap_numerical=True) == 1, "a cast that wraps around"),
        (c("f").round(1) == 1.0, "a float, with decimals=0"),
        (c("f").round(mode="half_away_from_zero") == 1.0, "mode='half_to_even'"),
        (
            pl.max_horizontal("f", "f") > 1.0,
            "one type, not floats only",
        ),
        (c("i32") | c("i32") > 1, "a comparison of bool with 1"),
        (c("l").list.get(0) == 1, "null_on_oob=True"),
        (c("ts").dt.truncate("2d") == MOMENT, "to one of 1s, 1m"),
        (c("day").dt.truncate("1mo") == MOMENT.date(), "dt.truncate is read for timestamps"),
    ],
    ids=str,
)
def test_constructs_without_a_counterpart_are_named_and_go_to_the_residual(
    expression: pl.Expr, reason: str
) -> None:
    read = from_polars(c("b") & expression, SCHEMA)
    assert read.exactness is Exactness.SUPERSET
    assert reason in read.notes[0]
    assert read.notes[0].startswith("condition 2 of 2 (")
    assert read.residual is not None
    if "AnonymousFunction" not in reason:
        assert read.residual.meta.eq(expression)
    with pytest.raises(UnsupportedOperation, match="condition 2 of 2"):
        from_polars(c("b") & expression, SCHEMA, strict=True)
    for kept in (c("b") | expression, ~(c("b") & expression)):
        assert from_polars(kept, SCHEMA).expression is None


def test_long_chains_do_not_recurse() -> None:
    chain = functools.reduce(operator.or_, [c("k") == n for n in range(10_000)])
    read = from_polars(chain & c("b"), SCHEMA).exact()
    assert isinstance(read, And)
    assert isinstance(read.terms[0], Or)
    assert len(read.terms[0].terms) == 10_000
    nested = functools.reduce(lambda inner, _: ~inner, range(3_000), c("b"))
    assert "nests deeper" in from_polars(nested, SCHEMA).notes[0]


def test_long_lists_are_read_as_they_lie() -> None:
    members = pl.Series(range(1_000_000))
    read = from_polars(c("k").is_in(members.implode()), SCHEMA).exact()
    assert isinstance(read, InList)
    assert read.values.array.equals(pa.array(range(1_000_000)))


def test_a_function_inside_is_never_loaded(tmp_path: Path) -> None:
    touched = tmp_path / "touched"

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (touched,)

    trap = Trap()
    mapped = c("i32").map_elements(lambda _: trap is None, return_dtype=pl.Boolean)
    assert "pickled code is never loaded" in from_polars(mapped, SCHEMA).notes[0]
    assert not touched.exists()


def test_scans_take_expressions(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3], "x": [math.nan, 1.0, None]})
    table = rs.create_table(str(tmp_path / "t"), data, key=["id"])
    assert table.scan(where=c("x") > 5.0).to_arrow()["id"].to_pylist() == [1]
    assert table.scan(where=c("id") + (2**63 - 2) < 0).count() == 2
    with pytest.raises(UnknownColumn):
        table.scan(where=c("nowhere") == 1)
    with pytest.raises(UnsupportedOperation, match="condition 1 of 1"):
        table.scan(where=c("id").is_unique())
    assert is_polars_expression(c("id"))
    assert not is_polars_expression("id")
