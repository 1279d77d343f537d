"""Letters whose upper and lower case became a pair in Unicode 16 or later.

Engines have Unicode tables of different age, and Arrow's is the newest: DuckDB leaves U+A7E2
unchanged, whose pair U+027C got in Unicode 18. `Semantics.case_version` is the version of an
engine's table of upper and lower case, `fold_version` that of its ILIKE. Soundness: statistics
decide nothing about text with one of these letters, because another release of the engine may know
another version.

Source: the tables of Arrow, DuckDB, DataFusion and Spark, compared letter by letter in
`tests/predicate/functions/test_young_letters.py` and `tests/providers/spark/test_spark_letters.py`.
Spark converts case by its own ICU, whatever Java it runs on, unless a setting that we refuse says
otherwise (`spark.sql.icu.caseMappings.enabled`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, as_mask

# Version, first capital, first small letter, and the number of pairs in a row.
_PAIRS: Final = (
    (16, 0x1C89, 0x1C8A, 1),
    (16, 0xA7CB, 0x264, 1),
    (16, 0xA7CC, 0xA7CD, 1),
    (16, 0xA7DA, 0xA7DB, 1),
    (16, 0xA7DC, 0x19B, 1),
    (16, 0x10D50, 0x10D70, 22),
    (17, 0xA7CE, 0xA7CF, 1),
    (17, 0xA7D2, 0xA7D3, 1),
    (17, 0xA7D4, 0xA7D5, 1),
    (17, 0x16EA0, 0x16EBB, 25),
    (18, 0xA7DD, 0x277, 1),
    (18, 0xA7E2, 0x27C, 1),
    (18, 0xAB6C, 0xAB4B, 2),
    *((18, 0x1DF00 + low - 1, 0x1DF00 + low, 1) for low in (0x41, 0x49, 0x4B, 0x4E, 0x52)),
    *((18, 0x1DF68 + 2 * place, 0x1DF69 + 2 * place, 1) for place in (0, 1, 2, 3)),
    *((18, 0x1DF72 + 2 * place, 0x1DF73 + 2 * place, 1) for place in range(7)),
)
_LETTERS: Final = "".join(
    chr(first + place)
    for _, capital, small, count in _PAIRS
    for first in (capital, small)
    for place in range(count)
)
FIRST_YOUNG: Final = min(_LETTERS)
_OLD_SMALL: Final = frozenset("\u019b\u0264\u0277\u027c\ua7d3\ua7d5\uab4b\uab4c")
"""Small letters that are older than their capitals, and had case without a pair."""
_YOUNG: Final = f"[{_LETTERS}]"
_SPLIT: Final = re.compile(f"({_YOUNG})")
CASED: Final = frozenset({"upper", "lower"})  # the functions that convert case
_CASED: Final = "a"  # stands for a neighbour with case, which decides the form of sigma


def are_young(texts: pa.Array) -> Mask:
    """Return the mask of texts with one of these letters; False for NULL."""
    if pc.all(pc.string_is_ascii(texts), min_count=0).as_py():
        return np.zeros(len(texts), np.bool_)
    return as_mask(pc.match_substring_regex(texts, _YOUNG))


def has_young(text: str) -> bool:
    """Return whether a text has one of these letters."""
    return _SPLIT.search(text) is not None


def other_case(letter: str, version: int) -> str | None:
    """Return the other letter of a pair that a table has; None for other letters."""
    return _known(version, upper=False).get(letter) or _known(version, upper=True).get(letter)


def convert(text: str, rest: Callable[[str], str], version: int, *, upper: bool) -> str:
    """Convert a text by an engine's table: `rest` converts what is between these letters.

    A pair that is newer than the table is unchanged; a sigma before a letter without case is final.
    """
    known, cased = _known(version, upper=upper), _with_case(version)
    pieces = ["", *_SPLIT.split(text), ""]
    converted = []
    for before, piece, after in zip(pieces, pieces[1:], pieces[2:], strict=False):
        if _SPLIT.fullmatch(piece):
            converted.append(known.get(piece, piece))
            continue
        head, tail = (_CASED if letter in cased else "" for letter in (before, after))
        whole = rest(head + piece + tail)
        converted.append(whole[len(head) : len(whole) - len(tail)])
    return "".join(converted)


@lru_cache(maxsize=16)
def _known(version: int, *, upper: bool) -> dict[str, str]:
    pairs = {
        chr(capital + place): chr(small + place)
        for since, capital, small, count in _PAIRS
        if since <= version
        for place in range(count)
    }
    return {small: capital for capital, small in pairs.items()} if upper else pairs


@lru_cache(maxsize=16)
def _with_case(version: int) -> frozenset[str]:
    known = _known(version, upper=False)
    return _OLD_SMALL.union(known, known.values())
