"""The methods of `Table` for its branches and tags."""

from __future__ import annotations

from typing import Self

import pyarrow as pa

from rowsieve.arguments.annotations import Metadata, Moment, RetryTimeout, Version
from rowsieve.changes.method_base import TableMethods
from rowsieve.refs.opening_refs import handle_at
from rowsieve.refs.publishing import fast_forward
from rowsieve.refs.registering import create_ref, drop_ref, list_refs
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.refs import RefKind, own_ref
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S


class RefMethods(TableMethods):
    """Branches and tags."""

    @property
    def ref(self) -> str | None:
        """The name of the branch or tag that this is; None for the table itself."""
        this_ref = own_ref(self.handle.pinned.table.properties)
        return None if this_ref is None else this_ref.name

    def refs(self) -> pa.Table:
        """Return the branches and tags: (name, kind, version, base_version, of, timestamp).

        `version` and `timestamp` are those of the newest version of a branch; `base_version` is the
        version that it began with, of the branch in `of`, which is `main` for the table itself.
        """
        return list_refs(self.handle)

    def at_ref(self, name: str) -> Self:
        """Open a branch for reading and writing, or a tag for reading; VersionNotFound if none."""
        return type(self)(handle_at(self.handle, name))

    def tag(
        self,
        name: str,
        *,
        version: Version | None = None,
        as_of: Moment | None = None,
        metadata: Metadata | None = None,
    ) -> Self:
        """Give a version a name under which it can be read for ever; open it for reading.

        Without `version` and `as_of`, the newest version. Retention keeps its files until
        `drop_tag`. InvalidInput if the table has a branch or tag of this name.
        """
        return type(self)(create_ref(self.handle, RefKind.TAG, name, version, as_of, metadata)[1])

    def branch(
        self,
        name: str,
        *,
        version: Version | None = None,
        as_of: Moment | None = None,
        metadata: Metadata | None = None,
    ) -> Self:
        """Begin a branch with a version, over the same files; open it for reading and writing.

        Without `version` and `as_of`, the newest version; `version` may be the name of a tag. The
        branch has versions of its own from then on, and its changes are seen nowhere else until
        `fast_forward`. InvalidInput if the table has a branch or tag of this name.
        """
        return type(self)(
            create_ref(self.handle, RefKind.BRANCH, name, version, as_of, metadata)[1]
        )

    def fast_forward(
        self,
        name: str,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Make the newest version of a branch the newest one of the table, in one commit.

        Copies no rows, unless several commits of the branch have written the same keys: the branch
        is then compacted first. CommitConflict, which names what has changed, if rows, columns or
        properties of the table have changed since the branch began or was last published. The
        branch stays as it is, and may go on.
        """
        return fast_forward(self.handle, name, metadata, retry_timeout_s)

    def drop_ref(self, name: str, *, metadata: Metadata | None = None) -> Commit:
        """Remove a branch or tag, and delete the files that nothing else needs.

        What a lease protects is deleted by a later `vacuum`. VersionNotFound if there is none.
        """
        return drop_ref(self.handle, name, None, metadata)

    def drop_branch(self, name: str, *, metadata: Metadata | None = None) -> Commit:
        """As `drop_ref`; InvalidInput for a tag."""
        return drop_ref(self.handle, name, RefKind.BRANCH, metadata)

    def drop_tag(self, name: str, *, metadata: Metadata | None = None) -> Commit:
        """As `drop_ref`; InvalidInput for a branch."""
        return drop_ref(self.handle, name, RefKind.TAG, metadata)
