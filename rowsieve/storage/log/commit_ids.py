"""Ids of commits and of checkpoints' files: unique, and naming the version they were based on.

An id is a UUID of version 8 (RFC 9562) in 32 hexadecimal digits: 74 random bits, and in the last 12
digits the newest version that the writer had read. So the name of an unreferenced file says whether
a later commit may still refer to it (invariants, rule 15).
"""

from __future__ import annotations

import re
import uuid
from typing import Final

_BASED = re.compile(r"[0-9a-f]{12}8[0-9a-f]{3}[89ab][0-9a-f]{15}")
_LARGEST_BASE: Final = 2**48 - 1


def new_id(base_version: int) -> str:
    """Return a fresh id of a writer that has read up to `base_version`."""
    if not 0 <= base_version <= _LARGEST_BASE:
        raise ValueError(f"an id cannot name version {base_version}")
    random = uuid.uuid4().hex
    return f"{random[:12]}8{random[13:20]}{base_version:012x}"


def base_of(id_: str) -> int | None:
    """Return the version in an id; None for an id of an older Rowsieve, which has none."""
    return int(id_[20:], 16) if _BASED.fullmatch(id_) else None
