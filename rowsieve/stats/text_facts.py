"""What the text of a column spells: numbers, and the same text in one case. Taken on request.

Soundness: numbers are claimed only while every text of the part is written in a form that every
engine reads alike: up to 18 digits, perhaps a minus and up to 18 digits after a point. Case is
claimed only while all text is ASCII, whose case no library and no version of Unicode changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.subjects import AS_INT, AS_LOWER, AS_NUMBER, AS_UPPER, derived
from rowsieve.stats.values import ValueCollector, Values
from rowsieve.types.encodings import arrow_type

_INT: Final = r"^-?[0-9]{1,18}$"
_NUMBER: Final = r"^-?[0-9]{1,18}(\.[0-9]{1,18})?$"


class TextCollector:
    """Gathers the facts of one text column of a part; a fact that fails once is given up."""

    def __init__(self, field_id: int) -> None:
        self._facts = [
            _Fact(Derived(field_id, AS_INT), _matches(_INT)),
            _Fact(Derived(field_id, AS_NUMBER), _matches(_NUMBER)),
            _Fact(Derived(field_id, AS_UPPER), _is_ascii, pc.ascii_upper),
            _Fact(Derived(field_id, AS_LOWER), _is_ascii, pc.ascii_lower),
        ]

    def add(self, values: Values) -> None:
        """Account for the column's text in a batch."""
        for fact in self._facts:
            fact.add(values)

    def finish(self) -> Iterator[tuple[Subject, ColumnStatistics]]:
        """The facts that hold of all rows."""
        for fact in self._facts:
            if fact.holds:
                yield fact.subject, fact.values.finish()


class _Fact:
    def __init__(
        self,
        subject: Derived,
        applies: Callable[[Values], bool],
        convert: Callable[[Values], Values] | None = None,
    ) -> None:
        described = derived(subject)
        assert described is not None
        self.subject = subject
        self.holds = True
        self.values = ValueCollector(described.type)
        self._applies = applies
        self._type = arrow_type(described.type)
        self._convert = convert

    def add(self, values: Values) -> None:
        self.holds = self.holds and self._applies(values)
        if self.holds:
            self.values.add(self._convert(values) if self._convert else values.cast(self._type))


def _matches(pattern: str) -> Callable[[Values], bool]:
    def all_match(values: Values) -> bool:
        for sample in (values.slice(0, 1), values):  # most columns fail at once
            if not _all(pc.match_substring_regex(sample, pattern)):
                return False
        return True

    return all_match


def _is_ascii(values: Values) -> bool:
    return _all(pc.string_is_ascii(values))


def _all(truth: pa.Array) -> bool:
    return bool(pc.all(truth, min_count=0).as_py())
