"""Round decimals in steps that Arrow divides correctly.

Arrow rounds and rescales by dividing by a power of ten. If the divisor is 2^32 or more, its long
division (pyarrow 26.0.1) is wrong for quotients with a 32-bit digit of all ones: 2^64 - 1 with 18
digits after the point is rounded to 18446744068757791458. Divisors of up to 10^9, nine digits at a
time, use another algorithm, which is correct.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_PRECISION = 76
_STEP = 9  # digits; 10^9 is less than 2^32


def rounded(values: pa.Array, digits: int, mode: str) -> pa.Array:
    """Round values to `digits` digits after the point, as decimal256 of 76 digits.

    `mode` is `half_towards_infinity` or one of Arrow's directed modes. Negative digits give
    multiples of powers of ten. Values with fewer digits are unchanged.
    """
    scale = values.type.scale
    if digits >= scale:
        return values.cast(pa.decimal256(_PRECISION, scale))
    decimals = values.cast(pa.decimal256(_PRECISION, scale))
    # The first dropped digit decides half away from zero, so later digits may be dropped before.
    on_the_way = "towards_zero" if mode == "half_towards_infinity" else mode
    while scale - digits > _STEP:
        scale -= _STEP
        decimals = pc.round(decimals, ndigits=scale, round_mode=on_the_way)
        decimals = decimals.cast(pa.decimal256(_PRECISION, scale))
    decimals = pc.round(decimals, ndigits=digits, round_mode=mode)
    return decimals.cast(pa.decimal256(_PRECISION, max(digits, 0)))
