"""Several IN lists of one value: DataFusion's optimiser merges them, and loses NULL and columns.

`x IN (1) AND x IN (2)` becomes FALSE, and `x NOT IN (1) OR x NOT IN (2)` TRUE, also if x is NULL.
Intersections and differences of lists lose a NULL member: `x IN (1) AND x NOT IN (NULL)` keeps 1.
Soundness: a condition with several such lists is refused in both directions; so is a chain of
equalities, which the optimiser converts to a list. A NULL member is refused only in text that is
read; written text has the NULL as a condition of its own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.differences.engine_difference import Difference, Direction
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Float

_JUNCTIONS = frozenset({ir.And, ir.Or})
_TELLS_NULL = frozenset({ir.Not, ir.Or, ir.Condition})
_MERGES = "merges lists about one value with no member in common to TRUE or FALSE, also for NULL"
_LOSES_NULL = "loses a NULL in one of several lists about one value"
_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


def _loses_null_value(node: ir.And | ir.Or) -> bool:
    """Find a junction whose lists merge into an empty list."""
    by_operand: dict[tuple[ir.Operand, bool], list[pa.Array]] = defaultdict(list)
    for operand, is_kept, members in _lists(node):
        by_operand[operand, is_kept].append(_bits(members))
    for (operand, is_kept), lists in by_operand.items():
        others = by_operand.get((operand, False), ()) if is_kept else ()
        if is_kept and len(lists) + len(others) > 1 and _is_empty(lists, others):
            return True
    return False


def _shows_lost_null(node: ir.Not | ir.Or | ir.Condition) -> bool:
    """Find such a junction where FALSE of a filter is another answer than NULL, or TRUE."""
    match node:
        case ir.Or():
            return _loses_null_value(node)
        case ir.Not(term=inner) | ir.Condition(predicate=inner):
            junctions = (each for each in ir.walk(inner) if isinstance(each, ir.And | ir.Or))
            return any(map(_loses_null_value, junctions))


def _loses_null_member(node: ir.And | ir.Or) -> bool:
    """Find a junction that keeps only common members of its lists, and a list with NULL."""
    by_operand: dict[ir.Operand, list[tuple[bool, bool]]] = defaultdict(list)
    for operand, is_kept, members in _lists(node):
        by_operand[operand].append((is_kept, bool(members.null_count)))
    return any(
        len(lists) > 1 and any(is_kept for is_kept, _ in lists) and any(null for _, null in lists)
        for lists in by_operand.values()
    )


def _not_in_null(node: ir.Not) -> bool:
    """Find NOT IN with NULL: it is never true, but without the NULL it is true for some rows."""
    return isinstance(node.term, ir.InList) and bool(node.term.values.array.null_count)


def _lists(node: ir.And | ir.Or) -> Iterator[tuple[ir.Operand, bool, pa.Array]]:
    """Yield the lists of a junction: value, whether only common members are kept, members."""
    for term, positive in _terms(node, type(node), positive=True):
        if (listed := _listed(term)) is not None:
            operand, members, is_in = listed
            array = members if isinstance(members, pa.Array) else _array(members)
            yield operand, (is_in is positive) is isinstance(node, ir.And), array


def _one_zero(junction: ir.And | ir.Or) -> bool:
    """Find a junction of equalities and short lists with one zero, merged to one long list."""
    counts: dict[ir.Operand, int] = defaultdict(int)
    zeros: dict[ir.Operand, set[float]] = defaultdict(set)
    for node in ir.walk(junction):
        match node:
            case ir.Comparison(op=ir.ComparisonOp.EQ | ir.ComparisonOp.NE, left=left, right=right):
                for operand, other in ((left, right), (right, left)):
                    if isinstance(other, ir.Literal) and isinstance(other.type, Float):
                        counts[operand] += 1
                        zeros[operand] |= _zeros([other.value])
            case ir.InList(operand=operand, values=values) if isinstance(values.type, Float):
                counts[operand] += len(values)
                if not Semantics.DATAFUSION.compares_bits(len(values)):
                    zeros[operand] |= _zeros(values.array.to_pylist())
    return any(
        len(signs) == 1 and Semantics.DATAFUSION.compares_bits(counts[operand])
        for operand, signs in zeros.items()
    )


def merged_at_top(conditions: Sequence[ir.Predicate]) -> frozenset[ir.Predicate]:
    """Return the lists of the top AND that the optimiser merges, if one of them has columns.

    The optimiser finds a column in no other list: `x IN (y, 5) AND x IN (7, 8)` is FALSE there.
    """
    lists: dict[ir.Operand, list[ir.Predicate]] = defaultdict(list)
    with_columns: set[ir.Operand] = set()
    for condition in conditions:
        term: ir.Predicate = condition
        while isinstance(term, ir.Not):
            term = term.term
        if (listed := _listed(term)) is None:
            continue
        lists[listed[0]].append(condition)
        if isinstance(term, ir.And | ir.Or) and not all(map(_is_constant, term.terms)):
            with_columns.add(listed[0])
    merged = (lists[operand] for operand in with_columns if len(lists[operand]) > 1)
    return frozenset(condition for several in merged for condition in several)


def _is_constant(term: ir.Predicate) -> bool:
    return isinstance(term, ir.Comparison) and isinstance(term.right, ir.Literal)


def _zeros(values: Iterable[object]) -> set[float]:
    """Return the signs of the zeros among the values."""
    return {math.copysign(1.0, value) for value in values if isinstance(value, float) and not value}


def _terms(
    node: ir.Node, kind: type[ir.And | ir.Or], *, positive: bool
) -> Iterator[tuple[ir.Predicate, bool]]:
    """Yield the terms of a junction and of its nested junctions, NOT applied."""
    if isinstance(node, ir.Not):
        yield from _terms(node.term, kind, positive=not positive)
    elif isinstance(node, ir.And | ir.Or) and isinstance(node, kind) is positive:
        for term in node.terms:
            yield from _terms(term, kind, positive=positive)
    elif isinstance(node, ir.Predicate):
        yield node, positive


def _listed(term: ir.Predicate) -> tuple[ir.Operand, pa.Array | list[object], bool] | None:
    """Return value, members and whether it is IN, of a list or a chain of equalities.

    The constants of a chain have several types before it is bound.
    """
    if isinstance(term, ir.InList):
        return term.operand, term.values.array, True
    if not isinstance(term, ir.And | ir.Or):
        return None
    values: list[object] = []
    operands: set[ir.Operand] = set()
    op = ir.ComparisonOp.EQ if isinstance(term, ir.Or) else ir.ComparisonOp.NE
    for each in term.terms:
        if not isinstance(each, ir.Comparison):
            return None
        if each.op is not op or (operands and each.left not in operands):
            return None
        operands.add(each.left)
        if isinstance(each.right, ir.Literal):  # DataFusion finds other members in no other list
            values.append(each.right.value)
    return operands.pop(), values, isinstance(term, ir.Or)


def _array(members: list[object]) -> pa.Array:
    """Return constants as an array: as text if no Arrow type has all of them.

    Constants of one text are equal in every type, so that no list seems to have more in common.
    """
    try:
        return pa.array(members)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if each is None else str(each) for each in members], pa.string())


def _bits(members: pa.Array) -> pa.Array:
    known = members.drop_null()
    return known.view(_BITS[known.type]) if known.type in _BITS else known


def _is_empty(remaining: Sequence[pa.Array], removed: Sequence[pa.Array]) -> bool:
    left = remaining[0]
    if any(each.type != left.type for each in (*remaining, *removed)):
        common = set.intersection(*(set(each.to_pylist()) for each in remaining))
        return not common.difference(*(each.to_pylist() for each in removed))
    for each in remaining[1:]:
        left = left.filter(pc.is_in(left, each))
    for each in removed:
        left = left.filter(pc.invert(pc.is_in(left, each)))
    return not len(left)


ROWS = (
    Difference(*("datafusion", Direction.ANSWERS, _TELLS_NULL, _shows_lost_null), _MERGES),
    Difference(
        *("datafusion", Direction.READS | Direction.WRITES, _JUNCTIONS, _loses_null_value),
        _MERGES,
    ),
    Difference(
        *("datafusion", Direction.ANSWERS | Direction.READS, _JUNCTIONS, _loses_null_member),
        _LOSES_NULL,
        "write IS NULL and the list without NULL",
    ),
    Difference(
        *("datafusion", Direction.IN_CONJUNCTION, frozenset({ir.Not}), _not_in_null), _LOSES_NULL
    ),
    Difference(
        *("datafusion", Direction.ANSWERS, _JUNCTIONS, _one_zero),
        "merges so many comparisons of a float to a list, which distinguishes 0.0 from -0.0",
        "compare with both, or write IN",
    ),
)
