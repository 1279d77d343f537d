"""The matrix of conflicts: complete, and as it is written."""

from __future__ import annotations

import itertools

import pytest

from rowsieve.storage.conflicts import MATRIX, OPERATIONS, Resolution, resolve


def test_every_pair_of_operations_is_resolved() -> None:
    assert set(MATRIX) == set(itertools.product(OPERATIONS, OPERATIONS))


@pytest.mark.parametrize("theirs", OPERATIONS)
@pytest.mark.parametrize("ours", ["append", "upsert", "apply", "delete_keys"])
def test_blind_writes_never_conflict(ours: str, theirs: str) -> None:
    assert resolve(ours, theirs) is Resolution.REBASE


@pytest.mark.parametrize("ours", ["delete", "update"])
def test_invariant_7_read_modify_write_looks_at_every_change(ours: str) -> None:
    for theirs in ("append", "upsert", "apply", "delete_keys", "delete", "update"):
        assert resolve(ours, theirs) is Resolution.CHECK_KEYS
    for theirs in ("overwrite", "restore"):
        assert resolve(ours, theirs) is Resolution.CONFLICT


def test_invariant_rule_12_a_compaction_is_no_change() -> None:
    for ours in ("append", "upsert", "apply", "delete_keys", "delete", "update"):
        assert resolve(ours, "compact") is Resolution.REBASE


def test_invariant_rule_13_a_compaction_conflicts_with_what_replaces_content() -> None:
    for theirs in ("overwrite", "restore", "compact"):
        assert resolve("compact", theirs) is Resolution.CONFLICT
        assert resolve(theirs, "compact") is Resolution.CONFLICT
    for theirs in ("append", "upsert", "apply", "delete_keys", "delete", "update"):
        assert resolve("compact", theirs) is Resolution.REBASE


def test_an_unknown_operation_conflicts() -> None:
    assert resolve("upsert", "sprinkle") is Resolution.CONFLICT
    assert resolve("sprinkle", "upsert") is Resolution.CONFLICT
