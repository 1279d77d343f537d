"""Collects statistics of text as numbers, and of text in upper and lower case.

A table property requests them. Statistics of numbers are also collected if a sample of the text has
only numbers.

Soundness: statistics of numbers exist only if every text of the part has a form that every engine
parses in the same way: up to 18 digits, optionally a minus sign and up to 18 digits after a point.
Statistics of case exist only if all text is ASCII, because case conversion of other text depends on
the library and its version of Unicode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.subjects import AS_INT, AS_LOWER, AS_NUMBER, AS_UPPER, derived
from rowsieve.stats.values import ValueCollector, Values
from rowsieve.types.encodings import arrow_type

_NUMBER: Final = r"^-?[0-9]{1,18}(\.[0-9]{1,18})?$"
_MAX_DIGITS: Final = 18
_SAMPLE: Final = 1_024
_SAMPLE_ROWS: Final = 64  # the first texts of a part
_LONGEST: Final = 32  # bytes on average; longer text is not tried as numbers


class TextCollector:
    """Collects the facts of one text column of a part; drops a fact once one text violates it.

    With `cases`, those of text in one case, too.
    """

    def __init__(self, field_id: int, *, cases: bool = True) -> None:
        self._ints = _Fact(Derived(field_id, AS_INT))
        self._numbers = _Fact(Derived(field_id, AS_NUMBER))
        self._cases: list[tuple[_Fact, Callable[[Values], Values]]] = []
        if cases:
            self._cases = [
                (_Fact(Derived(field_id, AS_UPPER)), pc.ascii_upper),
                (_Fact(Derived(field_id, AS_LOWER)), pc.ascii_lower),
            ]

    def add(self, values: Values) -> None:
        """Account for the column's text in a batch."""
        for chunk in values.chunks if isinstance(values, pa.ChunkedArray) else [values]:
            self._add_numbers(chunk)
            self._add_cases(chunk)

    def finish(self) -> Iterator[tuple[Subject, ColumnStatistics]]:
        """The facts that hold for all rows."""
        if self._ints.holds:
            yield self._ints.subject, self._ints.values.finish()
            self._widen_numbers()
        for fact in (self._numbers, *(fact for fact, _ in self._cases)):
            if fact.holds:
                yield fact.subject, fact.values.finish()

    def _add_numbers(self, texts: pa.Array) -> None:
        if not self._numbers.holds:
            return
        if self._ints.holds and are_whole(texts):
            self._ints.values.add(texts.cast(pa.int64()))
            return
        if self._ints.holds:
            self._widen_numbers()
        self._ints.holds = False
        self._numbers.holds = _all_spell_numbers(texts)
        if self._numbers.holds:
            self._numbers.values.add(texts.cast(self._numbers.type))

    def _widen_numbers(self) -> None:
        """Add the statistics of integers to those of numbers, which were not collected so far."""
        known = self._ints.values.finish()
        if known.lower is not None:
            bounds = pa.array([known.lower, known.upper], pa.int64())
            self._numbers.values.add_bounds(bounds.cast(self._numbers.type))
        self._numbers.values.add_nulls(known.null_count or 0)

    def _add_cases(self, texts: pa.Array) -> None:
        if not self._cases or not all(fact.holds for fact, _ in self._cases):
            return
        is_ascii = _all(pc.string_is_ascii(texts))
        distinct = pc.unique(texts) if _repeats(texts) else texts
        for fact, convert in self._cases:
            fact.holds = is_ascii
            if is_ascii:
                fact.add_bounds(convert(distinct), texts)


class SampledTextCollector:
    """Collects statistics of numbers if the first texts of a part are numbers and short.

    The sample only selects what to collect; the statistics cover every row. One fact is enough:
    `as_int` implies `as_number`. Case is not tried, because every table with codes would pay for
    it: an upsert of five columns takes 7% more CPU.
    """

    def __init__(self, field_id: int) -> None:
        self._field_id = field_id
        self._facts: TextCollector | None = None
        self._nulls = 0  # before the first text
        self._is_refused = False  # by the sample

    def add(self, values: Values) -> None:
        """Account for the column's text in a batch."""
        if self._is_refused:
            return
        if self._facts is None:
            if values.null_count == len(values):
                self._nulls += len(values)
                return
            sample = values.slice(0, _SAMPLE_ROWS).drop_null()
            length = pc.sum(pc.binary_length(sample)).as_py()  # None without texts
            is_short = length is not None and length <= _LONGEST * len(sample)
            if not (is_short and _all(pc.match_substring_regex(sample, _NUMBER))):
                self._is_refused = True
                return
            self._facts = TextCollector(self._field_id, cases=False)
            self._facts.add(pa.nulls(self._nulls, pa.string()))
        self._facts.add(values)

    def finish(self) -> Iterator[tuple[Subject, ColumnStatistics]]:
        """The fact that holds for all rows; empty if none does."""
        if self._facts is not None:
            yield from islice(self._facts.finish(), 1)


class _Fact:
    def __init__(self, subject: Derived) -> None:
        described = derived(subject)
        assert described is not None
        self.subject = subject
        self.holds = True
        self.type = arrow_type(described.type)
        self.values = ValueCollector(described.type)

    def add_bounds(self, values: pa.Array, counted: pa.Array) -> None:
        """Widen the bounds by `values`, and count the NULLs of `counted`."""
        self.values.add_bounds(values.cast(self.type))
        self.values.add_nulls(int(counted.null_count))


def are_whole(texts: pa.Array) -> bool:
    """Return whether every text is up to 18 digits, optionally after a minus; uses no regex."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    if texts.null_count or not len(texts):
        return not len(texts) or bool(are_whole(texts.drop_null()))
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    lengths = np.diff(offsets)
    if lengths.min() < 1 or lengths.max() > _MAX_DIGITS + 1:
        return False
    negative = data[offsets[:-1] - offsets[0]] == ord("-")
    digits = lengths - negative
    if digits.min() < 1 or digits.max() > _MAX_DIGITS:
        return False
    others = (data < ord("0")) | (data > ord("9"))
    return int(others.sum()) == int(negative.sum())


def _all_spell_numbers(texts: pa.Array) -> bool:
    """Return whether every text is a number; the first text alone rejects most columns."""
    return all(_all(pc.match_substring_regex(some, _NUMBER)) for some in (texts.slice(0, 1), texts))


def _repeats(texts: pa.Array) -> bool:
    """Return whether texts repeat so often that finding the distinct ones first is faster."""
    if len(texts) < 4 * _SAMPLE:
        return False
    return len(pc.unique(texts.slice(0, _SAMPLE))) < _SAMPLE // 4


def _all(truth: pa.Array) -> bool:
    return bool(pc.all(truth, min_count=0).as_py())
