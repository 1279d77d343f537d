"""Hypothesis: conditions that a session's time zone decides, and times near the zones' changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from rowsieve.predicate.ir import (
    Call,
    Cast,
    Column,
    Comparison,
    ComparisonOp,
    Literal,
    Not,
    Operand,
    Predicate,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date, Int, String, Time, Timestamp
from rowsieve.types.zones import zone
from tests.oracle_values import EPOCH
from tests.zones import NAMES, instants

LOCAL, INSTANT = Timestamp(), Timestamp(utc=True)
MOMENTS = tuple((edge.replace(tzinfo=None) - EPOCH) // (EPOCH.resolution) for edge in instants())
ENGINES = (Semantics.POSTGRES, Semantics.DUCKDB, Semantics.SPARK, Semantics.DATAFUSION)
SEMANTICS: st.SearchStrategy[Semantics] = st.builds(
    lambda own, name: replace(own, time_zone=name), st.sampled_from(ENGINES), st.sampled_from(NAMES)
)
_UNITS = ("second", "hour", "day", "week", "month", "quarter", "year", "century")
_FIELDS = ("year", "quarter", "month", "day", "week", "doy", "dow", "hour", "minute", "epoch")


_NEAR = (0, -1, 1, 1_800_000_000, -1_800_000_000, 3_600_000_000, -3_600_000_000, 5_400_000_000)


@st.composite
def zones(draw: st.DrawFn) -> tuple[Semantics, tuple[int, ...]]:
    """An engine's rules in a zone, and times around one of the zone's changes since 1970.

    Instants and the local times that they have before and after the change.
    """
    semantics = draw(SEMANTICS)
    own = zone(semantics.time_zone)
    recent = [place for place, start in enumerate(own.starts) if 0 <= start < 4 * 10**9]
    if not recent:
        return semantics, MOMENTS
    place = draw(st.sampled_from(recent))
    ends = (0, int(own.offsets[place - 1]), int(own.offsets[place]))
    start = int(own.starts[place])
    near = {(start + east) * 1_000_000 + more for east in ends for more in _NEAR}
    return semantics, tuple(sorted(near))


def _operands(names: Sequence[str]) -> st.SearchStrategy[Operand]:
    """Times with a date."""
    instant = st.just(Column("tz"))
    column = st.sampled_from([Column("tz"), Column("ts"), Column("day")])
    cast = st.builds(Cast, column, st.sampled_from([LOCAL, INSTANT, Date()]))
    named = st.builds(
        lambda name, inner: Call("timezone", (Literal(name), inner)),
        st.sampled_from(names),
        st.sampled_from([Column("tz"), Column("ts")]),
    )
    moved = st.builds(
        lambda f, *parts: Call(f, (Column("tz"), *(Literal(part, Int(64)) for part in parts))),
        st.sampled_from(["add_interval", "shift"]),
        st.sampled_from([0, 0, 1, -13]),
        st.sampled_from([0, 1, -30]),
        st.sampled_from([0, 1, 129_600_000_000, -3_600_000_000]),
    )
    cut = st.builds(
        lambda unit, inner: Call("date_trunc", (Literal(unit), inner)),
        st.sampled_from(_UNITS),
        st.one_of(instant, moved, named),
    )
    return st.one_of(instant, cast, named, moved, cut)


def _constants(moments: Sequence[int]) -> st.SearchStrategy[Operand]:
    return st.one_of(
        st.sampled_from([Literal(value, type_) for value in moments for type_ in (LOCAL, INSTANT)]),
        st.sampled_from([Literal(value // 86_400_000_000, Date()) for value in moments]),
        st.sampled_from([Literal(text) for text in _texts(moments)]),
        st.sampled_from([Column("tz"), Column("ts"), Column("day")]),
    )


def _texts(moments: Sequence[int]) -> list[str]:
    return [str(EPOCH + EPOCH.resolution * value) for value in moments]


def conditions(
    moments: Sequence[int] = MOMENTS, names: Sequence[str] = NAMES
) -> st.SearchStrategy[Predicate]:
    """Comparisons of times, of their parts, of their time of day and of their text; lists."""
    op = st.sampled_from(list(ComparisonOp))
    whole = st.builds(Comparison, op, _operands(names), _constants(moments))
    part = st.builds(
        lambda op, field, operand, value: Comparison(
            op, Call("extract", (Literal(field), operand)), Literal(value, Int(64))
        ),
        op,
        st.sampled_from(_FIELDS),
        st.sampled_from([Column("tz"), Cast(Column("ts"), INSTANT)]),
        st.sampled_from([0, 1, 2, 3, 4, 10, 11, 23, 30, 44, 2011, 2024, 2050]),
    )
    clock = st.builds(
        lambda op, value: Comparison(op, Cast(Column("tz"), Time()), Literal(value, Time())),
        op,
        st.sampled_from([value % 86_400_000_000 for value in moments]),
    )
    text = st.builds(
        lambda op, value: Comparison(op, Cast(Column("tz"), String()), Literal(value, String())),
        op,
        st.sampled_from(_texts(moments)),
    )
    found = st.one_of(whole, whole, part, clock, text)
    return st.one_of(found, found, st.builds(Not, found))
