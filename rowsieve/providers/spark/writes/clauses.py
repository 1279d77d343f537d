"""The clauses of a merge, as `merge_spark` takes them: parsed and checked by their form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rowsieve.errors import InvalidInput
from rowsieve.statements.merge_statement import ACTIONS, Action, MergeClause, When


@dataclass(frozen=True, slots=True)
class Aliases:
    """The names of the two sides of a merge in its clauses."""

    source: str = "source"
    target: str = "target"


def parse_clauses(when: When, clauses: Any) -> list[MergeClause]:
    """Parse one clause or a list of them; InvalidInput says which is wrong, and how it looks."""
    if clauses is None:
        return []
    each = (
        [clauses] if isinstance(clauses, str | Mapping) or not _is_list(clauses) else list(clauses)
    )
    return [_clause(when, number, one) for number, one in enumerate(each, 1)]


def _clause(when: When, number: int, clause: Any) -> MergeClause:
    allowed = [action.value for action in ACTIONS[when]]
    place = f"merge_spark: {when.value}, clause {number}"
    shapes = f"{allowed[0]!r}, or {{{allowed[0]!r}: {{'column': 'SQL'}}, 'where': 'SQL'}}"
    parts = {clause: "*"} if isinstance(clause, str) else clause
    if not isinstance(parts, Mapping):
        raise InvalidInput(f"{place} is text or a dict such as {shapes}, not {clause!r}")
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
    return MergeClause(when, number, Action(action), values, where)


def _values(place: str, when: When, action: str, values: Any) -> Mapping[str, str] | None:
    if values is True or values == "*":
        if action == "update" and when is When.NOT_MATCHED_BY_SOURCE:
            raise InvalidInput(
                f"{place}: these rows have no row of the source; give {{'update': {{'column': "
                "'SQL'}}"
            )
        return None
    if action == "delete":
        raise InvalidInput(f"{place}: write 'delete', or {{'delete': '*', 'where': 'SQL'}}")
    is_values = isinstance(values, Mapping) and values
    if not (is_values and all(isinstance(x, str) for pair in values.items() for x in pair)):
        raise InvalidInput(
            f"{place}: {action!r} is '*' or a dict of column names and SQL text, not {values!r}"
        )
    return dict(values)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, bytes)
