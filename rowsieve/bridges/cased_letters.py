"""Conditions on text in upper or lower case that young letters decide.

A letter whose pair is newer than the engine's Unicode stays as it is, and is its other form in a
newer engine; both forms are young letters at the same place. So such texts are alike: a comparison
with a text without young letters, a search for one, or a number of letters has one result in every
engine. Soundness: any other use of the text counts as decided by these letters.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.predicate.functions.texts.young_letters import FIRST_YOUNG, are_young, has_young

_CASED: Final = frozenset({"upper", "lower", "initcap"})
# Functions of letters by their places, and choices: of texts that are alike they give such texts.
_BY_PLACE: Final = frozenset(
    {"substr", "left", "right", "trim", "ltrim", "rtrim", "concat", "reverse", "coalesce"} | _CASED
)
_SEARCHES: Final = frozenset({"starts_with", "ends_with", "contains", "position", "length"})


def case_that_decides(root: ir.Predicate) -> str | None:
    """Return the first function of case on which engines may differ; None if there is none."""
    for node in ir.walk(root):
        if isinstance(node, ir.Call) and node.function in _CASED:
            return _first_that_decides(root, alike=False)
    return None


def _first_that_decides(node: ir.Node, *, alike: bool) -> str | None:
    """Return the first such function in a node; `alike`: any of texts that are alike will do."""
    if isinstance(node, ir.Call) and node.function in _CASED and not alike:
        return node.function
    inner = _takes_alike(node, alike=alike)
    for child in ir.children(node):
        if (name := _first_that_decides(child, alike=inner)) is not None:
            return name
    return None


def _takes_alike(node: ir.Node, *, alike: bool) -> bool:
    """Whether the result is one, or `alike` as allowed, for operands that are alike."""
    match node:
        case ir.Comparison(op=op, left=left, right=right):
            return any(_settles(op, side) for side in (left, right))
        case ir.InList(values=values):
            texts = values.array
            return pa.types.is_string(texts.type) and not are_young(texts).any()
        case ir.Like(pattern=pattern):
            return not has_young(pattern)
        case ir.IsNull():
            return True
        case ir.Case():
            return alike
        case ir.Call(function=name, arguments=arguments) if name in _BY_PLACE:
            return alike and all(map(_is_old_text, arguments[1:]) if "trim" in name else [True])
        case ir.Call(function=name, arguments=(_, *others)) if name in _SEARCHES:
            return all(isinstance(each, ir.Literal) and _is_old_text(each) for each in others)
        case _:
            return False


def _settles(op: ir.ComparisonOp, side: ir.Operand) -> bool:
    """Whether a comparison with this side has one result for all texts that are alike."""
    if not isinstance(side, ir.Literal) or not isinstance(side.value, str):
        return False
    if not op.is_order:
        return not has_young(side.value)
    return all(letter < FIRST_YOUNG for letter in side.value)


def _is_old_text(operand: ir.Operand) -> bool:
    return not (isinstance(operand, ir.Literal) and isinstance(operand.value, str)) or not (
        has_young(operand.value)
    )
