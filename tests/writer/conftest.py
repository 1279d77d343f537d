"""Fixtures of the writer's tests."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a sync cost nothing: no test here cuts the power of the machine."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
