"""Lance: a columnar format with deletion files, without an index on the key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa

from benchmarks.peers.protocol import Keys


class Lance:
    """A dataset; a reader stays at its version."""

    def __init__(self, folder: Path) -> None:
        self._uri = str(folder / "dataset")

    def load(self, chunks: Iterator[pa.Table]) -> None:
        """Append chunk after chunk."""
        for i, chunk in enumerate(chunks):
            lance.write_dataset(chunk, self._uri, mode="append" if i else "create")
        self.open()

    def open(self) -> None:
        """Read the manifest."""
        self._dataset = lance.dataset(self._uri)

    def select(self, keys: Keys) -> pa.Table:
        """Read with a filter."""
        return self._dataset.to_table(filter=None if keys.everything else keys.sql)

    def count(self, keys: Keys) -> int:
        """Count with a filter."""
        return int(self._dataset.count_rows(None if keys.everything else keys.sql))

    def upsert(self, rows: pa.Table) -> None:
        """Merge by key."""
        merge = lance.dataset(self._uri).merge_insert("id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def compact(self) -> None:
        """Rewrite fragments with deleted rows."""
        lance.dataset(self._uri).optimize.compact_files(materialize_deletions_threshold=0.0)
