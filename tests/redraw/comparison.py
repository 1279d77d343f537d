"""An answer beside the recorded one: the same, more than there was, or something lost."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import numpy as np

from rowsieve.predicate.interpret import Verdict
from tests.redraw.answers import PARTS, Answer, Judged

_RANK: Mapping[str, int] = {"exact": 2, "superset": 1}


class Finding(Enum):
    """How an answer relates to the recorded one. The last three are failures."""

    SAME = "the same"
    MORE = "newly supported"
    REWORDED = "other words or another tree, the same rows"
    CHANGED = "other rows, or another refusal"
    LOST = "less is supported"
    WRONG = "newly supported or in other words, with the wrong rows"


FAILURES = frozenset({Finding.CHANGED, Finding.LOST, Finding.WRONG})


def compared(old: Answer, now: Judged) -> Finding:
    """What became of an input."""
    new = now.answer
    if new == old:
        return Finding.SAME
    if "decided" in (new.said, old.said):
        return _decided(old, now)
    found = _supported(old, new)
    new_words = found in (Finding.MORE, Finding.REWORDED)
    return Finding.WRONG if new_words and not is_right(now) else found


def _supported(old: Answer, new: Answer) -> Finding:
    """Compare exactness, then the conditions left out, then the way back, then the rows."""
    if not _RANK.get(old.said) and not _RANK.get(new.said):
        return Finding.SAME if old.said == new.said else Finding.CHANGED  # another refusal
    before, after = _support(old), _support(new)
    if after != before:
        return Finding.MORE if after > before else Finding.LOST
    # Beside a residual, which conditions are said decides on the rows: they must not be too few.
    return Finding.REWORDED if new.rows == old.rows or new.left else Finding.CHANGED


def _support(answer: Answer) -> tuple[int, int, int]:
    """How much is supported: more is greater."""
    return _RANK.get(answer.said, 0), -answer.left, _RANK.get(answer.read, 0)


def is_right(now: Judged) -> bool:
    """Whether what is read back keeps the rows that were asked for, and if exact, no others."""
    if now.wanted is None or now.found is None:
        return True
    asked = ~(now.wanted.failed | now.found.failed)
    missed, gained = now.wanted.true & ~now.found.true, now.found.true & ~now.wanted.true
    exact = now.answer.said == now.answer.read == "exact"
    return not (missed & asked).any() and not (exact and (gained & asked).any())


def _decided(old: Answer, now: Judged) -> Finding:
    """Sharper verdicts are allowed if the rows bear them out; the rows may not change."""
    new = now.answer
    if old.said != "decided":
        return Finding.MORE if new.said == "decided" else Finding.CHANGED
    if new.said != "decided" or new.rows != old.rows:
        return Finding.LOST if new.said != "decided" else Finding.CHANGED
    some = str(int(Verdict.SOME))
    pairs = list(zip(old.words, new.words, strict=True))
    if any(a not in (b, some) for a, b in pairs):
        return Finding.LOST if all(b in (a, some) for a, b in pairs) else Finding.CHANGED
    return Finding.MORE if _bears_out(now) else Finding.WRONG


def _bears_out(now: Judged) -> bool:
    if now.found is None:
        return True
    for verdict, true, failed in zip(
        now.answer.words,
        np.split(now.found.true, PARTS),
        np.split(now.found.failed, PARTS),
        strict=True,
    ):
        if int(verdict) == Verdict.NONE and (true.any() or failed.any()):
            return False
        if int(verdict) == Verdict.ALL and not true.all():
            return False
    return True
