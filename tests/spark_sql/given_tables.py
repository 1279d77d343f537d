"""The tables that Spark's own SQL files expect to be there: their columns, with rows made here.

`onek` and `tenk1` have the columns of PostgreSQL's regression tests, where `unique1` is a shuffled
number of the row and the others are remainders of it.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

_REMAINDERS: Final = {
    "two": 2,
    "four": 4,
    "ten": 10,
    "twenty": 20,
    "hundred": 100,
    "thousand": 1_000,
    "twothousand": 2_000,
    "fivethous": 5_000,
    "tenthous": 10_000,
}


def tables_named_in(text: str) -> Mapping[str, pa.Table]:
    """The tables whose names are words of the text."""
    words = set(re.findall(r"\w+", text.lower()))
    return {name: made() for name, made in _TABLES.items() if name in words}


def _numbered(count: int) -> pa.Table:
    unique1 = np.random.default_rng(count).permutation(count)
    unique2 = np.arange(count)
    remainders = {name: unique1 % divisor for name, divisor in _REMAINDERS.items()}
    odd = unique1 % 100 * 2
    integers = {"unique1": unique1, "unique2": unique2, **remainders, "odd": odd, "even": odd + 1}
    columns = {name: pa.array(values, pa.int32()) for name, values in integers.items()}
    columns["stringu1"] = pa.array([_letters(number) for number in unique1.tolist()])
    columns["stringu2"] = pa.array([_letters(number) for number in range(count)])
    columns["string4"] = pa.array(
        [("AAAAxx", "HHHHxx", "OOOOxx", "VVVVxx")[n % 4] for n in range(count)]
    )
    return pa.table(columns)


def _letters(number: int) -> str:
    """The number to the base of 26, its lowest digit first, as PostgreSQL's tests spell it."""
    digits = []
    for _ in range(4):
        number, digit = divmod(number, 26)
        digits.append(string.ascii_uppercase[digit])
    return "".join(digits) + "xx"


def _maps() -> pa.Table:
    letters = "abcde"
    maps = [[(k + 1, f"{letters[k]}{row}") for k in range(6 - row)] for row in range(1, 6)]
    return pa.table({"mapcol": pa.array(maps, pa.map_(pa.int32(), pa.string()))})


def _arrays() -> pa.Table:
    rows = [[1, 2, 3], [2, 3, 4]]
    return pa.table(
        {
            "arraycol": pa.array(rows, pa.list_(pa.int32())),
            "nestedarraycol": pa.array([[row] for row in rows], pa.list_(pa.list_(pa.int32()))),
        }
    )


def _numbers() -> pa.Table:
    numbers = range(1, 101)
    return pa.table({"key": pa.array(numbers, pa.int32()), "value": [str(n) for n in numbers]})


def _measures() -> pa.Table:
    return pa.table(
        {
            "a": pa.array([56, 100, 0, 42], pa.int32()),
            "b": pa.array([7.8, 99.097, 0.09561, 324.78], pa.float32()),
        }
    )


_TABLES: Final[Mapping[str, Callable[[], pa.Table]]] = {
    "testdata": _numbers,
    "arraydata": _arrays,
    "mapdata": _maps,
    "aggtest": _measures,
    "onek": lambda: _numbered(1_000),
    "tenk1": lambda: _numbered(10_000),
}
