"""Bar: the share of parts that we skip, among those that any sound analysis could skip.

The columns have so few values that we can list all rows that a part's statistics allow: every value
between its bounds, and NULL where it may occur. A part can be skipped if the predicate is neither
TRUE nor fails on any of these rows. For text and times, we list only the values around every bound
and constant. Skipping a part that has a matching row would be unsound and is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.bars import tight_predicates as drawn
from benchmarks.bars.sizes import Sizes
from benchmarks.result import Bar, WrongAnswer
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.ir import BoundColumn, Predicate
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Bool, Date, Field, Float, Int, String, Timestamp
from rowsieve.types.schema import Schema

LEAST_SHARE = 0.95
Masks = npt.NDArray[np.bool_]

SCHEMA = Schema(
    0,
    (
        Field(1, "x", Int(64)),
        Field(2, "y", Int(64)),
        Field(3, "f", Float(64)),
        Field(4, "b", Bool()),
        Field(5, "s", String()),
        Field(6, "day", Date()),
        Field(7, "at", Timestamp()),
    ),
)


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of a column in order, and the positions of possible bounds among them."""

    values: pa.Array
    ends: Sequence[int]

    @property
    def ranges(self) -> list[tuple[int, int] | None]:
        """Ranges of places, both ends included; None for a part whose rows are all NULL."""
        pairs = itertools.combinations_with_replacement(self.ends, 2)
        return [*pairs, None]


def _domains() -> Mapping[str, Domain]:
    whole = pa.array(range(-3, 4), pa.int64())
    halves = np.arange(-20, 21) / 8
    letters = ["\0", "A", "B", "a", "b", "c", "\U0010ffff"]
    texts = sorted(
        {"".join(each) for size in range(4) for each in itertools.product(letters, repeat=size)},
        key=str.encode,
    )
    wanted = [texts.index(text) for text in drawn.TEXTS]
    days = range(drawn.FIRST_DAY, drawn.FIRST_DAY + drawn.DAYS)
    moments = [day * drawn.DAY_US + clock for day in days for clock in _CLOCKS]
    some_days = [0, 1, 2, 3, 4, 30, 33, 34, 50, 62, 63, 65]
    some_moments = [0, 3, 5, 7, 9, 12, 13, 100, 131, 134, 200, 250, 251, 252, 263]
    return {
        "x": Domain(whole, range(7)),
        "y": Domain(whole, range(7)),
        "f": Domain(pa.array(halves), [0, 4, 8, 12, 16, 19, 20, 21, 24, 28, 32, 36, 40]),
        "b": Domain(pa.array([False, True]), range(2)),
        "s": Domain(pa.array(texts), sorted(wanted)),
        "day": Domain(pa.array(list(days), pa.int32()).view(pa.date32()), some_days),
        "at": Domain(pa.array(moments).view(pa.timestamp("us")), some_moments),
    }


_CLOCKS = (0, 1, drawn.DAY_US // 2, drawn.DAY_US - 1)
DOMAINS = _domains()


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts over one or two columns: every combination of their ranges."""

    known: Mapping[str, AbstractColumn]
    part_count: int

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """The statistics of a column."""
        return self.known.get(column.name)


@dataclass(slots=True)
class Count:
    """Parts that could be skipped and those that are."""

    could: int = 0
    are: int = 0

    @property
    def share(self) -> float:
        """The skipped share of the parts that could be skipped."""
        return self.are / self.could if self.could else 1.0


def measure(sizes: Sizes, _: Path) -> Bar:
    """The share over all kinds of predicates, and the kinds below the bar."""
    counts = counted(sizes.tight_predicates)
    total = Count(sum(c.could for c in counts.values()), sum(c.are for c in counts.values()))
    shown = ", ".join(f"{kind} {count.share:.1%}" for kind, count in counts.items())
    return Bar(
        name="tightness",
        promise=f"at least {LEAST_SHARE:.0%} of the parts that any sound analysis could skip, "
        f"{sizes.tight_predicates} predicates of {len(counts)} kinds",
        found=f"{total.share:.2%} of {total.could:,}: {shown}",
        met=total.share >= LEAST_SHARE,
        cases=[],
    )


def counted(each: int) -> dict[str, Count]:
    """Count skipped parts for this many predicates of each kind."""
    counts = {kind: Count() for kind in drawn.KINDS}
    for kind, count in counts.items():
        bound = (bound_as_planned(drawn.drawn(kind, seed)) for seed in itertools.count())
        for predicate in itertools.islice((one for one in bound if one.columns), each):
            could, are = judged(predicate)
            count.could += int(could.sum())
            count.are += int((could & are).sum())
    return counts


def bound_as_planned(predicate: Predicate) -> BoundPredicate:
    """The predicate as a scan binds it."""
    return bind(normalize(predicate, Semantics.SQL), SCHEMA, Semantics.SQL)


def judged(predicate: BoundPredicate) -> tuple[Masks, Masks]:
    """(n,) bool: the parts that could be skipped, and those that are."""
    names = [column.name for column in predicate.columns]
    if not 1 <= len(names) <= 2:
        raise ValueError(f"{len(names)} columns cannot be listed")
    could = ~_alive(predicate, names)
    are = interpret(predicate, parts_over(names)) == Verdict.NONE
    if (are & ~could).any():
        part = int(np.argmax(are & ~could))
        raise WrongAnswer(f"{predicate.root} skips part {part} though a row of it matches")
    return could.reshape(-1), are


def parts_over(names: Sequence[str]) -> Parts:
    """Every part over these columns."""
    options = [list(_options(name)) for name in names]
    parts = list(itertools.product(*options))
    known = {}
    for place, name in enumerate(names):
        own = [part[place] for part in parts]
        values, storage = DOMAINS[name].values, arrow_type(SCHEMA.field(name).type)
        ends = []
        for side in (0, 1):
            places = pa.array([None if each is None else each[side] for each, _ in own], pa.int64())
            ends.append(values.take(places).cast(storage))
        empty = np.array([each is None for each, _ in own])
        null = np.array([null for _, null in own])
        known[name] = AbstractColumn(ends[0], ends[1], empty, null, np.zeros(len(own), np.bool_))
    return Parts(known, len(parts))


def _options(name: str) -> Iterator[tuple[tuple[int, int] | None, bool]]:
    """Each range with and without NULLs; and only NULLs."""
    for found in DOMAINS[name].ranges:
        if found is not None:
            yield found, False
        yield found, True


def _alive(predicate: BoundPredicate, names: Sequence[str]) -> Masks:
    """Parts that allow a row on which the predicate is TRUE or fails."""
    shape = [len(DOMAINS[name].values) + 1 for name in names]
    places = np.indices(shape).reshape(len(names), -1)
    columns: dict[str, Any] = {}
    for own, name in zip(places, names, strict=True):
        values = DOMAINS[name].values
        taken = pa.array(own, mask=own == len(values))
        columns[name] = values.take(taken)
    outcome = evaluate(predicate, pa.record_batch(columns))
    hits = (outcome.true | outcome.failed).reshape(shape).astype(np.float32)
    allowed = [_allowed(name) for name in names]
    reached = allowed[0] @ hits
    if len(names) > 1:
        reached = reached @ allowed[1].T
    return np.asarray(reached > 0).reshape(-1)


def _allowed(name: str) -> npt.NDArray[np.float32]:
    """(options, values + 1): which values a part may hold, NULL being the last."""
    options = list(_options(name))
    found = np.zeros((len(options), len(DOMAINS[name].values) + 1), np.float32)
    for row, (ends, null) in enumerate(options):
        if ends is not None:
            found[row, ends[0] : ends[1] + 1] = 1
        found[row, -1] = null
    return found
