"""Data files with row groups and pages of a few rows, so that a small table has many of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rowsieve.storage.parts import part_file, part_writer


@contextmanager
def small_pages(
    page_rows: int, group_rows: int, *, dictionary_ratio: float | None = None
) -> Iterator[None]:
    """Let files that are written meanwhile have pages and row groups of so many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_file, "PAGE_ROWS", page_rows)
        if dictionary_ratio is not None:
            patch.setattr(part_file, "_DICTIONARY_RATIO", dictionary_ratio)
        for module in (part_file, part_writer):
            patch.setattr(module, "ROW_GROUP_ROWS", group_rows)
        yield
