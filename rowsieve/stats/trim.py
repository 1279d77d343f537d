"""Trims a part's statistics to a budget in bytes.

Trimming first drops useless statistics. It then truncates text bounds, except dates and times
written as text, and then drops the largest subjects one by one. Critical columns and the fields
that contain them are never trimmed (trap T33), so a part may exceed its budget with only these.

Soundness: truncation only widens a bound, and dropped statistics are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from rowsieve.stats.bounds import lower_bytes, lower_text, upper_bytes, upper_text
from rowsieve.stats.json_kinds import JsonKind, last_key, path_of_subject
from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.types.logical import Field, List, Map, Struct

SHORTER: Final = (32, 16, 8)
DEFAULT_BYTES: Final = 1_024
DEFAULT_BYTES_PER_1000_ROWS: Final = 16

_COUNT_BYTES = 8
_CRITICAL = re.compile(
    r"err|ts|receivedat|createdat|last_.*|.*timestamp|.*time|.*_at", re.IGNORECASE | re.DOTALL
)
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}.*)?", re.DOTALL)
_KIND_GROUPS = (
    JsonKind.TRUE | JsonKind.FALSE,
    JsonKind.INT | JsonKind.FLOAT,
    JsonKind.STRING,
    JsonKind.LIST,
    JsonKind.OBJECT,
)


@dataclass(frozen=True, slots=True)
class Budget:
    """The bytes that the statistics of a part may take, without the fields `critical`."""

    bytes_per_part: int = DEFAULT_BYTES
    bytes_per_1000_rows: int = DEFAULT_BYTES_PER_1000_ROWS
    critical: frozenset[int] = frozenset()

    def bytes_for(self, row_count: int) -> int:
        """The bytes for a part with `row_count` rows."""
        return self.bytes_per_part + self.bytes_per_1000_rows * row_count // 1000


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The remaining statistics, the number of truncated or dropped subjects, and the size."""

    statistics: dict[Subject, ColumnStatistics]
    count: int
    size_bytes: int


def is_critical_name(name: str) -> bool:
    """Return whether columns and JSON keys of this name are critical: times and errors."""
    return _CRITICAL.fullmatch(name) is not None


def critical_ids(fields: Iterable[Field], named: Collection[int] = ()) -> frozenset[int]:
    """Ids of fields that are critical by name or in `named`, and of all fields that contain one."""
    return frozenset(_critical(fields, frozenset(named)))


def size_bytes(statistics: ColumnStatistics) -> int:
    """The uncompressed size of a subject's facts: 8 bytes per count, and the bounds."""
    counts = [
        statistics.null_count,
        statistics.nan_count,
        statistics.value_count,
        statistics.kinds,
    ]
    size = _COUNT_BYTES * (len(counts) - counts.count(None))
    for bound in (statistics.lower, statistics.upper):
        if bound is not None:
            type_ = bound.type
            is_text = pa.types.is_string(type_) or pa.types.is_binary(type_)
            size += len(bound.as_buffer()) if is_text else -(-int(type_.bit_width) // 8)
    return size


def _none(_subject: Subject) -> bool:
    return False


def trim(
    statistics: Mapping[Subject, ColumnStatistics],
    budget: int,
    critical: Collection[int],
    is_sampled: Callable[[Subject], bool] = _none,
) -> Trimmed:
    """Trim to `budget` bytes; statistics within the budget do not change.

    Those that `is_sampled` selects go first and are not counted, so that they displace no others.
    """
    sizes = dict(zip(statistics, map(size_bytes, statistics.values()), strict=True))
    total = sum(sizes.values())
    if total <= budget:
        return Trimmed(dict(statistics), 0, total)
    for subject in sorted(filter(is_sampled, statistics), key=lambda one: -sizes[one]):
        if total <= budget:
            break
        total -= sizes.pop(subject)
    return _trimmed({subject: statistics[subject] for subject in sizes}, sizes, budget, critical)


def _trimmed(
    statistics: Mapping[Subject, ColumnStatistics],
    sizes: dict[Subject, int],
    budget: int,
    critical: Collection[int],
) -> Trimmed:
    """Trim subjects of these sizes to `budget` bytes."""
    total = sum(sizes.values())
    trimmed = dict(statistics)
    if total <= budget:
        return Trimmed(trimmed, 0, total)
    optional = [subject for subject in trimmed if not _is_critical(subject, critical)]
    for subject in optional:
        if _is_useless(subject, statistics, sizes[subject]):
            del trimmed[subject]
            total -= sizes[subject]
    left = [subject for subject in optional if subject in trimmed]
    texts = [subject for subject in left if _has_texts(trimmed[subject])]
    for limit in SHORTER:
        if total <= budget:
            break
        for subject in texts:
            trimmed[subject] = shortened(trimmed[subject], limit)
            total -= sizes[subject]
            sizes[subject] = size_bytes(trimmed[subject])
            total += sizes[subject]
    places = {subject: place for place, subject in enumerate(trimmed)}
    left.sort(key=lambda subject: (sizes[subject], places[subject]))
    while left and total > budget:  # the largest first; the last one among equal sizes
        dropped = left.pop()
        del trimmed[dropped]
        total -= sizes[dropped]
    changed = sum(
        (after := trimmed.get(subject)) is not before and after != before
        for subject, before in statistics.items()
    )
    return Trimmed(trimmed, changed, total)


def shortened(statistics: ColumnStatistics, limit: int) -> ColumnStatistics:
    """Truncate bounds of text and bytes to `limit` bytes, except dates and times as text."""
    lower, upper = statistics.lower, statistics.upper
    short_lower, short_upper = (
        _cut_bound(lower, limit, upper=False),
        _cut_bound(upper, limit, upper=True),
    )
    return replace(
        statistics,
        lower=short_lower,
        upper=short_upper,
        lower_exact=statistics.lower_exact and short_lower is lower,
        upper_exact=statistics.upper_exact and short_upper is upper,
    )


def _cut_bound(bound: pa.Scalar | None, limit: int, *, upper: bool) -> pa.Scalar | None:
    if bound is None:
        return None
    cut: str | bytes | None
    if pa.types.is_string(bound.type):
        text = bound.as_py()
        if len(text.encode()) <= limit or _ISO.fullmatch(text):
            return bound
        cut = upper_text(text, limit) if upper else lower_text(text, limit)
    elif pa.types.is_binary(bound.type):
        data = bound.as_py()
        if len(data) <= limit:
            return bound
        cut = upper_bytes(data, limit) if upper else lower_bytes(data, limit)
    else:
        return bound
    return None if cut is None else pa.scalar(cut, bound.type)


def _has_texts(statistics: ColumnStatistics) -> bool:
    """Return whether a bound is text or bytes, which can be truncated."""
    bound = statistics.upper if statistics.lower is None else statistics.lower
    return bound is not None and bool(
        pa.types.is_string(bound.type) or pa.types.is_binary(bound.type)
    )


def _is_useless(
    subject: Subject, statistics: Mapping[Subject, ColumnStatistics], size: int
) -> bool:
    """Return whether the subject has no facts, or is one of several kinds at a JSON path."""
    facts = statistics[subject]
    path = path_of_subject(subject) if isinstance(subject, Derived) else None
    if path is not None and path != subject:
        kinds = statistics[path].kinds if path in statistics else None
        if kinds is None or sum(bool(kinds & group) for group in _KIND_GROUPS) != 1:
            return True
    if facts.kinds is not None:
        return bool(facts.kinds & JsonKind.OTHER)
    return size == 0


def _is_critical(subject: Subject, critical: Collection[int]) -> bool:
    if isinstance(subject, int):
        return subject in critical
    key = last_key(subject)
    return subject.field_id in critical or (key is not None and is_critical_name(key))


def _critical(fields: Iterable[Field], named: frozenset[int]) -> Iterator[int]:
    for field in fields:
        inside = list(_critical(_members(field), named))
        yield from inside
        if inside or field.id in named or is_critical_name(field.name):
            yield field.id


def _members(field: Field) -> tuple[Field, ...]:
    match field.type:
        case Struct(fields=fields):
            return fields
        case List(element=element):
            return (element,)
        case Map(key=key, value=value):
            return (key, value)
        case _:
            return ()
