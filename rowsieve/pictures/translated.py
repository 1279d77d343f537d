"""A translation as a table: each condition in both languages, how exact it is, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Final

from rowsieve.pictures.data_table import Raw, data_table, scrolled
from rowsieve.pictures.markup import Markup, element, join, text
from rowsieve.pictures.page import Picture

_SHOWN: Final = {
    "exact": ("good", "exact"),
    "superset": ("weak", "weaker: keeps more rows"),
    "unsupported": ("bad", "refused"),
}
_MAX_TEXT: Final = 1_000


@dataclass(frozen=True, slots=True)
class TranslatedCondition:
    """A condition of the top-level AND: its two texts, "exact", "superset" or "unsupported"."""

    source: str
    target: str
    exactness: str
    reason: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class TranslatedTable(Picture):
    """A translation from one language to another."""

    source: str
    target: str
    exactness: str
    conditions: tuple[TranslatedCondition, ...]
    expression: str = ""
    residual: str = ""
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is shown."""
        return f"Translation from {self.source} to {self.target}"

    @property
    def summary(self) -> str:
        """How exact it is, and the conditions by exactness."""
        counts = Counter(each.exactness for each in self.conditions)
        shown = ", ".join(
            f"{counts[kind]:,} {words}" for kind, (_, words) in _SHOWN.items() if counts[kind]
        )
        return f"{_SHOWN[self.exactness][1]}; conditions: {shown or 'none'}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    def body(self, ident: str) -> Markup:
        """Draw the conditions, then the whole result and what is left to check."""
        del ident
        rows = [
            (
                Raw(_code(each.source)),
                Raw(_code(each.target)),
                Raw(_state(each.exactness)),
                each.reason,
            )
            for each in self.conditions
        ]
        table = data_table("Conditions", (self.source, self.target, "rows kept", "reason"), rows)
        pieces = [scrolled("Conditions of the translation", table)]
        for heading, shown in (
            ("The whole expression", self.expression),
            ("To check on the rows besides (residual)", self.residual),
        ):
            if shown:
                pieces += [element("h3", text(heading)), element("p", _code(shown))]
        pieces += [element("p", text(note, 600)) for note in self.notes]
        return join(pieces)


def _code(shown: str) -> Markup:
    return element("code", element("bdi", text(shown, _MAX_TEXT)))


def _state(exactness: str) -> Markup:
    kind, words = _SHOWN[exactness]
    return element("b", text(words), class_=kind)
