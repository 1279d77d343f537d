"""An axis over values of any type: where a value stands, and the values to write below.

Numbers and times stand to scale. Other values stand in their order, at equal distances, and the
axis says so.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias

from rowsieve.pictures.markup import Markup, element, join, percent, text

Place: TypeAlias = Callable[[Any], float]
TICKS: Final = 6
_RANKS: Final = 4
_DAY_S: Final = 86_400
_LABEL: Final = 18  # characters below the axis
_STEPS_S: Final = (
    *(1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, _DAY_S, 7 * _DAY_S),
    *(30 * _DAY_S, 91 * _DAY_S, 365 * _DAY_S),
)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: `place` gives a share between 0 and 1; ticks are shares with labels."""

    place: Place
    ticks: tuple[tuple[float, str], ...]
    note: str = ""


def axis_of(values: Iterable[Any]) -> Axis:
    """Return the axis over these values; None, NaN and infinities have no place of their own."""
    known = [value for value in values if value is not None]
    numbers = [_number(value) for value in known]
    if known and all(number is not None for number in numbers):
        finite = [number for number in numbers if number is not None and math.isfinite(number)]
        if finite:
            is_time = all(isinstance(value, date | time | timedelta) for value in known)
            return _linear(min(finite), max(finite), known[0] if is_time else None)
    return _ordered(known)


def drawn(axis: Axis, top: float, height: float) -> Markup:
    """Draw the ticks of an axis over a drawing of this height; labels stand below it."""
    marks = []
    last = len(axis.ticks) - 1
    for number, (share, label) in enumerate(axis.ticks):
        at = percent(share)
        anchor = "start" if share < 0.08 else "end" if share > 0.92 else "middle"
        kind = "wide" if 0 < number < last and number % 2 else None
        marks.append(
            element(
                "g",
                element("line", x1=at, x2=at, y1=top, y2=top + height, class_="rule"),
                element("text", text(label, _LABEL), x=at, y=top + height + 14, text_anchor=anchor),
                class_=kind,
            )
        )
    return join(marks)


def _number(value: Any) -> float | None:
    """The value on a scale; times in seconds; None if it has none."""
    try:
        match value:
            case bool():
                return None
            case int() | float() | Decimal():
                return float(value)
            case datetime():
                return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
            case date():
                return float((value - date(1970, 1, 1)).days * _DAY_S)
            case time():
                return (
                    value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
                )
            case timedelta():
                return value.total_seconds()
            case _:
                return None
    except (OverflowError, ValueError):
        return None


def _linear(low: float, high: float, sample: Any) -> Axis:
    width = high - low
    if not math.isfinite(width):
        width = 0.0

    def place(value: Any) -> float:
        number = _number(value)
        if number is None or math.isnan(number):
            return 1.0  # NaN stands after all numbers
        if not width:
            return 0.5 if number == low else float(number > low)
        return min(max((number - low) / width, 0.0), 1.0)

    if not width:
        return Axis(place, ((0.5, _label(low, sample, 1.0)),))
    step = _time_step(width / TICKS) if sample is not None else _step(width / TICKS)
    first = math.ceil(low / step) * step
    count = min(int((high - first) / step) + 1, 3 * TICKS)
    ticks = [first + i * step for i in range(count)]
    if not ticks:
        ticks = [low, high]
    labels = ((tick, _label(tick, sample, step)) for tick in ticks)
    return Axis(place, tuple(((tick - low) / width, label) for tick, label in labels))


def _step(width: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(width)) if width > 0 else 1.0
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width * 0.999)


def _time_step(width_s: float) -> float:
    return next((float(step) for step in _STEPS_S if step >= width_s), _step(width_s))


def _label(number: float, sample: Any, step: float) -> str:
    if sample is None:
        return f"{number:,.0f}" if step >= 1 and abs(number) < 1e12 else f"{number:.6g}"
    if isinstance(sample, time | timedelta):
        return str(timedelta(seconds=number))
    try:
        moment = datetime.fromtimestamp(number, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{number:.6g} s"
    return f"{moment:%Y-%m-%d}" if step >= _DAY_S else f"{moment:%m-%d %H:%M}"


def _ordered(values: Sequence[Any]) -> Axis:
    """Each different value at its rank; text in the order of its characters."""
    try:
        ranks = sorted(set(values))
        key: Callable[[Any], Any] = _same
    except TypeError:  # values of several types, or that cannot be compared
        key = str
        ranks = sorted({str(value) for value in values})
    if not ranks:
        return Axis(lambda _: 0.5, ())
    last = len(ranks) - 1

    def place(value: Any) -> float:
        return min(bisect_left(ranks, key(value)) / last, 1.0) if last else 0.5

    chosen = sorted({round(i * last / _RANKS) for i in range(_RANKS + 1)})
    ticks = tuple((i / last if last else 0.5, str(ranks[i])) for i in chosen)
    return Axis(place, ticks, "in order, not to scale")


def _same(value: Any) -> Any:
    return value
