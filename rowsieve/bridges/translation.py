"""`Translation`: the result of translating between filter languages, and its exactness.

Soundness: `expression` is TRUE on every row on which the original is, and `residual` must be
checked in addition. Only whole conditions of the top-level AND are omitted, nothing under NOT, OR
or CASE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from rowsieve.arguments import checked
from rowsieve.errors import InvalidPredicate, RowsieveError, UnsupportedOperation
from rowsieve.pictures.translated import TranslatedCondition, TranslatedTable
from rowsieve.predicate.bound import BoundPredicate

E = TypeVar("E")
R = TypeVar("R")


class Exactness(Enum):
    """How the rows of a translated condition relate to those of the original."""

    EXACT = "exact"  # the same rows
    SUPERSET = "superset"  # those rows and possibly others, which the residual excludes
    UNSUPPORTED = "unsupported"  # nothing could be translated: the residual is the original


@dataclass(frozen=True, slots=True)
class Translation(Generic[E, R]):
    """A condition in another language: `expression AND residual` means the original.

    `expression` is None if nothing could be translated. `residual`, in the language of the
    original, is None if the expression is exact. `notes` name each omitted condition, its
    position and the reason.
    """

    expression: E | None
    exactness: Exactness
    residual: R | None = None
    notes: tuple[str, ...] = ()
    bound: tuple[BoundPredicate, ...] = field(default=(), compare=False, repr=False)
    """The conditions of an expression that was read, bound once under the rules of its language."""
    draw: Callable[[Translation[Any, Any]], TranslatedTable] | None = field(
        default=None, compare=False, repr=False
    )
    """Draws this translation with the languages and conditions that it knows of."""

    def picture(self) -> TranslatedTable:
        """Return the translation as a table of its conditions, which a notebook shows."""
        if self.draw is not None:
            return self.draw(self)
        shown = [note for note in self.notes if isinstance(note, Note)]
        unread = Exactness.UNSUPPORTED.value
        return TranslatedTable(
            "condition",
            "translation",
            self.exactness.value,
            tuple(TranslatedCondition(note.shown, "", unread, note.reason) for note in shown),
            "" if self.expression is None else str(self.expression),
            "" if self.residual is None else str(self.residual),
            tuple(note for note in self.notes if not isinstance(note, Note)),
        )

    def _repr_html_(self) -> str:
        return self.picture()._repr_html_()

    @checked
    def exact(self) -> E:
        """Return the expression; `UnsupportedOperation` unless it is exact."""
        if self.expression is None or self.exactness is not Exactness.EXACT:
            causes = [note.cause for note in self.notes if isinstance(note, Note)]
            cause = causes[0] if causes else None
            position = None
            if isinstance(cause, InvalidPredicate | UnsupportedOperation):
                position = cause.position
            raise UnsupportedOperation(
                "this condition cannot be translated whole: " + "; ".join(self.notes),
                position=position,
            ) from cause
        return self.expression


@dataclass(frozen=True, slots=True)
class Row:
    """One construct of another language: its counterpart here, and the exactness each way."""

    foreign: str
    ours: str
    reads: Exactness
    writes: Exactness
    note: str = ""


class Note(str):
    """Text about one omitted condition of the top-level AND, with its parts as attributes."""

    __slots__ = ("cause", "reason", "shown")
    shown: str
    reason: str
    cause: RowsieveError | None

    def at(self, index: int, count: int) -> Note:
        """Return the note with another position of the condition, counted from 0."""
        note = Note(f"condition {index + 1} of {count} ({self.shown}): {self.reason}")
        note.shown, note.reason, note.cause = self.shown, self.reason, self.cause
        return note


def reason_of(note: str) -> str:
    """Return the reason of a note, without the position."""
    return note.reason if isinstance(note, Note) else note


def translated(
    expression: E | None,
    residual: R | None,
    notes: Sequence[str],
    *,
    strict: bool,
    bound: Sequence[BoundPredicate] = (),
) -> Translation[E, R]:
    """Build a translation from expression and residual; with `strict` a residual raises."""
    exactness = (
        Exactness.EXACT
        if residual is None
        else Exactness.UNSUPPORTED
        if expression is None
        else Exactness.SUPERSET
    )
    translation = Translation(expression, exactness, residual, tuple(notes), tuple(bound))
    if strict:
        translation.exact()
    return translation
