"""What our rule of failures says of a condition in Spark's text, each operation asked of Spark.

The rule (invariant 27): an operation that has no value on a row fails there, whatever its other
operands are. FALSE AND, TRUE OR, and the branches of CASE, IF and COALESCE that are not taken leave
a failure out of account; below the top a failure counts more than NULL. At the top a row with a
condition that is FALSE or NULL is out, and nothing else is asked of it. Spark differs both ways: it
evaluates conditions from left to right and fails on a row that a later one excludes, and it never
evaluates what its optimiser has dropped or what stands beside a NULL on its left. So this oracle
takes nothing from Spark but the value of one operation at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp

Rows = frozenset[int]
FAILS = "fails"
_LAZY = (exp.Case, exp.If, exp.Coalesce)
_NO_VALUES = (exp.DataType, exp.Var, exp.Interval, exp.Literal, exp.Column, exp.Boolean, exp.Null)
_CONSTANT_ARGUMENTS = {"unit", "zone", "decimals"}


@dataclass(frozen=True)
class Outcome:
    """The rows on which a condition is TRUE, NULL or fails; it is FALSE on the others."""

    true: Rows
    null: Rows
    failed: Rows


@dataclass
class Rule:
    """`ask(text, keys)`: the values of an expression of Spark's by key; None where it fails."""

    ask: Callable[[str, Rows], dict[int, Any] | None]
    keys: Rows
    _values: dict[tuple[str, Rows], tuple[dict[int, Any], Rows]] = field(default_factory=dict)

    def rows(self, text: str) -> list[int] | str:
        """The keys of the rows that the condition keeps, or that it fails."""
        outcomes = [self.outcome(each) for each in _conjuncts(sqlglot.parse_one(text, "spark"))]
        kept = frozenset.intersection(*(self.keys - _false(each, self) - each.null
                                        for each in outcomes))  # fmt: skip
        if any(kept & each.failed for each in outcomes):
            return FAILS
        return sorted(kept)

    def outcome(self, node: Any) -> Outcome:
        """The outcome of a condition below the top."""
        match node:
            case exp.Paren():
                return self.outcome(node.this)
            case exp.Not():
                inner = self.outcome(node.this)
                return Outcome(_false(inner, self), inner.null, inner.failed)
            case exp.And():
                return _not(self, self._any([_not(self, each) for each in self._sides(node)]))
            case exp.Or():
                return self._any(self._sides(node))
            case exp.Between():
                sides = [
                    self.outcome(exp.GTE(this=node.this.copy(), expression=node.args["low"])),
                    self.outcome(exp.LTE(this=node.this.copy(), expression=node.args["high"])),
                ]
                return _not(self, self._any([_not(self, each) for each in sides]))
            case exp.In():
                equal = [exp.EQ(this=node.this.copy(), expression=e) for e in node.expressions]
                return self._any([self.outcome(each) for each in equal])
        failed = self.failing(node, self.keys)
        values, _ = self.values(node.sql("spark"), self.keys - failed)
        true = frozenset(key for key, value in values.items() if value)
        return Outcome(true, frozenset(k for k, v in values.items() if v is None), failed)

    def _sides(self, node: Any) -> list[Outcome]:
        return [self.outcome(node.this), self.outcome(node.expression)]

    def _any(self, outcomes: Iterable[Outcome]) -> Outcome:
        """OR: TRUE decides, then a failure, then NULL."""
        outcomes = list(outcomes)
        true = frozenset().union(*(each.true for each in outcomes))
        failed = frozenset().union(*(each.failed for each in outcomes)) - true
        null = frozenset().union(*(each.null for each in outcomes)) - true - failed
        return Outcome(true, null, failed)

    def failing(self, node: Any, keys: Rows) -> Rows:
        """The rows on which the operation, or one that it is computed from, has no value."""
        if not keys or isinstance(node, _NO_VALUES):
            return frozenset()
        if isinstance(node, _LAZY):
            return self._lazily(node, keys)
        below = frozenset[int]()
        for child in _operands(node):
            below |= self.failing(child, keys)
        return below | self.values(node.sql("spark"), keys - below)[1]

    def _lazily(self, node: Any, keys: Rows) -> Rows:
        """The failures of branches that are taken."""
        if isinstance(node, exp.Coalesce):
            failed, rest = frozenset[int](), keys
            for choice in (node.this, *node.expressions):
                failed |= (now := self.failing(choice, rest))
                found, _ = self.values(choice.sql("spark"), rest - now)
                rest = frozenset(key for key, value in found.items() if value is None)
            return failed
        ifs = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        failed, rest = frozenset[int](), keys
        for branch in ifs:
            condition = self.outcome(branch.this)
            failed |= condition.failed & rest
            true = branch.args.get("true")
            failed |= self.failing(true, condition.true & rest)
            rest -= condition.true | condition.failed
        last = node.args.get("default") or node.args.get("false")
        return failed if last is None else failed | self.failing(last, rest)

    def values(self, text: str, keys: Rows) -> tuple[dict[int, Any], Rows]:
        """The values of an expression by key, and the keys of the rows where it fails."""
        if not keys:
            return {}, frozenset()
        if (text, keys) not in self._values:
            self._values[text, keys] = self._halved(text, keys)
        return self._values[text, keys]

    def _halved(self, text: str, keys: Rows) -> tuple[dict[int, Any], Rows]:
        found = self.ask(text, keys)
        if found is not None:
            return found, frozenset()
        if len(keys) == 1:
            return {}, keys
        ordered = sorted(keys)
        half = len(ordered) // 2
        first, last = (self._halved(text, frozenset(p)) for p in (ordered[:half], ordered[half:]))
        return first[0] | last[0], first[1] | last[1]


def _false(outcome: Outcome, rule: Rule) -> Rows:
    return rule.keys - outcome.true - outcome.null - outcome.failed


def _not(rule: Rule, outcome: Outcome) -> Outcome:
    return Outcome(_false(outcome, rule), outcome.null, outcome.failed)


def _conjuncts(node: Any) -> list[Any]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    if isinstance(node, exp.And):
        return _conjuncts(node.this) + _conjuncts(node.expression)
    if isinstance(node, exp.Between):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        return [low, exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())]
    return [node]


def _operands(node: Any) -> list[Any]:
    return [
        child
        for name, value in node.args.items()
        if name not in _CONSTANT_ARGUMENTS
        for child in (value if isinstance(value, list) else [value])
        if isinstance(child, exp.Expression) and not isinstance(child, _NO_VALUES)
    ]
