"""The picture of a translation: each condition of the top-level AND translated alone.

The whole translation is not changed by it: the conditions are read and written once more when the
picture is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from rowsieve.bridges.sql import to_sql
from rowsieve.bridges.translation import Exactness, Note, Translation, reason_of
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.pictures.translated import TranslatedCondition, TranslatedTable
from rowsieve.predicate.ir import Predicate, root_conjuncts

MAX_CONDITIONS: Final = 60
Written = Callable[[Predicate], Translation[Any, Any]]


def translation_picture(
    source: str,
    target: str,
    read: Translation[Predicate, Any],
    write: Written,
    whole: Translation[Any, Any],
) -> TranslatedTable:
    """Return the picture of the whole translation; `write` translates a condition alone."""
    conditions = [*_refused(read), *_written(read, write)]
    more = len(conditions) - MAX_CONDITIONS
    return TranslatedTable(
        source,
        target,
        whole.exactness.value,
        tuple(conditions[:MAX_CONDITIONS]),
        "" if whole.expression is None else str(whole.expression),
        "" if whole.residual is None else str(whole.residual),
        (f"and {more:,} more conditions",) if more > 0 else (),
    )


def _refused(read: Translation[Predicate, Any]) -> Iterator[TranslatedCondition]:
    """The conditions that could not be read."""
    for note in read.notes:
        shown = note.shown if isinstance(note, Note) else note
        yield TranslatedCondition(shown, "", Exactness.UNSUPPORTED.value, reason_of(note))


def _written(read: Translation[Predicate, Any], write: Written) -> Iterator[TranslatedCondition]:
    if read.expression is None:
        return
    for number, condition in enumerate(root_conjuncts(read.expression)):
        if number >= MAX_CONDITIONS:  # only counted
            yield TranslatedCondition("", "", Exactness.UNSUPPORTED.value)
            continue
        try:
            alone = write(condition)
        except (UnsupportedOperation, InvalidPredicate) as error:
            exactness, target, reason = Exactness.UNSUPPORTED, "", str(error)
        else:
            exactness = alone.exactness
            target = "" if alone.expression is None else str(alone.expression)
            reason = "; ".join(map(reason_of, alone.notes))
        yield TranslatedCondition(_shown(condition), target, exactness.value, reason)


def _shown(condition: Predicate) -> str:
    try:
        return to_sql(condition)
    except UnsupportedOperation:  # it contains an expression of another engine
        return str(condition)
