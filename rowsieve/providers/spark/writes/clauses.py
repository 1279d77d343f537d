"""The clauses of a merge, as `merge_spark` takes them: parsed and checked by their form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from rowsieve.errors import InvalidInput


class When(Enum):
    """The rows that a clause applies to."""

    MATCHED = "when_matched"
    NOT_MATCHED = "when_not_matched"
    NOT_MATCHED_BY_SOURCE = "when_not_matched_by_source"


ALLOWED: Final[Mapping[When, tuple[str, ...]]] = {
    When.MATCHED: ("update", "delete"),
    When.NOT_MATCHED: ("insert",),
    When.NOT_MATCHED_BY_SOURCE: ("update", "delete"),
}


@dataclass(frozen=True, slots=True)
class Aliases:
    """The names of the two sides of a merge in its clauses."""

    source: str = "source"
    target: str = "target"


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause; `values` is a value per column, or None for all columns of the source.

    Values and the condition are SQL text, or Columns of a statement that Spark has parsed.
    """

    when: When
    number: int
    action: str
    values: Mapping[str, Any] | None = None
    where: Any = None

    @property
    def name(self) -> str:
        """The place of the clause, for messages."""
        return f"{self.when.value}, clause {self.number}"

    @property
    def is_plain(self) -> bool:
        """True if it writes the row of the source without a condition."""
        return self.values is None and self.where is None and self.action != "delete"


def parse_clauses(when: When, given: Any) -> list[Clause]:
    """Parse one clause or a list of them; InvalidInput says which is wrong, and how it looks."""
    if given is None:
        return []
    each = [given] if isinstance(given, str | Mapping) or not _is_list(given) else list(given)
    return [_clause(when, number, one) for number, one in enumerate(each, 1)]


def _clause(when: When, number: int, given: Any) -> Clause:
    allowed = ALLOWED[when]
    place = f"merge_spark: {when.value}, clause {number}"
    shapes = f"{allowed[0]!r}, or {{{allowed[0]!r}: {{'column': 'SQL'}}, 'where': 'SQL'}}"
    parts = {given: "*"} if isinstance(given, str) else given
    if not isinstance(parts, Mapping):
        raise InvalidInput(f"{place} is text or a dict such as {shapes}, not {given!r}")
    actions = [name for name in parts if name != "where"]
    if len(actions) != 1 or actions[0] not in allowed:
        raise InvalidInput(
            f"{place} needs one of {', '.join(allowed)} and may have 'where', such as {shapes}; "
            f"got {list(parts)}"
        )
    action, where = actions[0], parts.get("where")
    if where is not None and not isinstance(where, str):
        raise InvalidInput(f"{place}: 'where' is SQL text, not {where!r}")
    values = _values(place, when, action, parts[action])
    return Clause(when, number, action, values, where)


def _values(place: str, when: When, action: str, given: Any) -> Mapping[str, str] | None:
    if given is True or given == "*":
        if action == "update" and when is When.NOT_MATCHED_BY_SOURCE:
            raise InvalidInput(
                f"{place}: these rows have no row of the source; give {{'update': {{'column': "
                "'SQL'}}"
            )
        return None
    if action == "delete":
        raise InvalidInput(f"{place}: write 'delete', or {{'delete': '*', 'where': 'SQL'}}")
    is_values = isinstance(given, Mapping) and given
    if not (is_values and all(isinstance(x, str) for pair in given.items() for x in pair)):
        raise InvalidInput(
            f"{place}: {action!r} is '*' or a dict of column names and SQL text, not {given!r}"
        )
    return dict(given)


def _is_list(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, bytes)
