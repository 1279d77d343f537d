"""Threads that work in the context of whoever gives them work.

So an operation, a span and a user's own context variables are current in the thread that reads for
them. A task gets a copy: it cannot change the context of its caller.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Threads(ThreadPoolExecutor):
    """A pool of threads that runs each task in a copy of the context that submitted it."""

    def submit(self, task: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run the task in a thread; its context is that of this call."""
        return super().submit(partial(copy_context().run, task, *args, **kwargs))


def in_context(task: Callable[..., R], *args: Any) -> Callable[[], R]:
    """Return a call of the task in a copy of the current context, for a thread of its own."""
    return partial(copy_context().run, task, *args)
