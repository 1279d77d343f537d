"""Objects that are older than they are: what a process left that died some time ago."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from rowsieve.objects.store import Details
from rowsieve.retention import leases

DAY_S: Final = 86_400.0


@contextmanager
def aged(owner: Any, is_older: Callable[[str], bool], seconds: float = DAY_S) -> Iterator[None]:
    """Let the objects of a store, or of all stores of a class, be older if their paths fit.

    Leases are looked at again at once.
    """
    details = owner.details

    def older(*args: Any) -> Details:
        return {
            path: each._replace(modified_us=each.modified_us - round(seconds * 1e6))
            if is_older(path)
            else each
            for path, each in details(*args).items()
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, "details", older)
        patch.setattr(leases, "SECOND_LOOK_S", 0.0)
        yield
