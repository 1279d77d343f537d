"""Puts that are repeated: what they read where the name exists."""

from __future__ import annotations

import pytest

from rowsieve.errors import CorruptData
from rowsieve.objects import open_store, put_fresh, put_if_absent
from tests.faults.stores import FaultyStore, RemoteFaultyStore
from tests.faults.vocabulary import Fault
from tests.small_tables import fresh_uri

PATH = "_rowsieve/log/a.arrow"


def reads(store: FaultyStore) -> int:
    return sum(name == "get" for name, _ in store.calls)


def test_other_bytes_under_the_name_are_read_once() -> None:
    """Only an answer that begins like ours may be a cut one."""
    inner = open_store(fresh_uri())
    inner.put_new(PATH, b"of another process")
    store = RemoteFaultyStore(inner)
    assert not put_if_absent(store, PATH, b"of this process")
    assert reads(store) == 1
    with pytest.raises(CorruptData, match="18 bytes found, 15 bytes written"):
        put_fresh(store, PATH, b"of this process")
    assert reads(store) == 2


def test_a_cut_answer_is_read_again() -> None:
    inner = open_store(fresh_uri())
    inner.put_new(PATH, b"of this process")
    store = RemoteFaultyStore(inner).meet_where(Fault.TRUNCATED, "get", PATH.__eq__, times=1)
    assert put_if_absent(store, PATH, b"of this process")
    assert store.is_over
    assert reads(store) == 2
