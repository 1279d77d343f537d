"""The matrix of conflicts: complete, and as it is written."""

from __future__ import annotations

import itertools

import pytest

from rowsieve.storage.log.conflicts import (
    MATRIX,
    OPERATIONS,
    Isolation,
    Kind,
    Resolution,
    isolation_of,
    resolve,
)

BLIND = ("append", "upsert", "apply", "delete_keys")
READING = ("delete", "update")
REPLACING = ("overwrite", "restore")


def test_every_pair_of_kinds_is_resolved() -> None:
    assert set(MATRIX) == set(itertools.product(Kind, Kind))


@pytest.mark.parametrize("theirs", OPERATIONS)
def test_blind_writes_never_conflict(theirs: str) -> None:
    assert resolve(Kind.BLIND, theirs) is Resolution.REBASE


def test_invariant_7_read_modify_write_looks_at_every_change() -> None:
    for theirs in (*BLIND, *READING):
        assert resolve(Kind.READING, theirs) is Resolution.CHECK
    for theirs in REPLACING:
        assert resolve(Kind.READING, theirs) is Resolution.CONFLICT


def test_invariant_rule_12_a_compaction_does_not_count_as_a_change() -> None:
    for ours in (Kind.BLIND, Kind.READING):
        assert resolve(ours, "compact") is Resolution.REBASE


def test_invariant_rule_13_a_compaction_conflicts_with_replaced_content() -> None:
    for theirs in (*REPLACING, "compact"):
        assert resolve(Kind.REWRITING, theirs) is Resolution.CONFLICT
    assert resolve(Kind.REPLACING, "compact") is Resolution.CONFLICT
    for theirs in (*BLIND, *READING):
        assert resolve(Kind.REWRITING, theirs) is Resolution.REBASE


@pytest.mark.parametrize("ours", Kind)
def test_an_unknown_operation_conflicts(ours: Kind) -> None:
    assert resolve(ours, "sprinkle") is Resolution.CONFLICT


@pytest.mark.parametrize("properties", [{}, {"isolation": "serializable"}, {"isolation": "2030"}])
def test_isolation_is_serializable_unless_it_is_snapshot(properties: dict[str, str]) -> None:
    assert isolation_of(properties) is Isolation.SERIALIZABLE
    assert isolation_of({"isolation": "snapshot"}) is Isolation.SNAPSHOT
