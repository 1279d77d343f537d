"""The methods of `Table` that store which rows newer versions of their keys hide."""

from __future__ import annotations

from typing import Any

from rowsieve import clock
from rowsieve.arguments.annotations import Metadata, RetryTimeout
from rowsieve.bridges.session import Session
from rowsieve.bridges.where import locating_errors, semantics_of, to_predicate
from rowsieve.changes.change import Question
from rowsieve.changes.column_changes import columns_read
from rowsieve.changes.table_handle import changes
from rowsieve.changes.vector_building import plan_vectors
from rowsieve.changes.vector_merging import plan_merged_vectors
from rowsieve.compaction.rewrite_passes import COMPACTION_RETRY_TIMEOUT_S
from rowsieve.predicate.bind import bind
from rowsieve.retention.retaining import Retaining
from rowsieve.storage.log.log_entry import Commit


class StoringVectors(Retaining):
    """Base class of `Table` with stored deletion vectors, for tables with a key."""

    @changes("build_deletion_vectors")
    def build_deletion_vectors(
        self,
        where: Any = None,
        *,
        dialect: str = "postgres",
        session: Session | None = None,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = COMPACTION_RETRY_TIMEOUT_S,
    ) -> Commit:
        """Store which rows newer versions of their keys hide, so that reads need not compare keys.

        With `where`, only for parts that may hold a matching row, and parts that overlap them.
        Later commits are found from their own keys. Writes no rows, changes no result, and commits
        nothing if all vectors are complete. UnsupportedOperation for a table without a key, whose
        deletes always store vectors. The table then requires writers of protocol 4.
        """
        self._writable("build_deletion_vectors")
        self._order("build_deletion_vectors")
        notes = dict(metadata or {})
        change = self._change("build_deletion_vectors", notes, None, retry_timeout_s)
        schema, question = self._newest.schema, None
        if where is not None:
            semantics = semantics_of(dialect, where, session)
            with locating_errors(where, dialect, schema, semantics):
                predicate = to_predicate(where, dialect, schema, semantics, session)
                bind(predicate, schema, semantics, now_us=0, simplified=False)
            question = Question(predicate, semantics, clock.now_us())
        asked = question
        return self._commit_mutation(
            change,
            lambda snapshot: plan_vectors(self._store, snapshot, asked, notes),
            any_columns=asked is None,
            reads=None if asked is None else (schema, lambda: columns_read(schema, asked, {})),
        )

    @changes("rewrite_position_delete_files")
    def rewrite_position_delete_files(
        self,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = COMPACTION_RETRY_TIMEOUT_S,
    ) -> Commit:
        """Write the stored deletion vectors of a table with a key into as few files as possible.

        Joins small files; drops unreadable vectors and vectors of removed parts. Commits nothing if
        at most one file is small, and none has vectors of parts that are gone.
        """
        self._writable("rewrite_position_delete_files")
        notes = dict(metadata or {})
        return self._commit_mutation(
            self._change("rewrite_position_delete_files", notes, None, retry_timeout_s),
            lambda snapshot: plan_merged_vectors(self._store, snapshot, notes),
            any_columns=True,
        )

    def _store_many_hidden_rows(self, metadata: Metadata | None) -> Commit | None:
        """Store vectors where a first read would compare many keys; None if it would nowhere.

        A table whose compaction leaves no overlap has none.
        """
        if not self._newest.table.key:
            return None
        notes = dict(metadata or {})
        commit = self._commit_mutation(
            self._change("build_deletion_vectors", notes, None, COMPACTION_RETRY_TIMEOUT_S),
            lambda snapshot: plan_vectors(self._store, snapshot, None, notes, if_many=True),
            any_columns=True,
        )
        return commit if commit.committed else None
