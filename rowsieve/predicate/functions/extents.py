"""`st_xmin`, `st_ymin`, `st_xmax`, `st_ymax`: the sides of the extent of a geometry in WKB.

They are NULL for an empty geometry, and for bytes that are not valid WKB. Parts have statistics of
them for columns of geometries (`rowsieve.geometry.1`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from rowsieve.predicate.arrays import Computed
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Signature,
    never_fails,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.alias_forms.wkb import SIDES, side_of
from rowsieve.types.logical import Binary, Float


def _resolve(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 1 or arguments[0].type != Binary():
        return None
    return Signature((Binary(),), Float(64))


def _evaluate(side: str, arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    return Computed(side_of(arguments[0], side))


ROWS = tuple(
    Function(
        f"{side}(geometry)",
        _resolve,
        partial(_evaluate, side),
        can_fail=never_fails,
        nulls=NullRule.PARTIAL,
    )
    for side in SIDES
)
