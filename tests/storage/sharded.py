"""Snapshots whose parts lie in shards, however few they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowsieve.objects import ObjectStore
from rowsieve.storage.log import checkpoint
from rowsieve.storage.log.checkpoint import read_checkpoint, write_checkpoint
from rowsieve.storage.manifests.shards import ShardedParts
from rowsieve.storage.snapshot import Snapshot
from tests.storage.log_fixtures import memory_store


def tiny_shards(parts: int = 2) -> Iterator[None]:
    """While this generator is open, every checkpoint is in shards of so many parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "SHARDED_FROM", 1)
        patch.setattr(checkpoint, "SHARD_PARTS", parts)
        yield


def in_shards(snapshot: Snapshot, parts: int = 2, store: ObjectStore | None = None) -> Snapshot:
    """The same snapshot, as its checkpoint is read."""
    store = store or memory_store()
    for _ in tiny_shards(parts):
        write_checkpoint(store, snapshot)
    return read_checkpoint(store, snapshot.version)


def source_of(snapshot: Snapshot) -> ShardedParts:
    """Where the snapshot's parts lie."""
    (block,) = snapshot.parts.blocks
    assert isinstance(block.source, ShardedParts)
    return block.source
