"""The verdict of every node of a condition, counted over the parts of a version.

Each node is interpreted by itself, as if it were the whole condition, so the counts of a node say
what it can prove alone. An AND may refute more parts than its terms do one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rowsieve.pictures.condition_tree import ConditionNode
from rowsieve.predicate import ir
from rowsieve.predicate.binding.simplify import simplify
from rowsieve.predicate.bound import BoundPredicate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.stats.columnar import PartStatistics

MAX_TERMS: Final = 12  # of one AND or OR
MAX_NODES: Final = 40  # of a tree
_Pair = tuple[ir.Predicate, ir.Predicate]


def condition_verdicts(
    bound: BoundPredicate, statistics: PartStatistics, describe: Callable[[ir.Predicate], str]
) -> ConditionNode:
    """Return the tree of a bound predicate that is not simplified; wide and deep ones are cut."""
    return _VerdictWalk(bound, statistics, describe).node(bound.source, bound.root)


@dataclass(slots=True)
class _VerdictWalk:
    """One walk: how many nodes it may still visit."""

    bound: BoundPredicate
    statistics: PartStatistics
    describe: Callable[[ir.Predicate], str]
    left: int = MAX_NODES

    def node(self, source: ir.Predicate, root: ir.Predicate) -> ConditionNode:
        """Judge a node, then its terms while nodes are left."""
        semantics = self.bound.semantics
        alone = BoundPredicate(simplify(root, semantics), self.bound.schema_id, semantics)
        verdicts = interpret(alone, self.statistics)
        pairs = _terms(source, root)
        shown = min(len(pairs), MAX_TERMS, self.left)
        self.left -= shown
        return ConditionNode(
            self.describe(source),
            int((verdicts == Verdict.NONE).sum()),
            int((verdicts == Verdict.SOME).sum()),
            int((verdicts == Verdict.ALL).sum()),
            tuple(self.node(*pair) for pair in pairs[:shown]),
            len(pairs) - shown,
        )


def _terms(source: ir.Predicate, root: ir.Predicate) -> list[_Pair]:
    """The terms of an AND, OR or NOT with their bound forms; nothing for a leaf."""
    match source, root:
        case (ir.And(terms=terms), ir.And(terms=roots)) | (ir.Or(terms=terms), ir.Or(terms=roots)):
            return list(zip(terms, roots, strict=True))
        case ir.Not(term), ir.Not(inner):
            return [(term, inner)]
        case _:
            return []
