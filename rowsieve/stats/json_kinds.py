"""The kinds of values at a JSON path, as bits, and the names of paths in subjects.

A path is a tuple of keys and indices; `ANY_INDEX` means every element of a list. The first
`INDICES` elements of a list also have subjects of their own.
"""

from __future__ import annotations

import re
from enum import IntFlag
from typing import Final, TypeAlias

from rowsieve.stats.model import Derived
from rowsieve.stats.subjects import JSON

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]

ANY_INDEX: Final = -1
INDICES: Final = 8
EVERYTHING: Final = -1
INT64: Final = range(-(2**63), 2**63)
"""The numbers that are whole numbers to statistics; longer ones count as doubles."""
_ESCAPES: Final = (("~", "~0"), ("/", "~1"), ("[", "~2"), (":", "~3"))
_STATED: Final = re.compile(rf"{JSON}((?:/[^/\[:]*)+)(?:\[(\*|[0-9]+)\])?")
_NOT_PLAIN = re.compile(r'["\\\x00-\x1f]')


class JsonKind(IntFlag):
    """The kinds of values that at least one row has at a path.

    `MISSING`: no value, because the document is NULL or lacks the path. `INT`: a number without
    point and exponent that fits into 64 bits. `FLOAT`: any other number in the range of doubles.
    `EXPONENT`: a number may be written with an exponent. `OTHER`: a document is malformed, nests
    too deep or has a number out of the range of doubles, so nothing is known.
    """

    MISSING = 1
    NULL = 2
    FALSE = 4
    TRUE = 8
    INT = 16
    FLOAT = 32
    EXPONENT = 64
    STRING = 128
    LIST = 256
    OBJECT = 512
    OTHER = 1024


def path_subject(field_id: int, path: Path, kind: str = "") -> Derived:
    """The subject of a path, or of its values of one kind: `int`, `float` or `string`."""
    steps = "".join(
        f"/{_escaped(step)}" if isinstance(step, str) else f"[{'*' if step < 0 else step}]"
        for step in path
    )
    return Derived(field_id, f"{JSON}{steps}{':' if kind else ''}{kind}")


def path_of_subject(subject: Derived) -> Derived | None:
    """The subject of the whole path for a path's subject of any kind; None for other subjects."""
    what = subject.what.partition(":")[0]
    return Derived(subject.field_id, what) if what.startswith(JSON) else None


def parsed_path(subject: Derived) -> Path | None:
    """The path of a path's subject, of any kind: keys, and at most one index behind them.

    None for other subjects, and for paths that have no statistics.
    """
    whole = path_of_subject(subject)
    match = None if whole is None else _STATED.fullmatch(whole.what)
    if match is None:
        return None
    keys = tuple(map(_unescaped, match[1].split("/")[1:]))
    if not all(map(is_plain, keys)):
        return None
    return keys if match[2] is None else (*keys, ANY_INDEX if match[2] == "*" else int(match[2]))


def last_key(subject: Derived) -> str | None:
    """The last key of a path's subject; None if the path has no key."""
    path = path_of_subject(subject)
    keys = path.what.partition("[")[0].split("/")[1:] if path else []
    return _unescaped(keys[-1]) if keys else None


def is_plain(key: str) -> bool:
    """Return whether the key needs no escapes in JSON; other keys have no subjects."""
    return _NOT_PLAIN.search(key) is None


def _escaped(key: str) -> str:
    for plain, escape in _ESCAPES:
        key = key.replace(plain, escape)
    return key


def _unescaped(key: str) -> str:
    for plain, escape in reversed(_ESCAPES):
        key = key.replace(escape, plain)
    return key
