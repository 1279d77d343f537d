"""The comparison behind a delay: each peer that is installed returns the right rows."""

from __future__ import annotations

import importlib.util

import pytest

from benchmarks import remote_peers
from benchmarks.remote_peers import PEERS, UPSERTED, measure
from benchmarks.slow_store import slow_store
from tests import profiles


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.skipif(not profiles.IS_DEEP, reason="writes 16 parts for each peer")
def test_each_peer_reads_and_changes_its_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, kind = PEERS[name]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setattr(remote_peers, "UPSERTED", 500)
    with slow_store() as store:
        cells = measure(store, kind(store, 200), 0.0, 1, ["warm", ", after"])
    assert len(cells) == 7
    assert "500" in list(cells)[-1]
    assert UPSERTED == 50_000
    assert all("requests" in cell or cell == "—" for cell in cells.values())
