"""What the interpreter concludes from statistics must contain what the evaluator finds on rows."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.bridges.sql import parse_predicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.interpret import Verdict, _Interpreter, interpret
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Float, Int
from tests.oracle_texts import known_texts
from tests.predicate.part_statistics import Known, check, statistics, widened
from tests.profiles import examples
from tests.strategies import (
    COLUMN_TYPES,
    IEEE,
    SCHEMA,
    SEMANTICS,
    arrow_array,
    batches,
    predicates,
)

EQ, NE, LT, GT, GE = (
    ir.ComparisonOp.EQ,
    ir.ComparisonOp.NE,
    ir.ComparisonOp.LT,
    ir.ComparisonOp.GT,
    ir.ComparisonOp.GE,
)


@examples(200)
@given(
    st.lists(predicates(), min_size=2, max_size=6),
    st.lists(batches(), max_size=3),
    st.sampled_from(SEMANTICS),
    st.sampled_from([ir.And, ir.Or]),
)
@known_texts()
def test_comparisons_made_together_are_those_made_alone(
    terms: list[ir.Predicate],
    parts: list[pa.RecordBatch],
    semantics: Semantics,
    kind: type[ir.And | ir.Or],
) -> None:
    bound = bind(ir.Not(kind(tuple(terms))), SCHEMA, semantics)
    known = statistics(parts, frozenset())
    alone = interpret(bound, known)
    with (
        mock.patch("rowsieve.predicate.alike_terms.MIN_ALIKE", 1),
        mock.patch("rowsieve.predicate.interpret._MAX_AT_ONCE", 4),
    ):
        assert interpret(bound, known).tolist() == alone.tolist()


def test_many_comparisons_of_one_column_are_those_made_alone() -> None:
    bounds = [(None, None), (0, 3), (3, 3), (5, 9), (None, 4), (4, None), (None, None)]
    flags = np.array([True, False, False, True, False, False, True])
    lower, upper = zip(*bounds, strict=True)
    column = ir.BoundColumn(1, "i32", COLUMN_TYPES["i32"])
    known = Known(
        len(bounds),
        {
            "i32": AbstractColumn(
                arrow_array(list(lower), column.type),
                arrow_array(list(upper), column.type),
                np.array([False] * 6 + [True]),
                flags,
            )
        },
    )
    values = list(range(-1, 11))
    interpreter = _Interpreter(known, Semantics.SQL, len(bounds), None)
    for op in (ir.ComparisonOp[name] for name in ("EQ", "NE", "LT", "LE", "GT", "GE")):
        together = interpreter.compared_at_once(column, op, arrow_array(values, column.type))
        for place, value in enumerate(values):
            node = ir.Comparison(op, column, ir.Literal(value, column.type))
            alone = interpreter.comparison(node)
            for outcome, matrix in zip(("true", "false", "null", "fails"), together, strict=True):
                rows = np.broadcast_to(matrix, (len(values), len(bounds)))
                assert rows[place].tolist() == getattr(alone, outcome).tolist(), node


_NAMES = st.frozensets(st.sampled_from(list(COLUMN_TYPES)), max_size=6)


@examples(300)
@given(
    predicates(), st.lists(batches(), min_size=1, max_size=3), st.sampled_from(SEMANTICS), _NAMES
)
@known_texts()
def test_a_verdict_never_contradicts_its_rows(
    predicate: ir.Predicate,
    parts: list[pa.RecordBatch],
    semantics: Semantics,
    hidden: frozenset[str],
) -> None:
    check(predicate, parts, statistics(parts, hidden), semantics)


@examples(150)
@given(
    predicates(),
    st.lists(batches(min_rows=1, max_rows=2), min_size=1, max_size=3),
    st.sampled_from(SEMANTICS),
    _NAMES,
    _NAMES,
)
@known_texts()
def test_vaguer_statistics_stay_sound_and_decide_no_more(
    predicate: ir.Predicate,
    parts: list[pa.RecordBatch],
    semantics: Semantics,
    unbounded: frozenset[str],
    nullable: frozenset[str],
) -> None:
    known = statistics(parts, frozenset())
    vague = widened(known, unbounded, nullable)
    check(predicate, parts, vague, semantics)
    bound = bind(predicate, SCHEMA, semantics)
    sharp, blunt = interpret(bound, known), interpret(bound, vague)
    assert ((blunt == Verdict.SOME) | (blunt == sharp)).all()


def part(**columns: tuple[Any, Any]) -> Known:
    """One part without NULLs, with these bounds; None is no bound."""
    flags = np.zeros(1, dtype=np.bool_)
    return Known(
        1,
        {
            name: AbstractColumn(
                arrow_array([lower], COLUMN_TYPES[name]),
                arrow_array([upper], COLUMN_TYPES[name]),
                flags,
                flags,
                flags if isinstance(COLUMN_TYPES[name], Float) else None,
            )
            for name, (lower, upper) in columns.items()
        },
    )


def verdict(predicate: ir.Predicate, known: Known, semantics: Semantics = Semantics.SQL) -> Verdict:
    found: npt.NDArray[np.int8] = interpret(bind(predicate, SCHEMA, semantics), known)
    return Verdict(int(found[0]))


def call(name: str, *arguments: Any) -> ir.Call:
    return ir.Call(
        name,
        tuple(
            ir.Column(argument)
            if isinstance(argument, str) and argument in COLUMN_TYPES
            else ir.Literal(argument)
            for argument in arguments
        ),
    )


def micros(text: str) -> int:
    at = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)
    return int(at.timestamp()) * 1_000_000


WINTER = part(ts=(micros("2012-06-05"), micros("2013-03-20")))
PRICES = part(d=(decimal.Decimal("3.50"), decimal.Decimal("5.00")))
JANUARY = part(ts=(micros("2013-01-05"), micros("2013-01-20")))
SMALL = part(i32=(1, 5))
WORDS = part(s=("abc", "abz"))
NOON = part(ts=(micros("2013-01-05 10:00"), micros("2013-01-05 12:00")))
NONE, SOME, ALL = Verdict.NONE, Verdict.SOME, Verdict.ALL
PRUNED: list[tuple[str, Known, Verdict]] = [
    ("i32 > 5", SMALL, NONE),
    ("i32 >= 5", SMALL, SOME),
    ("i32 < 6", SMALL, ALL),
    (f"i32 < {2**80}", SMALL, ALL),
    ("i32 = '3'", SMALL, SOME),
    ("NOT (i32 > 5)", SMALL, ALL),
    ("i32 IS NULL", SMALL, NONE),
    ("i32 IN (0, 6)", SMALL, NONE),
    ("i32 IN (0, 3)", SMALL, SOME),
    ("i32 NOT IN (0, 6)", SMALL, ALL),
    ("i32 NOT IN (0, NULL)", SMALL, NONE),
    ("s IN ('abd')", WORDS, SOME),
    ("s IN ('ab', 'b')", WORDS, NONE),
    ("s LIKE 'ab%'", WORDS, ALL),
    ("s LIKE 'b%'", WORDS, NONE),
    ("s LIKE 'abd%_'", WORDS, SOME),
    ("starts_with(s, 'ac')", WORDS, NONE),
    ("s ILIKE 'B%'", WORDS, SOME),
    ("i32 + 2 > 7", SMALL, NONE),
    ("i32 * -2 > -2", SMALL, NONE),
    ("i32 / 2 > 2", SMALL, NONE),
    ("CAST(i32 AS DOUBLE PRECISION) > 5.5", SMALL, NONE),
    ("coalesce(i32, 9) > 5", SMALL, NONE),
    ("greatest(i32, 4) > 5", SMALL, NONE),
    ("CASE WHEN i32 > 9 THEN 8 ELSE i32 END > 5", SMALL, NONE),
    ("date_trunc('month', ts) = '2014-01-01'", JANUARY, NONE),
    ("date_trunc('month', ts) = '2013-01-01'", JANUARY, ALL),
    ("EXTRACT(YEAR FROM ts) = 2013", JANUARY, ALL),
    ("EXTRACT(MONTH FROM ts) = 2", JANUARY, NONE),
    ("EXTRACT(MONTH FROM ts) = 1", JANUARY, ALL),
    ("EXTRACT(MONTH FROM ts) = 6", WINTER, SOME),
    ("EXTRACT(MONTH FROM ts) = 13", WINTER, NONE),
    ("EXTRACT(HOUR FROM ts) = 9", NOON, NONE),
    ("ts >= '2013-01-01' AND EXTRACT(MONTH FROM ts) = 6", WINTER, NONE),
    ("ts + INTERVAL '30 days' < '2013-02-04'", JANUARY, NONE),
    ("ts + INTERVAL '1 month' < '2013-02-05'", JANUARY, NONE),
    ("abs(i32) > 7", part(i32=(-7, 5)), NONE),
    ("abs(i32) < 5", part(i32=(-7, -5)), NONE),
    ("100 / i32 > 50", part(i32=(2, 4)), NONE),
    ("i32 % 7 = 7", SMALL, NONE),
    ("i32 % 10 = 6", part(i32=(21, 25)), NONE),
    ("round(d, 0) = 3", PRICES, NONE),
    ("upper(s) = 'AD'", WORDS, NONE),
    ("lower(s) = 'abc'", part(s=("ABC", "ABC")), ALL),
    ("length(s) < 2", WORDS, NONE),
    ("substr(s, 1, 2) = 'ac'", WORDS, NONE),
    ("substr(s, 1, 2) = 'ab'", WORDS, ALL),
    ("left(s, 2) = 'ac'", WORDS, NONE),
    ("'x' || s = 'xac'", WORDS, NONE),
    ("'x' || s || 'y' = 'xacy'", WORDS, NONE),
    ("strpos(s, 'z') < 0", WORDS, NONE),
    ("greatest(i32, 9) < 9", SMALL, NONE),
    ("least(i32, 0) > 0", SMALL, NONE),
    ("nullif(i32, 9) IS NULL", SMALL, NONE),
    ("nullif(i32, 5) IS NULL", SMALL, SOME),
    ("CAST(i32 AS VARCHAR) = '7'", SMALL, NONE),
    ("CAST(i32 AS VARCHAR) = '-3'", part(i32=(-9, -4)), NONE),
    ("CAST(ts AS VARCHAR) LIKE '2013-02%'", JANUARY, NONE),
    ("CAST(ts AS DATE) > '2013-01-20'", JANUARY, NONE),
]


@pytest.mark.parametrize(("text", "known", "wanted"), PRUNED, ids=[text for text, *_ in PRUNED])
def test_pruning_by_bounds(text: str, known: Known, wanted: Verdict) -> None:
    assert verdict(parse_predicate(text), known) is wanted


def test_t9_a_possible_error_keeps_the_part() -> None:
    known = part(i32=(1, 2**31 - 1))
    overflow = ir.Comparison(LT, call("add", "i32", 1), ir.Literal(0))
    assert verdict(overflow, known) is Verdict.SOME
    assert (
        verdict(ir.And((overflow, ir.Comparison(LT, ir.Column("i32"), ir.Literal(0)))), known)
        is Verdict.NONE
    )
    assert (
        verdict(ir.Or((ir.Comparison(LT, ir.Column("i32"), ir.Literal(0)), overflow)), known)
        is Verdict.SOME
    )


@pytest.mark.parametrize("bounds", [(1, 1_000), (-1_000, -1), (1, None), (None, -1)])
def test_t9_a_cast_that_may_fail_at_one_end_keeps_the_part(bounds: tuple[Any, Any]) -> None:
    narrow = ir.Cast(ir.Column("i32"), Int(8))
    for constant in (0, 100):
        for op in (LT, EQ, GT):
            found = verdict(ir.Comparison(op, narrow, ir.Literal(constant)), part(i32=bounds))
            assert found is Verdict.SOME
    quiet = ir.Comparison(EQ, ir.Cast(ir.Column("i32"), Int(8), try_=True), ir.Literal(0))
    assert verdict(quiet, SMALL) is Verdict.NONE


def test_t10_monotone_is_not_defined_everywhere() -> None:
    known = part(i32=(-2, 2))
    assert (
        verdict(ir.Comparison(GT, call("divide", 1, "i32"), ir.Literal(5)), known) is Verdict.SOME
    )
    assert (
        verdict(ir.Comparison(GT, call("divide", "i32", 0), ir.Literal(5)), known) is Verdict.SOME
    )


def test_t13_nan_may_hide_above_every_bound() -> None:
    flags = np.zeros(1, dtype=np.bool_)
    bounds = (pa.array([1.0]), pa.array([2.0]))
    above = ir.Comparison(GT, ir.Column("f64"), ir.Literal(5.0))
    below = ir.Comparison(LT, ir.Column("f64"), ir.Literal(5.0))
    for may_be_nan in (np.ones(1, dtype=np.bool_), None):
        known = Known(1, {"f64": AbstractColumn(*bounds, flags, flags, may_be_nan)})
        assert verdict(above, known) is Verdict.SOME
        assert verdict(below, known) is Verdict.SOME
        assert verdict(below, known, IEEE) is Verdict.SOME
        positive = ir.Comparison(GT, ir.Column("f64"), ir.Literal(0.5))
        assert verdict(positive, known) is Verdict.ALL
        assert verdict(positive, known, IEEE) is Verdict.SOME
        assert (
            verdict(ir.Comparison(NE, ir.Column("f64"), ir.Column("f64")), known, IEEE)
            is Verdict.SOME
        )
    known = Known(1, {"f64": AbstractColumn(*bounds, flags, flags, flags)})
    assert verdict(above, known) is Verdict.NONE
    assert verdict(below, known, IEEE) is Verdict.ALL


def test_infinity_minus_infinity_is_not_an_end_point() -> None:
    known = part(f64=(-math.inf, math.inf))
    assert (
        verdict(ir.Comparison(GT, call("add", "f64", "f64"), ir.Literal(math.inf)), known)
        is Verdict.SOME
    )


def test_t13_zeros_are_one_value_but_for_lists_that_tell_them_apart() -> None:
    known = part(f64=(0.0, 0.0))
    assert verdict(ir.Comparison(EQ, ir.Column("f64"), ir.Literal(-0.0)), known) is Verdict.ALL
    member = ir.InList(ir.Column("f64"), ir.ValueSet(pa.array([0.0])))
    assert verdict(member, known) is Verdict.ALL
    assert verdict(member, known, Semantics.DATAFUSION) is Verdict.ALL
    long = ir.InList(ir.Column("f64"), ir.ValueSet(pa.array([0.0, 1.0, 2.0, 3.0])))
    assert verdict(long, known, Semantics.DATAFUSION) is Verdict.SOME


def test_t15_truncated_bounds_and_surrogates() -> None:
    known = part(s=("a", "\ue000"))
    assert verdict(ir.Like(ir.Column("s"), "\ud7ff%"), known) is Verdict.SOME
    assert verdict(ir.Like(ir.Column("s"), "\U0010ffff%"), part(s=("a", "b"))) is Verdict.NONE
    assert (
        verdict(ir.Like(ir.Column("s"), "\U0010ffff%"), part(s=("\U0010ffff", None))) is Verdict.ALL
    )
    assert verdict(ir.Like(ir.Column("s"), "\U0010ffff%"), part(s=("b", None))) is Verdict.SOME
    assert (
        verdict(ir.Like(ir.Column("s"), "a\U0010ffff%"), part(s=("a\U0010ffff", "b")))
        is Verdict.SOME
    )


@pytest.mark.parametrize("name", ["i32", "s", "d", "f64"])
def test_a_list_against_a_part_without_a_bound(name: str) -> None:
    low, middle, high = {
        "i32": (1, 3, 9),
        "s": ("b", "c", "d"),
        "d": tuple(map(decimal.Decimal, ("1.00", "3.00", "9.00"))),
        "f64": (1.0, 3.0, math.nan),
    }[name]
    type_ = COLUMN_TYPES[name]

    def member(value: Any) -> ir.InList:
        return ir.InList(ir.Column(name), ir.ValueSet(arrow_array([value], type_), type_))

    assert verdict(member(high), part(**{name: (middle, None)})) is Verdict.SOME
    assert verdict(member(low), part(**{name: (middle, None)})) is Verdict.NONE
    assert verdict(member(low), part(**{name: (None, middle)})) is Verdict.SOME
    assert verdict(member(high), part(**{name: (None, middle)})) is Verdict.NONE
    assert verdict(member(middle), part(**{name: (None, None)})) is Verdict.SOME


def test_invariant_30_now_lies_at_or_after_the_time_of_the_plan() -> None:
    instants = part(tz=(micros("2013-01-05"), micros("2013-01-20")))
    month = ir.Call("add_interval", (ir.Now(), ir.Literal(0), ir.Literal(-30), ir.Literal(0)))
    recent = bind(ir.Comparison(GT, ir.Column("tz"), month), SCHEMA)
    later = bind(ir.Comparison(GT, ir.Column("tz"), ir.Now()), SCHEMA)

    def found(bound: BoundPredicate, plan_time: str | None) -> int:
        now_us = None if plan_time is None else micros(plan_time)
        return int(interpret(bound, instants, now_us=now_us)[0])

    assert found(recent, "2013-03-01") == Verdict.NONE
    assert found(recent, "2013-02-10") == Verdict.SOME
    assert found(recent, "2013-01-30") == Verdict.SOME  # it may be read later
    assert found(later, "2013-01-20") == Verdict.NONE
    assert found(later, "2013-01-19") == Verdict.SOME
    assert found(recent, None) == found(later, None) == Verdict.SOME


def test_conjuncts_restrict_each_other_but_never_prove_all_rows() -> None:
    known = part(i32=(0, 9), f64=(0.0, 9.0))
    shifted = ir.Comparison(EQ, call("modulo", "i32", 10), ir.Literal(3))
    high, low = (
        ir.Comparison(GT, ir.Column("i32"), ir.Literal(3)),
        ir.Comparison(LT, ir.Column("i32"), ir.Literal(4)),
    )
    assert verdict(ir.And((high, shifted)), known) is Verdict.NONE
    assert verdict(ir.And((low, shifted)), known) is Verdict.SOME
    assert verdict(ir.Or((high, shifted)), known) is Verdict.SOME
    at_least = ir.Comparison(GE, call("add", "i32", 0), ir.Literal(0))
    assert verdict(ir.And((high, at_least)), known) is Verdict.SOME
    doubled = ir.Comparison(GT, call("add", "f64", "f64"), ir.Literal(10.0))
    assert (
        verdict(ir.And((ir.Comparison(LT, ir.Column("f64"), ir.Literal(5.0)), doubled)), known)
        is Verdict.NONE
    )


@pytest.mark.parametrize(
    ("lower", "divisor", "verdict_of_all"),
    [
        (-(2**31), -1, Verdict.SOME),
        (-(2**31) + 1, -1, Verdict.ALL),
        (-(2**31), -2, Verdict.ALL),
    ],
)
def test_remainders_may_overflow_in_duckdb(
    lower: int, divisor: int, verdict_of_all: Verdict
) -> None:
    known = part(i32=(lower, 5))
    small = ir.Comparison(
        LT, ir.Call("modulo", (ir.Column("i32"), ir.Literal(divisor, Int(32)))), ir.Literal(2)
    )
    for semantics, wanted in ((Semantics.DUCKDB, verdict_of_all), (Semantics.SQL, Verdict.ALL)):
        assert interpret(bind(small, SCHEMA, semantics), known)[0] == wanted


def test_t27_an_error_is_silenced_by_a_conjunct_that_no_row_satisfies_with_it() -> None:
    known = part(i32=(-5, 5))
    quotient = ir.Comparison(GT, call("divide", 10, "i32"), ir.Literal(9))
    assert verdict(quotient, known) is Verdict.SOME
    assert (
        verdict(ir.And((ir.Comparison(GT, ir.Column("i32"), ir.Literal(1)), quotient)), known)
        is Verdict.NONE
    )
    assert (
        verdict(ir.And((ir.Comparison(GE, ir.Column("i32"), ir.Literal(0)), quotient)), known)
        is Verdict.SOME
    )


def test_contradicting_or_foreign_bounds_mean_unknown() -> None:
    inverted = part(i32=(9, 1))
    assert verdict(ir.Comparison(EQ, ir.Column("i32"), ir.Literal(100)), inverted) is Verdict.SOME
    flags = np.zeros(1, dtype=np.bool_)
    wrong = Known(1, {"i32": AbstractColumn(pa.array([1]), pa.array([2]), flags, flags)})
    assert verdict(ir.Comparison(EQ, ir.Column("i32"), ir.Literal(100)), wrong) is Verdict.SOME
    assert verdict(ir.Comparison(EQ, ir.Column("i32"), ir.Literal(100)), part()) is Verdict.SOME


def test_t36_an_or_with_an_unknown_branch_prunes_nothing() -> None:
    opaque = ir.Opaque("udf(i32)", "spark", ("i32",))
    low = ir.Comparison(LT, ir.Column("i32"), ir.Literal(0))
    assert verdict(ir.Or((low, opaque)), SMALL) is Verdict.SOME
    assert verdict(ir.And((low, opaque)), SMALL) is Verdict.NONE
    assert verdict(ir.Not(opaque), SMALL) is Verdict.SOME


def test_a_part_of_nulls_alone_is_refuted() -> None:
    all_ = np.ones(1, dtype=np.bool_)
    nothing = pa.nulls(1, arrow_type(Int(32)))
    known = Known(1, {"i32": AbstractColumn(nothing, nothing, all_, all_)})
    assert verdict(ir.Comparison(NE, ir.Column("i32"), ir.Literal(5)), known) is Verdict.NONE
    assert verdict(ir.IsNull(ir.Column("i32")), known) is Verdict.ALL
    passed_by = ir.Case(
        ((ir.Comparison(GT, ir.Column("i32"), ir.Literal(9)), ir.Literal(8)),), ir.Literal(1)
    )
    assert verdict(ir.Comparison(EQ, passed_by, ir.Literal(1)), known) is Verdict.ALL
    assert (
        verdict(ir.Comparison(NE, call("divide", 1, "i32"), ir.Literal(5)), known) is Verdict.NONE
    )
