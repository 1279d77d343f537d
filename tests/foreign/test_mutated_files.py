"""Damaged files of other writers are read, or refused with an error of ours that names them."""

from __future__ import annotations

from pathlib import Path

from tests import profiles
from tests.foreign import mutated_files


def test_no_damaged_file_stops_the_process_or_raises_another_error(tmp_path: Path) -> None:
    count = 100_000 if profiles.IS_DEEP else 300
    assert mutated_files.faults(0, count, tmp_path) == []
