"""Hypothesis: conditions that a session's time zone decides, and times near the zones' changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Date, Int, String, Time, Timestamp
from rowsieve.types.time_zones import zone
from tests.oracle_values import EPOCH
from tests.zones import NAMES, instants

LOCAL, INSTANT = Timestamp(), Timestamp(utc=True)
MOMENTS = tuple((edge.replace(tzinfo=None) - EPOCH) // (EPOCH.resolution) for edge in instants())
ENGINES = (Semantics.POSTGRES, Semantics.DUCKDB, Semantics.SPARK, Semantics.DATAFUSION)
SEMANTICS: st.SearchStrategy[Semantics] = st.builds(
    lambda own, name: replace(own, time_zone=name) if own.has_session_zone else own,
    st.sampled_from(ENGINES),
    st.sampled_from(NAMES),
)
_UNITS = ("second", "hour", "day", "week", "month", "quarter", "year", "century")
_FIELDS = ("year", "quarter", "month", "day", "week", "doy", "dow", "hour", "minute", "epoch")


_EDGE = (0, -1, 1)  # exactly on a change, and a unit before and after it
_NEAR = (*_EDGE, 1_800_000_000, -1_800_000_000, 3_600_000_000, -3_600_000_000, 5_400_000_000)


@dataclass(frozen=True)
class Change:
    """An engine's rules in a zone, and times around one of the zone's changes since 1970.

    Instants around the change, the local times that they have before and after it, all ascending.
    """

    semantics: Semantics
    instants: tuple[int, ...] = MOMENTS
    local: tuple[int, ...] = MOMENTS

    @property
    def moments(self) -> tuple[int, ...]:
        """All of them."""
        return tuple(sorted({*self.instants, *self.local}))


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """A change of a zone of some engine's session."""
    semantics = draw(SEMANTICS)
    own = zone(semantics.time_zone)
    recent = [place for place, start in enumerate(own.starts) if 0 <= start < 4 * 10**9]
    if not recent:
        return Change(semantics)
    place = draw(st.sampled_from(recent))
    start = int(own.starts[place])
    ends = [start + int(own.offsets[place - 1]), start + int(own.offsets[place])]
    return Change(semantics, _around([start]), _around(ends))


def _around(seconds: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted({each * 1_000_000 + more for each in seconds for more in _NEAR}))


def operands(names: Sequence[str]) -> st.SearchStrategy[ir.Operand]:
    """Times with a date."""
    instant = st.just(ir.Column("tz"))
    column = st.sampled_from([ir.Column("tz"), ir.Column("ts"), ir.Column("day")])
    cast = st.builds(ir.Cast, column, st.sampled_from([LOCAL, INSTANT, Date()]))
    named = st.builds(
        lambda name, inner: ir.Call("timezone", (ir.Literal(name), inner)),
        st.sampled_from(names),
        st.sampled_from([ir.Column("tz"), ir.Column("ts")]),
    )
    moved = st.builds(
        lambda f, *parts: ir.Call(
            f, (ir.Column("tz"), *(ir.Literal(part, Int(64)) for part in parts))
        ),
        st.sampled_from(["add_interval", "shift"]),
        st.sampled_from([0, 0, 1, -13]),
        st.sampled_from([0, 1, -30]),
        st.sampled_from([0, 1, 129_600_000_000, -3_600_000_000]),
    )
    cut = st.builds(
        lambda unit, inner: ir.Call("date_trunc", (ir.Literal(unit), inner)),
        st.one_of(st.sampled_from(("hour", "day")), st.sampled_from(_UNITS)),
        st.one_of(instant, moved, named),
    )
    return st.one_of(instant, cast, named, moved, cut)


def _constants(moments: Sequence[int]) -> st.SearchStrategy[ir.Operand]:
    return st.one_of(
        st.sampled_from(
            [ir.Literal(value, type_) for value in moments for type_ in (LOCAL, INSTANT)]
        ),
        st.sampled_from([ir.Literal(value // 86_400_000_000, Date()) for value in moments]),
        st.sampled_from([ir.Literal(text) for text in _texts(moments)]),
        st.sampled_from([ir.Column("tz"), ir.Column("ts"), ir.Column("day")]),
    )


def _texts(moments: Sequence[int]) -> list[str]:
    return [str(EPOCH + EPOCH.resolution * value) for value in moments]


def conditions(
    moments: Sequence[int] = MOMENTS, names: Sequence[str] = NAMES
) -> st.SearchStrategy[ir.Predicate]:
    """Comparisons of times, of their parts, of their time of day and of their text; lists."""
    op = st.sampled_from(list(ir.ComparisonOp))
    whole = st.builds(ir.Comparison, op, operands(names), _constants(moments))
    part = st.builds(
        lambda op, field, operand, value: ir.Comparison(
            op, ir.Call("extract", (ir.Literal(field), operand)), ir.Literal(value, Int(64))
        ),
        op,
        st.sampled_from(_FIELDS),
        st.sampled_from([ir.Column("tz"), ir.Cast(ir.Column("ts"), INSTANT)]),
        st.sampled_from([0, 1, 2, 3, 4, 10, 11, 23, 30, 44, 2011, 2024, 2050]),
    )
    clock = st.builds(
        lambda op, value: ir.Comparison(
            op, ir.Cast(ir.Column("tz"), Time()), ir.Literal(value, Time())
        ),
        op,
        st.sampled_from([value % 86_400_000_000 for value in moments]),
    )
    text = st.builds(
        lambda op, value: ir.Comparison(
            op, ir.Cast(ir.Column("tz"), String()), ir.Literal(value, String())
        ),
        op,
        st.sampled_from(_texts(moments)),
    )
    found = st.one_of(whole, whole, part, clock, text)
    return st.one_of(found, found, st.builds(ir.Not, found))
