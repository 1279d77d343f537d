"""Ctrl-C at a call of ours, as a person or a notebook sends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.faults.vocabulary import Fault


def interrupting(call: Callable[..., Any], fault: Fault = Fault.INTERRUPTED) -> Callable[..., Any]:
    """A call that Ctrl-C meets: INTERRUPTED, or INTERRUPTED_AFTER once it has had its effect."""

    def interrupted(*args: Any, **options: Any) -> None:
        if fault is Fault.INTERRUPTED_AFTER:
            call(*args, **options)
        raise KeyboardInterrupt(fault.value)

    return interrupted


@contextmanager
def interrupted(owner: Any, name: str, fault: Fault = Fault.INTERRUPTED) -> Iterator[None]:
    """Let a method of an object or class meet Ctrl-C, which has to come out of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, interrupting(getattr(owner, name), fault))
        with pytest.raises(KeyboardInterrupt):
            yield
