"""Empty files that note what has happened, for all processes that see their folder."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

PATIENCE_S: Final = 60.0


def is_first(mark: Path) -> bool:
    """Whether this is the first call with this file, in any process; creates it."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def wait_for(mark: Path) -> bool:
    """Wait until another process has created the file; False if it did not."""
    ends = time.monotonic() + PATIENCE_S
    while not (found := mark.exists()) and time.monotonic() < ends:
        time.sleep(0.02)
    return found
