"""Casts of float64 to float32: too large a number fails here, and is infinite in some engines.

Those engines (polars, DataFusion, pyarrow) have no failure that TRY_CAST could make NULL of either.
Soundness: a cast that may meet such a number is refused both ways where the engine is one of them.
"""

from __future__ import annotations

import numpy as np

from rowsieve.predicate.ir import Literal, Operand
from rowsieve.types.logical import Float, LogicalType


def may_be_infinite(operand: Operand, source: LogicalType | None, target: LogicalType) -> bool:
    """Whether a cast of the operand could meet a number beyond float32; constants are looked at."""
    if source != Float(64) or target != Float(32):
        return False
    if not isinstance(operand, Literal) or not isinstance(operand.value, float):
        return not (isinstance(operand, Literal) and operand.value is None)
    with np.errstate(over="ignore"):
        return bool(np.isinf(np.float32(operand.value)) and not np.isinf(operand.value))


REASON = "a cast of float64 to float32 makes infinity of what is too large there, and fails here"
