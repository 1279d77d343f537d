"""Calls and operators of each dialect with arguments at which engines part, one a line.

A section `[numbers]` has texts over a column `{0}` of each type of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.cases import cases_in

KINDS: Final[Mapping[str, Sequence[str]]] = {
    "numbers": (
        *("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "d10", "d38"),
    ),
    "texts": ("text",),
    "times": ("date", "ts", "tz", "time", "era", "era_tz"),
    "lists": ("wholes", "texts", "floats"),
    "truth": ("bool",),
    "bytes": ("bytes",),
}


def siblings(dialect: str) -> Iterator[tuple[str, str]]:
    """Types of a column, each with a text that has a place for it."""
    kind = ""
    for line in cases_in(__file__, f"{dialect}.txt"):
        if line.strip("[]") in KINDS:
            kind = line.strip("[]")
            continue
        for type_ in KINDS[kind]:
            yield type_, line
