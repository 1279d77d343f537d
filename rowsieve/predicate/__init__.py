"""Predicates: the expression tree, binding, exact evaluation and abstract interpretation.

`bind` resolves names and types, `evaluate` computes a predicate on each row of a batch, and
`interpret` computes from statistics which outcomes are possible on parts that were not read. The
interpreter never refutes a part that holds a row that the evaluator keeps, or a row on which it
fails.

`prune` does so for a list of files of any other system, by bounds that the caller has.

The names in `__all__` are public, for engines that receive plans and conditions. So are the
functions `evaluate`, `interpret` and `normalize`, each in the module of its name. A name is
imported at its first use. Nodes are frozen, so a tree may be shared freely.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rowsieve.predicate.bind import bind
    from rowsieve.predicate.bound import BoundPredicate
    from rowsieve.predicate.codec import predicate_from_json, predicate_to_json
    from rowsieve.predicate.evaluate import Outcome, matching
    from rowsieve.predicate.interpret import Verdict
    from rowsieve.predicate.ir import (
        FALSE,
        TRUE,
        And,
        BooleanOperand,
        BoundColumn,
        Call,
        Case,
        Cast,
        Column,
        Comparison,
        ComparisonOp,
        Condition,
        FalsePredicate,
        FieldAccess,
        InList,
        IsNull,
        Like,
        Literal,
        Node,
        Not,
        Now,
        Opaque,
        Operand,
        Or,
        Predicate,
        TruePredicate,
        ValueSet,
        children,
        conjoin,
        disjoin,
        fold,
        map_children,
        root_conjuncts,
        walk,
    )
    from rowsieve.predicate.pruning.delta_files import delta_bounds
    from rowsieve.predicate.pruning.file_bounds import FileBounds, frame_bounds
    from rowsieve.predicate.pruning.iceberg_files import iceberg_bounds
    from rowsieve.predicate.pruning.prune import prune
    from rowsieve.predicate.rowset import RowSet
    from rowsieve.predicate.semantics import Semantics

__all__ = [
    "FALSE",
    "TRUE",
    "And",
    "BooleanOperand",
    "BoundColumn",
    "BoundPredicate",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Comparison",
    "ComparisonOp",
    "Condition",
    "FalsePredicate",
    "FieldAccess",
    "FileBounds",
    "InList",
    "IsNull",
    "Like",
    "Literal",
    "Node",
    "Not",
    "Now",
    "Opaque",
    "Operand",
    "Or",
    "Outcome",
    "Predicate",
    "RowSet",
    "Semantics",
    "TruePredicate",
    "ValueSet",
    "Verdict",
    "bind",
    "children",
    "conjoin",
    "delta_bounds",
    "disjoin",
    "fold",
    "frame_bounds",
    "iceberg_bounds",
    "map_children",
    "matching",
    "predicate_from_json",
    "predicate_to_json",
    "prune",
    "root_conjuncts",
    "walk",
]

_HOMES: Final = {
    "BoundPredicate": "bound",
    "bind": "bind",
    "Outcome": "evaluate",
    "RowSet": "rowset",
    "Semantics": "semantics",
    "Verdict": "interpret",
    "matching": "evaluate",
    "prune": "pruning.prune",
    "FileBounds": "pruning.file_bounds",
    "delta_bounds": "pruning.delta_files",
    "frame_bounds": "pruning.file_bounds",
    "iceberg_bounds": "pruning.iceberg_files",
    "predicate_from_json": "codec",
    "predicate_to_json": "codec",
}
"""The module of each public name that is not part of the tree."""
_RAISE_INPUT_ERRORS: Final = frozenset(
    {"delta_bounds", "frame_bounds", "iceberg_bounds", "matching", "predicate_from_json", "prune"}
)
"""Functions that people call at a prompt; `bind` is the module of its name, which does the same."""


def __getattr__(name: str) -> Any:
    """Import a public name from its module at first use."""
    if name not in __all__:
        from importlib.util import find_spec  # noqa: PLC0415 - rarely used

        if name.startswith("_") or find_spec(f"rowsieve.predicate.{name}") is not None:
            raise AttributeError(name)  # `from rowsieve.predicate import submodule` asks here first
        from rowsieve.arguments.peer_names import hint_for  # noqa: PLC0415 - rarely used

        hint = hint_for(name, {}, __all__)
        raise AttributeError(f"module 'rowsieve.predicate' has no attribute {name!r}{hint}")
    member = getattr(import_module(f"rowsieve.predicate.{_HOMES.get(name, 'ir')}"), name)
    if name not in _RAISE_INPUT_ERRORS:
        return member
    from rowsieve.arguments.short_tracebacks import shortening  # noqa: PLC0415 - at first use

    globals()[name] = shortening(member)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
