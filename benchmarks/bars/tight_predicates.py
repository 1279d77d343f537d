"""Random typed predicates by kind of operator, over columns with few possible values.

Constants are close to the columns' values, so that some ranges refute about half of the predicates
and others do not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from rowsieve.predicate.ir import (
    And,
    BooleanOperand,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    ComparisonOp,
    Condition,
    InList,
    IsNull,
    Like,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
)
from rowsieve.predicate.ir import ValueSet as Values
from rowsieve.types.logical import Bool, Date, Decimal, Float, Int, String, Timestamp

X, Y, F, B, S, DAY, AT = (Column(name) for name in ("x", "y", "f", "b", "s", "day", "at"))
DAY_US = 86_400_000_000
FIRST_DAY = 19_720  # 2023-12-29
DAYS = 66
TEXTS = ("", "a", "aa", "ab", "b", "ba", "bb", "c", "A", "aB")
ORDERS = (
    *(ComparisonOp.EQ, ComparisonOp.NE, ComparisonOp.LT),
    *(ComparisonOp.LE, ComparisonOp.GT, ComparisonOp.GE),
)
Random = random.Random


def whole(value: int) -> Literal:
    """A whole number."""
    return Literal(value, Int(64))


def _number(rng: Random, farthest: int = 4) -> Literal:
    return whole(rng.randint(-farthest, farthest))


def _compared(rng: Random, left: Operand, right: Operand) -> Predicate:
    return Comparison(rng.choice(ORDERS), left, right)


def _simple(rng: Random) -> Predicate:
    return _compared(rng, rng.choice((X, Y)), _number(rng))


def _two_columns(rng: Random) -> Predicate:
    return _compared(rng, X, Y)


def _sum(rng: Random, depth: int) -> Operand:
    if depth == 0:
        return rng.choice((X, Y, _number(rng)))
    name = rng.choice(("add", "subtract", "multiply", "divide", "modulo", "negate"))
    left = _sum(rng, depth - 1)
    if name == "negate":
        return Call(name, (left,))
    right = rng.choice((_number(rng), Y)) if depth == 1 else _sum(rng, 0)
    return Call(name, (left, right))


def _arithmetic(rng: Random) -> Predicate:
    return _compared(rng, _sum(rng, 1), _number(rng, 9))


def _nested(rng: Random) -> Predicate:
    return _compared(rng, _sum(rng, 2), _number(rng, 9))


def _listed(rng: Random) -> Predicate:
    members: list[int | None] = [rng.randint(-4, 4) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.2:
        members.append(None)
    inside = InList(rng.choice((X, Y)), Values(pa.array(members, pa.int64()), Int(64)))
    return Not(inside) if rng.random() < 0.4 else inside


def _null(rng: Random) -> Predicate:
    if rng.random() < 0.5:
        test = IsNull(rng.choice((X, Call("add", (X, Y)), Call("nullif", (X, _number(rng))))))
        return Not(test) if rng.random() < 0.5 else test
    op = rng.choice((ComparisonOp.DISTINCT, ComparisonOp.NOT_DISTINCT))
    return Comparison(op, X, rng.choice((Y, _number(rng), Literal(None, Int(64)))))


def _logic(rng: Random) -> Predicate:
    terms = tuple(
        rng.choice((_simple, _two_columns, _listed, _null, _arithmetic))(rng)
        for _ in range(rng.randint(2, 3))
    )
    joined: Predicate = And(terms) if rng.random() < 0.5 else Or(terms)
    return Not(joined) if rng.random() < 0.3 else joined


def _conjuncts(rng: Random) -> Predicate:
    return And(tuple(rng.choice((_simple, _two_columns, _arithmetic))(rng) for _ in range(3)))


def _case(rng: Random) -> Predicate:
    branches = tuple(
        (_simple(rng), rng.choice((X, Y, _number(rng)))) for _ in range(rng.randint(1, 2))
    )
    return _compared(rng, Case(branches, rng.choice((X, _number(rng)))), _number(rng))


def _choice(rng: Random) -> Predicate:
    name = rng.choice(("coalesce", "nullif", "greatest", "least"))
    sides = (X, rng.choice((Y, _number(rng))))
    return _compared(rng, Call(name, sides), _number(rng))


def _functions(rng: Random) -> Predicate:
    made: Operand = rng.choice(
        (
            Call("abs", (rng.choice((X, Call("subtract", (X, _number(rng))))),)),
            Call("bit_and", (X, whole(rng.randint(0, 3)))),
            Call("bit_or", (X, whole(rng.randint(0, 3)))),
            Call("shift_right", (X, whole(1))),
            Call("floor", (F,)),
            Call("round", (F,)),
            Call("sign", (F,)),
            Call("multiply", (F, Literal(rng.choice((2.0, -0.5)), Float(64)))),
        )
    )
    return _compared(rng, made, _number(rng))


def _casts(rng: Random) -> Predicate:
    kind = rng.randrange(5)
    if kind == 0:
        return _compared(rng, Cast(F, Int(64)), _number(rng))
    if kind == 1:
        return _compared(rng, Cast(X, Decimal(6, 2)), _number(rng))
    if kind == 2:
        text = str(rng.randint(-4, 4))
        return Comparison(rng.choice(ORDERS[:2]), Cast(X, String()), Literal(text, String()))
    if kind == 3:
        return _compared(rng, Cast(AT, Date()), _day(rng))
    return _compared(rng, Cast(X, Float(64)), Literal(rng.randint(-8, 8) / 2, Float(64)))


def _day(rng: Random) -> Literal:
    return Literal(FIRST_DAY + rng.randint(-1, DAYS), Date())


def _moment(rng: Random) -> Literal:
    clock = rng.choice((0, 0, DAY_US // 2, DAY_US - 1))
    return Literal((FIRST_DAY + rng.randint(-1, DAYS)) * DAY_US + clock, Timestamp())


def _dates(rng: Random) -> Predicate:
    kind = rng.randrange(7)
    column = rng.choice((DAY, AT))
    if kind == 0:
        part = rng.choice(("year", "month", "day", "dow", "doy", "week", "quarter"))
        span = {"year": (2023, 2024), "day": (1, 31), "doy": (1, 366), "week": (1, 52)}
        value = rng.randint(*span.get(part, (1, 6)))
        return _compared(rng, Call("extract", (Literal(part, String()), column)), whole(value))
    if kind == 1:
        unit = Literal(rng.choice(("day", "week", "month", "year")), String())
        return _compared(rng, Call("date_trunc", (unit, AT)), _moment(rng))
    if kind == 2:
        moves = (rng.choice((0, 1, -1)), rng.randint(-3, 3), rng.choice((0, DAY_US // 2)))
        moved = Call("add_interval", (column, *map(whole, moves)))
        return _compared(rng, moved, _moment(rng))
    if kind == 3:
        return _compared(rng, Call("last_day", (column,)), _day(rng))
    if kind == 4:
        return _compared(rng, Call("days_between", (column, _day(rng))), _number(rng, 20))
    parts = (
        Comparison(op, Call("extract", (Literal(name, String()), column)), whole(value))
        for op, name, value in (
            (ComparisonOp.EQ, "year", rng.choice((2023, 2024))),
            (ComparisonOp.EQ, "month", rng.choice((1, 2, 3, 12))),
        )
    )
    return And(tuple(parts))


def _texts(rng: Random) -> Predicate:
    text = Literal(rng.choice(TEXTS), String())
    kind = rng.randrange(7)
    if kind == 0:
        return _compared(rng, S, text)
    if kind == 1:
        pattern = rng.choice(("a%", "ab%", "%b", "a_", "b", "%", "_"))
        like = Like(S, pattern, None, ignore_case=False)
        return Not(like) if rng.random() < 0.3 else like
    if kind == 2:
        test: Predicate = BooleanOperand(Call("starts_with", (S, text)))
        return Not(test) if rng.random() < 0.3 else test
    if kind == 3:
        return _compared(rng, Call("left", (S, whole(rng.randint(0, 2)))), text)
    if kind == 4:
        return _compared(rng, Call("concat_strict", (Literal("a", String()), S)), text)
    if kind == 5:
        return _compared(rng, Call("upper", (S,)), Literal(str(text.value).upper(), String()))
    return InList(S, Values(pa.array([rng.choice(TEXTS) for _ in range(2)]), String()))


def _booleans(rng: Random) -> Predicate:
    plain = BooleanOperand(B)
    truth = Condition(_simple(rng))
    return rng.choice(
        (
            plain,
            Not(plain),
            Comparison(rng.choice(ORDERS), B, Literal(rng.random() < 0.5, Bool())),
            Comparison(ComparisonOp.NOT_DISTINCT, B, Literal(rng.random() < 0.5, Bool())),
            Comparison(ComparisonOp.EQ, B, truth),
            And((plain, _simple(rng))),
            Or((Not(plain), _simple(rng))),
        )
    )


KINDS: Mapping[str, Callable[[Random], Predicate]] = {
    "a column and a constant": _simple,
    "two columns": _two_columns,
    "arithmetic": _arithmetic,
    "nested arithmetic": _nested,
    "lists": _listed,
    "NULL": _null,
    "AND, OR, NOT": _logic,
    "three conjuncts": _conjuncts,
    "CASE": _case,
    "choices": _choice,
    "functions of numbers": _functions,
    "casts": _casts,
    "dates and times": _dates,
    "text": _texts,
    "booleans": _booleans,
}


def drawn(kind: str, seed: Any) -> Predicate:
    """One predicate of this kind, over at most two columns."""
    return KINDS[kind](random.Random(f"{kind} {seed}"))
