"""The conditions that a transaction has read: what its commit has to prove again.

A condition is logged when a read of the transaction's version is planned (`Snapshot.on_read`), by
whichever way it comes: scans, counts, engines, changes by condition, keys that are looked up. So it
is as good as pruning: a row for which it is neither TRUE nor an error cannot change what was read.

Soundness (invariant 41): nothing is forgotten, not by a rollback to a savepoint either, because the
caller may have used it. Of very many conditions one remains, that all rows were read.
"""

from __future__ import annotations

from typing import Final

from rowsieve.changes.change import Question
from rowsieve.locks import ForkSafeLock
from rowsieve.predicate.ir import FALSE, TRUE, Now, Predicate, walk
from rowsieve.predicate.limits import check_limits
from rowsieve.predicate.semantics import Semantics

MAX_CONDITIONS: Final = 4096


class ConditionLog:
    """Conditions in the order of their first read, each once. Thread-safe: engines plan reads."""

    def __init__(self) -> None:
        self._questions: dict[tuple[Predicate, Semantics, int | None], Question] = {}
        self._lock = ForkSafeLock()
        self.is_open = True

    def add(self, predicate: Predicate, semantics: Semantics, now_us: int) -> None:
        """Log a condition; a read after the transaction has ended cannot change what it did."""
        if not self.is_open or predicate == FALSE:
            return
        check_limits(predicate)  # hashing fails for a tree that is too deep
        reads_clock = any(isinstance(node, Now) for node in walk(predicate))
        key = (predicate, semantics, now_us if reads_clock else None)
        with self._lock:
            self._questions.setdefault(key, Question(predicate, semantics, now_us))
            if len(self._questions) > MAX_CONDITIONS:
                everything = Question(TRUE, Semantics.SQL, 0)
                self._questions = {(TRUE, Semantics.SQL, None): everything}

    def questions(self) -> tuple[Question, ...]:
        """The conditions so far; only the one that matches all rows, if it is there."""
        with self._lock:
            questions = tuple(self._questions.values())
        return tuple(each for each in questions if each.predicate == TRUE)[:1] or questions
