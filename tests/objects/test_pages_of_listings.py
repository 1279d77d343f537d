"""Which pages of a listing are requested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from rowsieve.objects.remote import RemoteStore

PAGES = {
    "sorted": [["f/1", "f/2"], ["f/3", "f/4"], ["f/5"]],
    "unsorted": [["f/4", "f/1"], ["f/5", "f/3"], ["f/2"]],
    "unsorted, none before the end": [["f/2", "f/1"], ["f/5", "f/4"], ["f/6"]],
}


@pytest.mark.parametrize(
    ("order", "until", "names", "page_count"),
    [
        ("sorted", "f/2", ["f/1"], 1),
        ("sorted", "f/3", ["f/1", "f/2"], 2),
        ("sorted", None, ["f/1", "f/2", "f/3", "f/4", "f/5"], 3),
        ("unsorted", "f/4", ["f/1", "f/2", "f/3"], 3),
        ("unsorted, none before the end", "f/4", ["f/1", "f/2"], 2),
    ],
)
def test_a_listing_ends_with_a_sorted_page_that_reaches_its_end(
    order: str,
    until: str | None,
    names: list[str],
    page_count: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requested = []

    def pages(*_: Any, **__: Any) -> Iterator[list[dict[str, str]]]:
        for page in PAGES[order]:
            requested.append(page)
            yield [{"path": path} for path in page]

    monkeypatch.setattr(obstore, "list", pages)
    store = RemoteStore(MemoryStore(), "memory:///listed")
    assert store.list("f", None, until) == names
    assert len(requested) == page_count
