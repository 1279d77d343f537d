"""What the package does in the background, waited for."""

from __future__ import annotations

from concurrent.futures import wait

from rowsieve.objects import fetching


def finish_background() -> None:
    """Wait for all tasks that `in_background` started."""
    wait(tuple(fetching._background))
