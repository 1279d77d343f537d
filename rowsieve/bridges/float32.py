"""Casts of float64 to float32: overflow fails here, and gives infinity in some engines.

In those engines (polars, DataFusion, pyarrow) the cast never fails, so TRY_CAST gives no NULL.

Soundness: a cast that may overflow is rejected in both directions for these engines.
"""

from __future__ import annotations

import numpy as np

from rowsieve.predicate.ir import Literal, Operand
from rowsieve.types.logical import Float, LogicalType


def may_be_infinite(operand: Operand, source: LogicalType | None, target: LogicalType) -> bool:
    """Whether a cast of the operand may overflow float32; constants are checked exactly."""
    if source != Float(64) or target != Float(32):
        return False
    if not isinstance(operand, Literal) or not isinstance(operand.value, float):
        return not (isinstance(operand, Literal) and operand.value is None)
    with np.errstate(over="ignore"):
        return bool(np.isinf(np.float32(operand.value)) and not np.isinf(operand.value))


REASON = "a cast of float64 to float32 makes infinity of what is too large there, and fails here"
