"""What to do about errors of the operating system that a retry does not change."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Final

_REMEDIES: Final[Mapping[int, str]] = {
    errno.ENOSPC: "free space on this disk, then {then}",
    errno.EDQUOT: "free space within this user's quota, then {then}",
    errno.EROFS: "the file system is mounted read-only: the table can be read there, not changed",
    errno.EACCES: "this process lacks the permission: run it as a user who has it, or grant it",
    errno.EFBIG: (
        "files are limited in size there (see ulimit -f): raise the limit, or set a lower "
        "target_part_bytes"
    ),
}
NOT_A_PLACE: Final = frozenset({errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTDIR, errno.ELOOP})
"""Errors of a path that no folder can have; the caller gives another one."""


IS_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a disk, or of a user's share of it, that has no space left."""


def has_remedy(error: OSError) -> bool:
    """Return whether the error lasts, and what ends it is known."""
    return error.errno in _REMEDIES


def described(error: OSError, then: str = "repeat the call") -> str:
    """Return the cause and, if it is known, the remedy; `then` follows it."""
    cause = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{cause}; {remedy.format(then=then)}" if remedy else cause
