"""Parse LIKE patterns into literal text and wildcards.

`%` matches any sequence of characters, `_` a single one; newlines count as characters. The escape
character makes the next character literal and must be followed by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.functions.texts.young_letters import other_case


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern: the literal text before the first wildcard, and the whole as a RE2 regex.

    `is_prefix`: the pattern is its prefix followed by `%`. `is_exact`: it has no wildcard.
    """

    prefix: str
    regex: str
    is_prefix: bool
    is_exact: bool


def parse_pattern(pattern: str, escape: str | None, folds: int | None = None) -> Pattern:
    """Parse a pattern; None as escape means no escape character.

    `folds`: for ILIKE, the version of Unicode whose pairs of letters the engine knows; None for
    RE2's.
    """
    if escape is not None and len(escape) != 1:
        raise InvalidPredicate(f"the escape of LIKE must be one character, not {escape!r}")
    tokens: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                raise InvalidPredicate(
                    f"the LIKE pattern {pattern!r} ends in its escape; write the escaped character "
                    "after it"
                )
            tokens.append((following, False))
        else:
            tokens.append((character, character in "%_"))
    first = next((i for i, (_, wild) in enumerate(tokens) if wild), len(tokens))
    regex = "".join(
        (".*" if character == "%" else ".") if wild else _literal(character, folds)
        for character, wild in tokens
    )
    tail = tokens[first:]
    return Pattern(
        prefix="".join(character for character, _ in tokens[:first]),
        regex=f"(?s)^{regex}$",
        is_prefix=bool(tail) and all(token == ("%", True) for token in tail),
        is_exact=not tail,
    )


def _literal(character: str, folds: int | None) -> str:
    """Write a character in RE2, with the other letter of a pair that is newer than RE2's table."""
    other = None if folds is None else other_case(character, folds)
    return re.escape(character) if other is None else f"[{character}{other}]"


def lowered(node: ir.Like, lower: Callable[[pa.Array], pa.Array]) -> ir.Like:
    """Return ILIKE as LIKE of both sides in lower case by the engine's table, letter by letter."""
    if node.escape is not None and node.escape.isalpha():
        raise InvalidPredicate(
            f"a letter as the escape of ILIKE, {node.escape!r}: some engines lower it with the "
            "pattern; escape with a character that has no case"
        )
    pattern = lower(pa.array([node.pattern]))[0].as_py()
    return ir.Like(ir.Call("lower", (node.operand,)), pattern, node.escape)


def after_prefix(prefix: str) -> str | None:
    """Return the least text above all texts with the prefix; None if there is none.

    Increments the last code point, skipping the surrogates. Greatest code points at the end are
    removed first, since no text can be above them.
    """
    head = prefix.rstrip("\U0010ffff")
    if not head:
        return None
    code = ord(head[-1])
    return head[:-1] + chr(0xE000 if code == 0xD7FF else code + 1)
