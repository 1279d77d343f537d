"""Names in a text for the constants, lists and conditions that it is not to spell.

An engine that hands a condition over as a tree has its constants as values. A constant of any type,
NULL of a type, and a list of a million members stand in the text by a name, and come out of the
reader as they are. So does a condition deep inside another: it is read by itself, so that neither
text nor grammar ever nests deeply. Soundness: no name is one of a column of the schema; a name
stands for a condition only beside AND, OR and NOT, which read a condition by its value alone.
"""

from __future__ import annotations

from collections.abc import Callable

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.predicate.ir import Literal, Predicate, ValueSet
from rowsieve.types.schema import Schema


class StandIns:
    """The constants and lists of one condition, by the names that stand for them."""

    def __init__(self, schema: Schema, dialect: Dialect) -> None:
        self.constants: dict[str, Literal] = {}
        self.lists: dict[str, ValueSet] = {}
        self.of_one_type: list[ValueSet] = []
        self.conditions: dict[str, Predicate] = {}
        self._later: list[tuple[str, Callable[[], str]]] = []
        self._quote = dialect.quote
        self._mark = ":"
        while any(field.name.startswith(self._mark) for field in schema):
            self._mark += ":"

    def constant(self, value: Literal) -> str:
        """The identifier that stands for the constant, with its quotes."""
        name = f"{self._mark}{len(self.constants)}"
        self.constants[name] = value
        return f"{self._quote}{name}{self._quote}"

    def condition(self, spell: Callable[[], str]) -> str:
        """The identifier that stands for a condition; `spell` makes its text when it is due."""
        name = f"{self._mark}condition {len(self._later)}"
        self._later.append((name, spell))
        return f"{self._quote}{name}{self._quote}"

    def may_stand_in(self, text: str) -> bool:
        """Whether a text that was written elsewhere has something like a name of these."""
        return f"{self._mark}condition" in text

    def read_whole(self, text: str, read: Callable[[str], Predicate]) -> Predicate:
        """Read a text, and before it all conditions that stand in it by a name, deepest first."""
        pieces: list[tuple[str, str]] = []
        for name, spell in self._later:  # which grows while texts are made
            pieces.append((name, spell()))
        for name, piece in reversed(pieces):
            self.conditions[name] = read(piece)
        return read(text)

    def members(self, values: ValueSet, *, typed: bool = False) -> str:
        """What follows IN for a list of these members, with its parentheses.

        `typed`: the condition is refused where the value sought has another type than they have.
        """
        if typed:
            self.of_one_type.append(values)
        name = f"{self._mark}list {len(self.lists)}"
        self.lists[name] = values
        return f"({self._quote}{name}{self._quote})"
