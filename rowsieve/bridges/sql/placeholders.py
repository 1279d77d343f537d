"""Names in a text that stand for constants, lists and conditions.

An engine that passes a condition as a tree has its constants as values. A constant of any type, a
typed NULL, and a list of a million members are names in the text, and the reader replaces the names
by the values. So is a condition deep inside another: it is read separately, so neither text nor
grammar nests deeply.

Soundness: no name is a column of the schema; a name stands for a condition only as an operand of
AND, OR and NOT, which depend on its value alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rowsieve.bridges.base.depth import Depth
from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.predicate.ir import Literal, Predicate, ValueSet
from rowsieve.types.schema import Schema

_DEEP: Final = 12  # levels of text; deeper conditions are replaced by names


class StandIns:
    """The constants and lists of one condition, by name."""

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
        """Return a quoted identifier for the constant."""
        name = f"{self._mark}{len(self.constants)}"
        self.constants[name] = value
        return f"{self._quote}{name}{self._quote}"

    def condition(self, spell: Callable[[], str]) -> str:
        """Return an identifier for a condition; `spell` makes its text later."""
        name = f"{self._mark}condition {len(self._later)}"
        self._later.append((name, spell))
        return f"{self._quote}{name}{self._quote}"

    def may_stand_in(self, text: str) -> bool:
        """Whether a text from elsewhere contains one of these names."""
        return f"{self._mark}condition" in text

    def read_whole(self, text: str, read: Callable[[str], Predicate]) -> Predicate:
        """Read a text, after all conditions that have names in it, deepest first."""
        pieces: list[tuple[str, str]] = []
        for name, spell in self._later:  # grows while texts are made
            pieces.append((name, spell()))
        for name, piece in reversed(pieces):
            self.conditions[name] = read(piece)
        return read(text)

    def members(self, values: ValueSet, *, typed: bool = False) -> str:
        """Return the text after IN for a list of these members, with its parentheses.

        `typed`: reading raises if the operand's type differs from that of the members.
        """
        if typed:
            self.of_one_type.append(values)
        name = f"{self._mark}list {len(self.lists)}"
        self.lists[name] = values
        return f"({self._quote}{name}{self._quote})"


class TextDepth(Depth):
    """The level of a walk that formats an expression as text, with names for deep conditions."""

    def __init__(self, stand_ins: StandIns) -> None:
        super().__init__()
        self._stand_ins = stand_ins
        self._start = 0  # the level at which the text begins

    def named(self, spell: Callable[[], str]) -> str | None:
        """Return a name for a term of AND, OR or NOT if the text nests too deeply; else None."""
        level = self.level
        if level - self._start < _DEEP:
            return None

        def later() -> str:
            self._start = self.level = level
            return spell()

        return self._stand_ins.condition(later)
