"""What may stand at a path in JSON, as a set of bits, and how paths are spelt in subjects.

A path is a tuple of keys and indices; `ANY_INDEX` stands for every element of a list. Elements have
subjects of their own up to `INDICES`.
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
_ESCAPES: Final = (("~", "~0"), ("/", "~1"), ("[", "~2"), (":", "~3"))
_NOT_PLAIN = re.compile(r'["\\\x00-\x1f]')


class Kind(IntFlag):
    """What stands at a path on some row.

    `MISSING`: nothing, also where the document is NULL or has no such member. `INT` is a number
    written without point and exponent that 64 bits hold, `FLOAT` any other that a double can hold;
    `EXPONENT` says that one of them may be written with an exponent. `OTHER`: the document is no
    JSON, nests too deep or has a number beyond all doubles, so nothing is known.
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
    """The subject of a path, or of the values of one kind there: `int`, `float`, `string`."""
    steps = "".join(
        f"/{_escaped(step)}" if isinstance(step, str) else f"[{'*' if step < 0 else step}]"
        for step in path
    )
    return Derived(field_id, f"{JSON}{steps}{':' if kind else ''}{kind}")


def path_of_subject(subject: Derived) -> Derived | None:
    """The subject of the path that this one is, or is a kind of; None if it is no path."""
    what = subject.what.partition(":")[0]
    return Derived(subject.field_id, what) if what.startswith(JSON) else None


def last_key(subject: Derived) -> str | None:
    """The last key of a path's subject; None if it has none."""
    path = path_of_subject(subject)
    keys = path.what.partition("[")[0].split("/")[1:] if path else []
    return _unescaped(keys[-1]) if keys else None


def is_plain(key: str) -> bool:
    """Whether JSON needs no escape to spell the key; other keys have no subjects."""
    return _NOT_PLAIN.search(key) is None


def _escaped(key: str) -> str:
    for plain, escape in _ESCAPES:
        key = key.replace(plain, escape)
    return key


def _unescaped(key: str) -> str:
    for plain, escape in reversed(_ESCAPES):
        key = key.replace(escape, plain)
    return key
