"""What a commit does about commits that came in between: the written matrix.

| ours / theirs | blind    | reading  | overwrite, restore | compact  | set      |
|---------------|----------|----------|--------------------|----------|----------|
| blind         | REBASE   | REBASE   | REBASE             | REBASE   | REBASE   |
| reading       | CHECK    | CHECK    | CONFLICT           | REBASE   | CONFLICT |
| replacing     | CONFLICT | CONFLICT | CONFLICT           | CONFLICT | CONFLICT |
| compact       | REBASE   | REBASE   | CONFLICT           | CONFLICT | REBASE   |
| set           | CONFLICT | CONFLICT | CONFLICT           | CONFLICT | CONFLICT |

- Blind are `append`, `upsert`, `apply` and `delete_keys`.
- Blind writes never conflict: per key the last commit wins.
- Reading are `delete`, `update` and `overwrite` by condition: read-modify-write (invariant I7).
  CHECK asks whether what came in between changes what they read; if so they are computed again.
  What counts as read is the table's isolation level.
- Replacing are `restore` and `overwrite` of all. In the log, both overwrites have one name.
- A compaction is not a change (invariants, rule 12), and conflicts with whatever replaces the
  table's content (rule 13). That its inputs are still live, vectors and all, is checked by the log
  itself: a part that anybody removed since cannot be removed again.
- `set_properties` and `unset_properties` (set) are computed again on any head: they change the
  properties that they name and keep all others. Whatever reads starts again after them, because the
  isolation level may be another one.

Under `serializable` every change reads the version right before its own: the table is what the
commits give one after the other, in the order of their versions. CHECK finds a commit that touched
a row which was read (in tables without a key: its part), or added a row that the condition matches.
Under `snapshot` CHECK looks at the touched rows alone: a row that begins to match meanwhile is
missed, and two changes that read each other's rows may both commit (write skew).

Soundness: an operation that is not in the matrix conflicts; an isolation level that is not known is
`serializable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Resolution(Enum):
    """What to do about one commit that came in between."""

    REBASE = "rebase"  # commit on top of it as it is
    CHECK = "check"  # the same, unless it changed what was read: then compute again
    CONFLICT = "conflict"  # compute again on top of it, or give up with CommitConflict


class Kind(Enum):
    """How a change depends on what is in the table."""

    BLIND = "blind"  # not at all
    READING = "reading"  # on the rows that match its condition
    REPLACING = "replacing"  # on the list of parts: it replaces all of them
    REWRITING = "rewriting"  # on the parts that it rewrites, not on rows
    SETTING = "setting"  # on the properties of the table, not on rows


class Isolation(Enum):
    """The table property `isolation`: what a change that reads must have read when it commits."""

    SERIALIZABLE = "serializable"  # the version right before its own
    SNAPSHOT = "snapshot"  # any version, as long as nobody else changed the rows it writes


OPERATIONS: Final[Mapping[str, Kind]] = {
    "append": Kind.BLIND,
    "upsert": Kind.BLIND,
    "apply": Kind.BLIND,
    "delete_keys": Kind.BLIND,
    "delete": Kind.READING,
    "update": Kind.READING,
    "overwrite": Kind.REPLACING,  # of the part that its condition names, or of all
    "restore": Kind.REPLACING,
    "compact": Kind.REWRITING,
    "set_properties": Kind.SETTING,
    "unset_properties": Kind.SETTING,
}
MATRIX: Final[Mapping[tuple[Kind, Kind], Resolution]] = {
    (Kind.BLIND, Kind.BLIND): Resolution.REBASE,
    (Kind.BLIND, Kind.READING): Resolution.REBASE,
    (Kind.BLIND, Kind.REPLACING): Resolution.REBASE,
    (Kind.BLIND, Kind.SETTING): Resolution.REBASE,
    (Kind.BLIND, Kind.REWRITING): Resolution.REBASE,
    (Kind.READING, Kind.BLIND): Resolution.CHECK,
    (Kind.READING, Kind.READING): Resolution.CHECK,
    (Kind.READING, Kind.REPLACING): Resolution.CONFLICT,
    (Kind.READING, Kind.SETTING): Resolution.CONFLICT,
    (Kind.READING, Kind.REWRITING): Resolution.REBASE,
    (Kind.REPLACING, Kind.BLIND): Resolution.CONFLICT,
    (Kind.REPLACING, Kind.READING): Resolution.CONFLICT,
    (Kind.REPLACING, Kind.REPLACING): Resolution.CONFLICT,
    (Kind.REPLACING, Kind.SETTING): Resolution.CONFLICT,
    (Kind.REPLACING, Kind.REWRITING): Resolution.CONFLICT,
    (Kind.REWRITING, Kind.BLIND): Resolution.REBASE,
    (Kind.REWRITING, Kind.READING): Resolution.REBASE,
    (Kind.REWRITING, Kind.REPLACING): Resolution.CONFLICT,
    (Kind.REWRITING, Kind.SETTING): Resolution.REBASE,
    (Kind.REWRITING, Kind.REWRITING): Resolution.CONFLICT,
    (Kind.SETTING, Kind.BLIND): Resolution.CONFLICT,
    (Kind.SETTING, Kind.READING): Resolution.CONFLICT,
    (Kind.SETTING, Kind.REPLACING): Resolution.CONFLICT,
    (Kind.SETTING, Kind.REWRITING): Resolution.CONFLICT,
    (Kind.SETTING, Kind.SETTING): Resolution.CONFLICT,
}


def resolve(ours: Kind, theirs: str) -> Resolution:
    """Look up what our change does about an operation that was committed in between."""
    kind = OPERATIONS.get(theirs)
    return Resolution.CONFLICT if kind is None else MATRIX[ours, kind]


def isolation_of(properties: Mapping[str, str]) -> Isolation:
    """Read the property `isolation`."""
    if properties.get("isolation") == Isolation.SNAPSHOT.value:
        return Isolation.SNAPSHOT
    return Isolation.SERIALIZABLE
