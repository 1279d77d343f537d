"""The actions of ALTER TABLE that add and drop constraints, as values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rowsieve.bridges.sql.dialects import Dialect


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """Add a constraint; `condition` is SQL text of the dialect, or a condition of an engine.

    `is_named`: the name was written; others get a number if it is taken.
    """

    name: str
    condition: Any
    dialect: str = "postgres"
    is_named: bool = True


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """Drop a constraint; with `if_exists`, the table may lack it."""

    name: str
    if_exists: bool = False


ConstraintChange: TypeAlias = AddConstraint | DropConstraint


def check_texts(text: str, tokens: Sequence[Any]) -> list[str]:
    """The conditions of all `CHECK (...)` in a text, as written."""
    texts, places = [], iter(range(len(tokens)))
    for i in places:
        if tokens[i].text.upper() != "CHECK" or tokens[i + 1 : i + 2] == []:
            continue
        if tokens[i + 1].text != "(":
            continue
        depth = 1
        for j in places:
            if j <= i + 1:
                continue
            depth += {"(": 1, ")": -1}.get(tokens[j].text, 0) if _is_sign(tokens[j]) else 0
            if not depth:
                texts.append(text[tokens[i + 1].end + 1 : tokens[j].start])
                break
    return texts


def _is_sign(token: Any) -> bool:
    """Return whether a token is written without quotes."""
    return bool(token.end - token.start + 1 == len(token.text))


def table_constraint(node: Any, checks: Iterator[str], dialect: Dialect) -> AddConstraint | None:
    """Read `[CONSTRAINT name] CHECK (condition)`; None for any other constraint.

    One without a name is called `check`. The texts of the conditions to come are in `checks`.
    """
    from sqlglot import exp  # noqa: PLC0415 - it takes 0.1 s to import

    name, is_named = "check", isinstance(node, exp.Constraint)
    if isinstance(node, exp.Constraint):
        if len(node.expressions) != 1 or not isinstance(node.this, exp.Identifier):
            return None
        name, node = str(node.this.this), node.expressions[0]
    if not isinstance(node, exp.CheckColumnConstraint) or node.args.get("enforced"):
        return None
    condition = next(checks, None)
    return None if condition is None else AddConstraint(name, condition, dialect.name, is_named)


def named_by(changes: Sequence[Any]) -> set[str]:
    """The names that constraints among the changes were given, in lower case."""
    return {
        each.name.lower() for each in changes if isinstance(each, AddConstraint) and each.is_named
    }


def numbered(changes: Sequence[Any]) -> list[Any]:
    """The definitions of a new table; constraints without a name get one that no other has."""
    taken = named_by(changes)
    named: list[Any] = []
    for each in changes:
        if isinstance(each, AddConstraint) and not each.is_named:
            name, number = each.name, 2
            while name.lower() in taken:
                name, number = f"{each.name}_{number}", number + 1
            taken.add(name.lower())
            named.append(replace(each, name=name))
        else:
            named.append(each)
    return named


def dropped_constraints(action: Any) -> tuple[DropConstraint, ...] | None:
    """Read `DROP CONSTRAINT [IF EXISTS] name`; None for any other action."""
    from sqlglot import exp  # noqa: PLC0415 - as above

    if not isinstance(action, exp.Drop) or action.args.get("kind") != "CONSTRAINT":
        return None
    known = {"kind", "tables", "exists", "this", "expressions"}
    extra = [key for key, value in action.args.items() if value not in (None, False, [], "")]
    if set(extra) - known:
        return None
    targets = action.args.get("tables") or [action.this]
    names = [each.this if isinstance(each, exp.Table) else each for each in targets]
    if not names or not all(isinstance(each, exp.Identifier) for each in names):
        return None
    return tuple(DropConstraint(str(each.this), bool(action.args.get("exists"))) for each in names)
