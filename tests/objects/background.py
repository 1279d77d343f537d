"""What the package does in the background, waited for."""

from __future__ import annotations

from concurrent.futures import wait

from rowsieve.objects import fetching


def finish_aside() -> None:
    """Wait for all tasks that `aside` started."""
    wait(tuple(fetching._background))
