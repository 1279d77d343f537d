"""The conflict matrix: how a commit reacts to commits that were published since it was based.

| ours / theirs | blind    | reading  | replacing          | compact  | set      | alter    |
|---------------|----------|----------|--------------------|----------|----------|----------|
| blind         | REBASE   | REBASE   | REBASE             | REBASE   | REBASE   | REBASE   |
| reading       | CHECK    | CHECK    | CONFLICT           | REBASE   | CONFLICT | CONFLICT |
| replacing     | CONFLICT | CONFLICT | CONFLICT           | CONFLICT | CONFLICT | CONFLICT |
| compact       | REBASE   | REBASE   | CONFLICT           | CONFLICT | REBASE   | REBASE   |
| set           | CONFLICT | CONFLICT | CONFLICT           | CONFLICT | CONFLICT | CONFLICT |
| alter         | CONFLICT | CONFLICT | CONFLICT           | CONFLICT | CONFLICT | CONFLICT |

- Blind operations are `append`, `upsert`, `apply` and `delete_keys`. They never conflict: per key
  the last commit wins.
- Reading operations are `insert`, `delete`, `update`, `merge`, `transaction` and `overwrite` by
  condition: read-modify-write (invariant I7). CHECK tests whether a concurrent commit changed rows
  that they read; if so, they are computed again. The table's isolation level defines which rows
  count as read.
- Replacing operations are `restore`, `overwrite` of the whole table, and `rewrite_rows`, a rewrite
  of parts that changes values. The log uses one name for both kinds of overwrite. `create` is the
  first commit, which no other precedes.
- `compact`, `rewrite_data_files`, `migrate`, `analyze`, `build_deletion_vectors` and
  `rewrite_position_delete_files` (compact) do not change the table's rows (invariants, rule 12).
  They conflict with operations that replace the table's content (rule 13).
  The commit log itself checks that their input parts, with their deletion vectors, are still live:
  a removed part cannot be removed again.
- `set_properties` and `unset_properties` (set) are computed again on any new head: they change the
  properties that they name and keep all others. A reading operation starts again after them,
  because the isolation level may have changed.
- `create_branch`, `create_tag`, `drop_branch` and `drop_tag` (set) register refs as properties. A
  `fast_forward` replaces the table's content by that of a branch.
- `expire_versions` and `remove_orphans` (set) raise a floor of the table, which is a property. They
  only ever raise it, so that they take effect on any new head.
- `alter` changes the columns. It is computed again on any new head, and fails if that has other
  columns than the version it began with. The commit log itself checks that no commit brings rows
  with a column that was dropped or changed since they were written (invariants, rule 14).
  A reading operation is computed again after it, if the columns that it reads and assigns are the
  same.

Under `serializable` every change reads the version directly before its own: the commits are
equivalent to a serial execution in the order of their versions. CHECK finds a commit that touched a
row that was read (in tables without a key: its part), or added a row that the condition matches.
Under `snapshot` CHECK looks only at the touched rows: it misses a row that a concurrent commit
makes match, and two changes that read each other's rows may both commit (write skew).

Soundness: an operation without a kind is never committed. One of another writer's conflicts with
everything, and the change feed refuses it: it may have changed rows, or only moved them. An unknown
isolation level means `serializable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Resolution(Enum):
    """The reaction to one concurrent commit."""

    REBASE = "rebase"  # commit on top of it unchanged
    CHECK = "check"  # commit unchanged, or compute again if it changed rows that were read
    CONFLICT = "conflict"  # compute again on top of it, or raise CommitConflict


class Kind(Enum):
    """The kind of a change: by what it depends on in the table."""

    BLIND = "blind"  # not at all
    READING = "reading"  # on the rows that match its condition
    REPLACING = "replacing"  # on the list of parts: the change replaces all of them
    REWRITING = "rewriting"  # on the parts that it rewrites, not on rows
    SETTING = "setting"  # on the properties of the table, not on rows
    ALTERING = "altering"  # on the columns of the table, not on rows


class Isolation(Enum):
    """The table property `isolation`: which version a reading change must have read."""

    SERIALIZABLE = "serializable"  # the version directly before its own
    SNAPSHOT = "snapshot"  # any, if no other commit changed the rows that it writes


OPERATIONS: Final[Mapping[str, Kind]] = {
    "create": Kind.REPLACING,
    "append": Kind.BLIND,
    "append_updates": Kind.BLIND,  # it checks the frontier of the head itself
    "upsert": Kind.BLIND,
    "apply": Kind.BLIND,
    "delete_keys": Kind.BLIND,
    "insert": Kind.READING,  # of SQL: it checks that no key is there
    "delete": Kind.READING,
    "update": Kind.READING,
    "merge": Kind.READING,
    "transaction": Kind.READING,  # the net changes of several calls
    "overwrite": Kind.REPLACING,  # by condition, or of the whole table
    "restore": Kind.REPLACING,
    "rewrite_rows": Kind.REPLACING,  # of a procedure that changes values in place
    "compact": Kind.REWRITING,
    "rewrite_data_files": Kind.REWRITING,
    "migrate": Kind.REWRITING,
    "analyze": Kind.REWRITING,
    "build_deletion_vectors": Kind.REWRITING,
    "rewrite_position_delete_files": Kind.REWRITING,
    "set_properties": Kind.SETTING,
    "unset_properties": Kind.SETTING,
    "advance_since": Kind.SETTING,
    "expire_versions": Kind.SETTING,
    "remove_orphans": Kind.SETTING,
    "create_branch": Kind.SETTING,
    "create_tag": Kind.SETTING,
    "drop_branch": Kind.SETTING,
    "drop_tag": Kind.SETTING,
    "move": Kind.SETTING,  # into a database, or out of it
    "fast_forward": Kind.REPLACING,  # by the version of a branch
    "alter": Kind.ALTERING,
}
RETENTION_OPERATIONS: Final = frozenset(
    {
        "expire_versions",
        "remove_orphans",
        "create_branch",
        "create_tag",
        "drop_branch",
        "drop_tag",
        "move",
    }
)
"""Operations whose commits change neither rows nor properties that a user sets."""

MATRIX: Final[Mapping[tuple[Kind, Kind], Resolution]] = {
    (Kind.BLIND, Kind.BLIND): Resolution.REBASE,
    (Kind.BLIND, Kind.READING): Resolution.REBASE,
    (Kind.BLIND, Kind.REPLACING): Resolution.REBASE,
    (Kind.BLIND, Kind.SETTING): Resolution.REBASE,
    (Kind.BLIND, Kind.REWRITING): Resolution.REBASE,
    (Kind.BLIND, Kind.ALTERING): Resolution.REBASE,
    (Kind.READING, Kind.BLIND): Resolution.CHECK,
    (Kind.READING, Kind.READING): Resolution.CHECK,
    (Kind.READING, Kind.REPLACING): Resolution.CONFLICT,
    (Kind.READING, Kind.SETTING): Resolution.CONFLICT,
    (Kind.READING, Kind.REWRITING): Resolution.REBASE,
    (Kind.READING, Kind.ALTERING): Resolution.CONFLICT,
    (Kind.REPLACING, Kind.BLIND): Resolution.CONFLICT,
    (Kind.REPLACING, Kind.READING): Resolution.CONFLICT,
    (Kind.REPLACING, Kind.REPLACING): Resolution.CONFLICT,
    (Kind.REPLACING, Kind.SETTING): Resolution.CONFLICT,
    (Kind.REPLACING, Kind.REWRITING): Resolution.CONFLICT,
    (Kind.REPLACING, Kind.ALTERING): Resolution.CONFLICT,
    (Kind.REWRITING, Kind.BLIND): Resolution.REBASE,
    (Kind.REWRITING, Kind.READING): Resolution.REBASE,
    (Kind.REWRITING, Kind.REPLACING): Resolution.CONFLICT,
    (Kind.REWRITING, Kind.SETTING): Resolution.REBASE,
    (Kind.REWRITING, Kind.REWRITING): Resolution.CONFLICT,
    (Kind.REWRITING, Kind.ALTERING): Resolution.REBASE,
    (Kind.SETTING, Kind.BLIND): Resolution.CONFLICT,
    (Kind.SETTING, Kind.READING): Resolution.CONFLICT,
    (Kind.SETTING, Kind.REPLACING): Resolution.CONFLICT,
    (Kind.SETTING, Kind.REWRITING): Resolution.CONFLICT,
    (Kind.SETTING, Kind.SETTING): Resolution.CONFLICT,
    (Kind.SETTING, Kind.ALTERING): Resolution.CONFLICT,
    (Kind.ALTERING, Kind.BLIND): Resolution.CONFLICT,
    (Kind.ALTERING, Kind.READING): Resolution.CONFLICT,
    (Kind.ALTERING, Kind.REPLACING): Resolution.CONFLICT,
    (Kind.ALTERING, Kind.SETTING): Resolution.CONFLICT,
    (Kind.ALTERING, Kind.REWRITING): Resolution.CONFLICT,
    (Kind.ALTERING, Kind.ALTERING): Resolution.CONFLICT,
}


def resolve(ours: Kind, theirs: str) -> Resolution:
    """Return how our change reacts to a concurrent operation, by its name in the log."""
    kind = OPERATIONS.get(theirs)
    return Resolution.CONFLICT if kind is None else MATRIX[ours, kind]


def isolation_of(properties: Mapping[str, str]) -> Isolation:
    """Read the property `isolation`; any value but "snapshot" means SERIALIZABLE."""
    if properties.get("isolation") == Isolation.SNAPSHOT.value:
        return Isolation.SNAPSHOT
    return Isolation.SERIALIZABLE
