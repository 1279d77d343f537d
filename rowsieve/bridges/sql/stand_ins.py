"""Names in a text for the constants and lists that it is not to spell.

An engine that hands a condition over as a tree has its constants as values. A constant of any type,
NULL of a type, and a list of a million members stand in the text by a name, and come out of the
reader as they are. Soundness: no name is one of a column of the schema.
"""

from __future__ import annotations

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.predicate.ir import Literal, ValueSet
from rowsieve.types.schema import Schema


class StandIns:
    """The constants and lists of one condition, by the names that stand for them."""

    def __init__(self, schema: Schema, dialect: Dialect) -> None:
        self.constants: dict[str, Literal] = {}
        self.lists: dict[str, ValueSet] = {}
        self.of_one_type: list[ValueSet] = []
        self._quote = dialect.quote
        self._mark = ":"
        while any(field.name.startswith(self._mark) for field in schema):
            self._mark += ":"

    def constant(self, value: Literal) -> str:
        """The identifier that stands for the constant, with its quotes."""
        name = f"{self._mark}{len(self.constants)}"
        self.constants[name] = value
        return f"{self._quote}{name}{self._quote}"

    def members(self, values: ValueSet, *, typed: bool = False) -> str:
        """What follows IN for a list of these members, with its parentheses.

        `typed`: the condition is refused where the value sought has another type than they have.
        """
        if typed:
            self.of_one_type.append(values)
        name = f"{self._mark}list {len(self.lists)}"
        self.lists[name] = values
        return f"({self._quote}{name}{self._quote})"
