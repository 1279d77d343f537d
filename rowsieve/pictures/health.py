"""The health of a table: where its bytes are, how much a read must look at, and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rowsieve.pictures.data_table import code_cell, data_table, scrolled, size_cell
from rowsieve.pictures.markup import Markup, element, join, percent, text
from rowsieve.pictures.outcomes import swatches
from rowsieve.pictures.page import Picture
from rowsieve.shown import size_text


class Share(NamedTuple):
    """Bytes of a kind: the class of its colour, its name, files and bytes, and what it means."""

    kind: str
    name: str
    files: int
    size_bytes: int
    note: str


class Fact(NamedTuple):
    """A number of the table, whether it is "good", "weak" or "bad", and what it means."""

    name: str
    value: str
    state: str
    note: str


class Remedy(NamedTuple):
    """An action that would pay, why, and the statements that do it."""

    action: str
    why: str
    python: str
    shell: str


@dataclass(frozen=True, slots=True, repr=False)
class Health(Picture):
    """The state of one version of a table."""

    table: str
    version: int
    facts: tuple[Fact, ...]
    shares: tuple[Share, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What is shown."""
        return f"Health of {self.table} at version {self.version}"

    @property
    def summary(self) -> str:
        """Whether something is advised, and the facts."""
        numbers = ", ".join(f"{fact.name} {fact.value}" for fact in self.facts)
        advised = ", ".join(remedy.action for remedy in self.remedies)
        return f"{f'advised: {advised}' if advised else 'nothing to do'}; {numbers}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        values = asdict(self)
        for name in ("facts", "shares", "remedies"):
            values[name] = [each._asdict() for each in getattr(self, name)]
        return values

    def body(self, ident: str) -> Markup:
        """Draw the facts, the bytes by kind, and the advice."""
        pieces = [_facts(self.facts)]
        if self.shares:
            pieces += [element("h3", text("Bytes in the store")), _bytes(self.shares, ident)]
        pieces += [element("p", text(note, 400)) for note in self.notes]
        pieces.append(element("h3", text("Advice")))
        if self.remedies:
            pieces.append(_advice(self.remedies))
        else:
            pieces.append(element("p", element("b", text("Nothing to do."), class_="good")))
        return join(pieces)


_STATES = {"good": "good", "weak": "could be better", "bad": "needs care", "": ""}


def _facts(facts: tuple[Fact, ...]) -> Markup:
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", text(fact.name)),
                element(
                    "dd",
                    element("bdi", text(fact.value)),
                    *([text(" "), _state(fact.state)] if fact.state else []),
                ),
                element("dd", element("p", text(fact.note))),
            )
            for fact in facts
        ),
        class_="facts",
    )


def _state(state: str) -> Markup:
    return element("b", text(_STATES[state]), class_=state)


def _bytes(shares: tuple[Share, ...], ident: str) -> Markup:
    total = sum(share.size_bytes for share in shares) or 1
    marks, at = [], 0.0
    for share in shares:
        width = share.size_bytes / total
        if share.size_bytes:
            title = f"{share.name}: {size_text(share.size_bytes)}, {share.files:,} files"
            mark = element(
                "rect",
                element("title", text(title)),
                x=percent(at),
                width=percent(max(width, 0.003)),
                y=2,
                height=22,
                class_=f"mark {share.kind}",
            )
            marks.append(mark)
        at += width
    drawing = element(
        "svg",
        element("title", text("Bytes in the store by kind"), id=f"{ident}-bytes"),
        *marks,
        role="img",
        height=28,
        aria_labelledby=f"{ident}-bytes",
    )
    rows = [(share.name, share.files, size_cell(share.size_bytes), share.note) for share in shares]
    table = data_table("Bytes in the store", ("kind", "files", "size", "what it is"), rows)
    legend = swatches((share.kind, share.name) for share in shares)
    return join((legend, drawing, scrolled("Bytes in the store", table, titled=True)))


def _advice(remedies: tuple[Remedy, ...]) -> Markup:
    rows = [
        (
            remedy.action,
            remedy.why,
            code_cell(remedy.python),
            code_cell(remedy.shell),
        )
        for remedy in remedies
    ]
    table = data_table("Advice", ("do", "because", "in Python", "in a shell"), rows)
    return scrolled("Advice", table, titled=True)
