"""Made-up parts (witnesses) with statistics that lie far apart, to test whether pruning can work.

Each subject gets narrow ranges spread over its type, and the ranges of several subjects are
combined. A range has a single value only if its type has only two: statistics of one value decide
nearly everything, and few parts have them. A subject is all NULL only on request, because NULL
refutes nearly everything too.

Soundness: not required; these statistics describe no data, and no plan uses them.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rowsieve.predicate.literal_values import int_range
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.json_kinds import EVERYTHING, JsonKind
from rowsieve.stats.model import Derived, Subject
from rowsieve.stats.subjects import Described
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.days import DAY_US
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.schema import Schema

ROWS: Final = 1_000  # of each part
MAX_PARTS: Final = 4_096

_DAYS: Final = (-719_162, -25_567, 0, 47_482, 2_932_895)  # the years 1, 1900, 1970, 2100 and 9999
_POWERS: Final = (3, 9, 6, 12, 1, 2, 4, 5, 7, 8, 10, 11, 13, 15, 18)
_TEXTS: Final = (("", "!"), ("\U0010fff0", "\U0010fffd"), ("0", "1"), ("A", "B"), ("a", "b"))
_KINDS: Final = (
    JsonKind.INT,
    JsonKind.FLOAT,
    JsonKind.STRING,
    JsonKind.TRUE,
    JsonKind.FALSE,
    JsonKind.LIST,
    JsonKind.OBJECT,
)


@dataclass(frozen=True, slots=True)
class Known:
    """A subject, and the facts that its statistics have.

    `null`: whether it may be all NULL; `kinds`: the value kinds that a JSON path may have.
    """

    described: Described
    facts: frozenset[str]
    null: bool = False
    kinds: int = EVERYTHING


def witnesses(known: Collection[Known], schema: Schema) -> PartStatistics:
    """Return statistics of up to 4,096 parts with these facts, spread over the subjects' types."""
    samples = {each.described.subject: list(_samples(each)) for each in known}
    places = _combined({subject: len(examples) for subject, examples in samples.items()})
    part_count = len(next(iter(places.values()))) if places else 1
    columns: dict[str, pa.Array] = {
        "data.rows": pa.array(np.full(part_count, ROWS)),
        "deletes.rows": pa.array(np.zeros(part_count, dtype=np.int64)),
    }
    for each in known:
        subject = each.described.subject
        for fact, type_ in each.described.facts:
            if fact in each.facts:
                cells = [sample.get(fact) for sample in samples[subject]]
                values = pa.array(
                    [None if c is None else pa.scalar(c, type_) for c in cells], type_
                )
                columns[statistics_name(subject, fact)] = values.take(pa.array(places[subject]))
    return PartStatistics(PartTable(pa.table(columns)), schema)


def _combined(counts: Mapping[Subject, int]) -> dict[Subject, Any]:
    """Return the sample of each subject per part: all combinations, of fewer samples if needed."""
    if not counts:
        return {}
    varied = [*counts][: int(math.log2(MAX_PARTS))]
    most = max(counts.values())
    while math.prod(min(counts[subject], most) for subject in varied) > MAX_PARTS:
        most -= 1
    shape = [min(counts[subject], most) for subject in varied]
    axes = np.indices(shape).reshape(len(shape), -1)
    places = dict(zip(varied, axes, strict=True))
    for subject in counts:
        if subject not in places:  # varies together with the first subject
            places[subject] = axes[0] % counts[subject]
    return places


def _samples(known: Known) -> Iterator[dict[str, Any]]:
    """Yield samples of the facts of one subject, the most useful first."""
    subject, type_ = known.described.subject, known.described.type
    if isinstance(subject, Derived) and isinstance(type_, Json):
        yield from ({"kinds": int(kind)} for kind in _KINDS if kind & known.kinds)
        if known.null:
            yield {"kinds": int(JsonKind.MISSING)}
        return
    counted = {"null_count": 0, "nan_count": 0, "value_count": ROWS}
    ranges = [*_ranges(type_)]
    yield from ({**counted, "lower": lower, "upper": upper} for lower, upper in ranges)
    if not ranges:
        yield counted
    if known.null:
        yield {**counted, "null_count": ROWS}


def _ranges(type_: LogicalType) -> Iterator[tuple[Any, Any]]:
    """Yield narrow ranges of physical values that lie far apart."""
    match type_:
        case Bool():
            yield from ((False, False), (True, True))
        case Int():
            low, high = int_range(type_)
            yield from _whole_ranges(low, high)
        case Float(bits=bits):
            yield from ((float(low), float(high)) for low, high in _whole_ranges(-(2**63), 2**63))
            most = 1e38 if bits == 32 else 1e300
            yield from ((-2 * most, -most), (most, 2 * most))
        case Decimal(precision=precision, scale=scale):
            most = 10**precision - 1
            context = decimal.Context(prec=38)
            for low, high in _whole_ranges(-most, most, 10**scale):
                lower, upper = (decimal.Decimal(end).scaleb(-scale, context) for end in (low, high))
                yield lower, upper
        case String():
            yield from _TEXTS
        case Binary():
            yield from ((b"", b"\x00"), (b"\xff", b"\xff\xff"), (b"0", b"1"), (b"a", b"b"))
        case Uuid():
            yield from (
                (bytes(15) + b"\x00", bytes(15) + b"\x01"),
                (b"\xff" * 15 + b"\x00", b"\xff" * 16),
            )
        case Date():
            yield from ((day, day + 1) for day in (*_DAYS, -(2**31), 2**31 - 2))
        case Time():
            yield from ((at, at + 1) for at in (0, DAY_US - 2, DAY_US // 2))
        case Timestamp():
            at = [day * DAY_US for day in _DAYS]
            yield from ((start, start + 1) for start in (*at, -(2**63), 2**63 - 2))


def _whole_ranges(low: int, high: int, unit: int = 1) -> Iterator[tuple[int, int]]:
    """Yield ranges at 0, at positive and negative powers of ten, and at the ends of the type."""
    starts = [0, *(sign * 10**power * unit for power in _POWERS for sign in (-1, 1))]
    starts[5:5] = [low, high - 1]
    yield from ((start, start + 1) for start in starts if low <= start < high)
