"""A few seeds of processes that are killed; `python -m tests.writer.kills 0 200` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.writer.kills import Story


@pytest.mark.parametrize("seed", range(3))
def test_killed_writers_lose_nothing_that_they_acknowledged(tmp_path: Path, seed: int) -> None:
    Story(seed, tmp_path).run()
