"""`geometry && ST_MakeEnvelope(x1, y1, x2, y2)`: whether the extent of a geometry meets a box.

It binds to comparisons of the extent's sides, which have statistics. NULL gives NULL, and an empty
geometry FALSE, as in PostGIS. PostGIS rounds boxes outward to float32 for `&&`; the sides here are
float64, as those of DuckDB's `ST_Intersects_Extent`.
"""

from __future__ import annotations

import decimal
from typing import Final

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.types.logical import Float

MEETS: Final = frozenset({"st_intersects_extent", "list_overlaps"})
"""Calls with this meaning: DuckDB's, and the operator `&&`, which otherwise compares lists."""

_BOX: Final = "st_makeenvelope"


def as_meeting(name: str, arguments: tuple[ir.Operand, ...]) -> ir.Operand | None:
    """Return the condition that an extent meets a constant box; None for other calls."""
    if name not in MEETS or len(arguments) != 2:
        return None
    boxes = [_is_box(each) for each in arguments]
    if boxes == [False, False]:
        if name == "list_overlaps":
            return None
        raise _not_read()
    if boxes == [True, True]:
        raise _not_read()
    box, geometry = arguments if boxes[0] else reversed(arguments)
    assert isinstance(box, ir.Call)
    x1, y1, x2, y2 = _corners(box)
    sides = (
        ("st_xmin", ir.ComparisonOp.LE, x2),
        ("st_xmax", ir.ComparisonOp.GE, x1),
        ("st_ymin", ir.ComparisonOp.LE, y2),
        ("st_ymax", ir.ComparisonOp.GE, y1),
    )
    meets = (
        ir.Comparison(op, ir.Call(side, (geometry,)), ir.Literal(corner, Float(64)))
        for side, op, corner in sides
    )
    has_extent = ir.Not(ir.IsNull(ir.Call("st_xmin", (geometry,))))
    return ir.Condition(ir.And((*meets, ir.Or((has_extent, ir.IsNull(geometry))))))


def _is_box(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Call) and operand.function.lower() == _BOX


def _corners(box: ir.Call) -> tuple[float, float, float, float]:
    edges = tuple(map(_number, box.arguments))
    if len(edges) != 4:
        raise InvalidPredicate(
            f"ST_MakeEnvelope has {len(edges)} arguments; write the four numbers xmin, ymin, xmax "
            "and ymax, without a SRID: columns have no reference system"
        )
    x1, y1, x2, y2 = edges
    if not (x1 <= x2 and y1 <= y2):
        raise InvalidPredicate(
            f"ST_MakeEnvelope({x1}, {y1}, {x2}, {y2}) has its corners in another order; write "
            "xmin, ymin, xmax, ymax"
        )
    return x1, y1, x2, y2


def _number(operand: ir.Operand) -> float:
    match operand:
        case ir.Literal(value=bool()):
            pass
        case ir.Literal(value=int() | float() | decimal.Decimal() as number):
            return float(number)
        case ir.Call(function="negate", arguments=(inner,)):
            return -_number(inner)
    raise InvalidPredicate("ST_MakeEnvelope takes four constant numbers")


def _not_read() -> InvalidPredicate:
    return InvalidPredicate(
        "write a column of geometries and a constant box, as in ST_Intersects_Extent(geom, "
        "ST_MakeEnvelope(0, 0, 10, 10)) or geom && ST_MakeEnvelope(0, 0, 10, 10)"
    )
