"""The actions of ALTER TABLE that add and drop constraints, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rowsieve.bridges.sql.dialects import Dialect


@dataclass(frozen=True, slots=True)
class AddConstraint:
    """Add a constraint; `condition` is SQL text of the dialect, or a condition of an engine."""

    name: str
    condition: Any
    dialect: str = "postgres"


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


def added_constraint(action: Any, condition: str | None, dialect: Dialect) -> AddConstraint | None:
    """Read `ADD CONSTRAINT name CHECK (condition)`; None for any other action."""
    from sqlglot import exp  # noqa: PLC0415 - it takes 0.1 s to import

    if not isinstance(action, exp.AddConstraint) or len(action.expressions) != 1:
        return None
    constraint = action.expressions[0]
    if not isinstance(constraint, exp.Constraint) or len(constraint.expressions) != 1:
        return None
    check, name = constraint.expressions[0], constraint.this
    if not isinstance(check, exp.CheckColumnConstraint) or check.args.get("enforced"):
        return None
    if not isinstance(name, exp.Identifier) or condition is None:
        return None
    return AddConstraint(str(name.this), condition, dialect.name)


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
