"""LIKE patterns: literal text and wildcards, told apart once.

`%` matches any run of characters, `_` one; newlines are characters. The escape makes the next
character literal and must have one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rowsieve.errors import InvalidPredicate


@dataclass(frozen=True, slots=True)
class Pattern:
    """`prefix` is the literal text before the first wildcard, `regex` all of it for RE2.

    `is_prefix`: the pattern is its prefix and then `%`. `is_exact`: it has no wildcard.
    """

    prefix: str
    regex: str
    is_prefix: bool
    is_exact: bool


def parse_pattern(pattern: str, escape: str | None) -> Pattern:
    """The pattern's parts; None as escape means that there is none."""
    if escape is not None and len(escape) != 1:
        raise InvalidPredicate(f"the escape of LIKE must be one character, not {escape!r}")
    tokens: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                raise InvalidPredicate(f"the LIKE pattern {pattern!r} ends in its escape")
            tokens.append((following, False))
        else:
            tokens.append((character, character in "%_"))
    first = next((i for i, (_, wild) in enumerate(tokens) if wild), len(tokens))
    regex = "".join(
        (".*" if character == "%" else ".") if wild else re.escape(character)
        for character, wild in tokens
    )
    tail = tokens[first:]
    return Pattern(
        prefix="".join(character for character, _ in tokens[:first]),
        regex=f"(?s)^{regex}$",
        is_prefix=bool(tail) and all(token == ("%", True) for token in tail),
        is_exact=not tail,
    )


def after_prefix(prefix: str) -> str | None:
    """The least text above every text with the prefix; None if every text from it on has it.

    The last code point is raised by one, over the surrogates; the greatest ones are cut off first,
    for whatever follows the prefix with them begins with them too.
    """
    head = prefix.rstrip("\U0010ffff")
    if not head:
        return None
    code = ord(head[-1])
    return head[:-1] + chr(0xE000 if code == 0xD7FF else code + 1)
