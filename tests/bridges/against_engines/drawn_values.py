"""Values of each type that are drawn at random, the same in each run.

An engine may round seconds and microseconds, or a cast, differently where no edge shows it.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from random import Random
from typing import Any

import numpy as np

_DRAWN = 80  # values of each type
_LETTERS = (
    "aAbBzZ019 \t\n\r\x0b%_\\.-+:eE'\"X[](){}*?^$|\u00e9\u00df\u0130\u0131\u01c5\u017f"
    "\u212a\u03a3\u03c2\u0149\ufb01\u0301\u00a0\u3000\u200b\u2028\u0085\u65e5\U0001f600\uab53\u1c90\u10d0\u2167\u0661\uff11"
)
_SPELLINGS = (
    *("1_000", "0x1F", "0b11", "0o17", " 7 ", "+5", "-0", "1.", ".", ".5", "5e-1", "1E5", "00012"),
    *("1e400", "1e-400", "1,5", "--1", "1 2", "NaN", "nan", "inf", "-Infinity", "0.5", "1.5"),
    *("2.5", "-2.5", "1.005", "9223372036854775808", "-9223372036854775808", "1" * 29),
    *("t", "f", "on", "off", "yes", "no", "tru", "TRUE ", " true", "FALSE", "y", "n"),
    *("0x1F ", " 0x1F", "1_000 "),
    *("2024-7-3", "10000-01-01", "0001-01-01", "2024-02-30", "20240703", "2024-07-03T10:20:30"),
    *("2024-07-03 10:20", "2024-07-03 24:00:00", "2024-07-03 10:20:30.1234567", " 2024-07-03"),
    *("2024-07-03 10:20:30+02", "2024-07-03 10:20:30Z", "10:20", "10:20:30.5", "24:00:00"),
)
_NEAR_1970_US, _OF_ALL_YEARS_US = (
    (-(10**13), 10**15),
    (-62_135_510_400_000_000, 253_402_300_799 * 10**6),
)


def _whole(bits: int, *, signed: bool) -> Callable[[Random], int]:
    def value(chance: Random) -> int:
        size = 2 ** chance.randrange(1, bits + 1 - signed)
        return chance.randrange(-size if signed else 0, size)

    return value


def _float(chance: Random) -> float:
    if chance.random() < 0.3:
        return chance.randrange(-9, 9) + 0.5
    digits = chance.randrange(-(10 ** chance.randrange(1, 17)), 10**16)
    return float(digits / 10 ** chance.randrange(30))


def _decimal(digits: int, scale: int) -> Callable[[Random], decimal.Decimal]:
    def value(chance: Random) -> decimal.Decimal:
        size = 10 ** chance.randrange(scale + 1, digits)
        unscaled = chance.randrange(-size, size)
        if chance.random() < 0.3:  # halves
            unscaled = unscaled // 10**scale * 10**scale + 5 * 10 ** (scale - 1)
        return decimal.Decimal(unscaled).scaleb(-scale, decimal.Context(prec=digits))

    return value


def _text(chance: Random) -> str:
    if chance.random() < 0.5:
        return chance.choice(_SPELLINGS)
    return "".join(chance.choices(_LETTERS, k=chance.randrange(1, 7)))


def _day(chance: Random) -> date:
    year = chance.choice((chance.randrange(1, 10_000), chance.randrange(1890, 2110)))
    return date(year, chance.choice((1, 2, 3, 12)), chance.choice((1, 2, 3, 4, 27, 28)))


def _instant_us(chance: Random) -> int:
    return chance.randrange(*chance.choice((_NEAR_1970_US, _OF_ALL_YEARS_US)))


_VALUES: Mapping[str, Callable[[Random], Any]] = {
    "i32": _whole(32, signed=True),
    "i64": _whole(64, signed=True),
    "u16": _whole(16, signed=False),
    "u64": _whole(64, signed=False),
    "f32": lambda chance: float(np.float32(_float(chance))),
    "f64": _float,
    "d10": _decimal(10, 2),
    "d38": _decimal(28, 10),
    "text": _text,
    "date": _day,
    "ts": _instant_us,
    "tz": _instant_us,
    "time": lambda chance: chance.randrange(86_400_000_000),
}


@cache
def drawn_values(name: str) -> list[Any]:
    """Values of a type, times as microseconds; none of a type with few values."""
    chance = Random(name)
    return [_VALUES[name](chance) for _ in range(_DRAWN)] if name in _VALUES else []
