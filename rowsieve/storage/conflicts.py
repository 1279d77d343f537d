"""What a commit does about commits that came in between: the written matrix.

| ours / theirs          | blind   | delete, update | overwrite, restore | compact  |
|------------------------|---------|----------------|--------------------|----------|
| blind                  | REBASE  | REBASE         | REBASE             | REBASE   |
| delete, update         | CHECK_KEYS | CHECK_KEYS  | CONFLICT           | REBASE   |
| overwrite, restore     | CONFLICT | CONFLICT      | CONFLICT           | CONFLICT |
| compact                | REBASE  | REBASE         | CONFLICT           | CONFLICT |

- Blind are `append`, `upsert`, `apply` and `delete_keys`.
- Blind writes never conflict: per key the last commit wins.
- `delete` and `update` by predicate are read-modify-write (invariant I7): if what came in between
  touched a key they touch (in tables without a key: a part), they are computed again.
- A compaction is not a change (invariants, rule 12), and conflicts with whatever replaces the
  table's content (rule 13). That its inputs are still live, vectors and all, is checked by the log
  itself: a part that anybody removed since cannot be removed again.

Soundness: an operation that is not in the matrix conflicts.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Resolution(Enum):
    """What to do about one commit that came in between."""

    REBASE = "rebase"  # commit on top of it as it is
    CHECK_KEYS = "check keys"  # the same, unless both touched a key: then compute again
    CONFLICT = "conflict"  # compute again on top of it, or give up with CommitConflict


_BLIND: Final = ("append", "upsert", "apply", "delete_keys")
_READING: Final = ("delete", "update")
_REPLACING: Final = ("overwrite", "restore")
_COMPACT: Final = ("compact",)
OPERATIONS: Final = (*_BLIND, *_READING, *_REPLACING, *_COMPACT)

_BY_GROUP: Final = (
    (_BLIND, (*_BLIND, *_READING, *_REPLACING, *_COMPACT), Resolution.REBASE),
    (_READING, (*_BLIND, *_READING), Resolution.CHECK_KEYS),
    (_READING, _REPLACING, Resolution.CONFLICT),
    (_READING, _COMPACT, Resolution.REBASE),
    (_REPLACING, OPERATIONS, Resolution.CONFLICT),
    (_COMPACT, (*_BLIND, *_READING), Resolution.REBASE),
    (_COMPACT, (*_REPLACING, *_COMPACT), Resolution.CONFLICT),
)
MATRIX: Final = {
    (ours, theirs): resolution
    for ours_group, theirs_group, resolution in _BY_GROUP
    for ours in ours_group
    for theirs in theirs_group
}


def resolve(ours: str, theirs: str) -> Resolution:
    """Look up what our operation does about theirs, which was committed in between."""
    return MATRIX.get((ours, theirs), Resolution.CONFLICT)
