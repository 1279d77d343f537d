"""`progress=True`: a bar by rich on stderr, or in a notebook as plain HTML without widgets.

Nothing is imported and nothing is printed without it, and stdout stays untouched. Where stderr is
no terminal, or rich is not installed, the work runs without a bar.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final, TypeAlias

from rowsieve.arguments.annotations import Progress

ShownProgress: TypeAlias = Progress | bool
"""True for a bar, or a function that is called with (done, all)."""

_EVERY_S: Final = 0.1  # between two pictures of a bar in a notebook
ROWS_WRITTEN: Final[ContextVar[Progress | None]] = ContextVar("rowsieve-rows-written", default=None)
"""The function that a call wants to be told of with (rows written into parts, all rows)."""


@contextmanager
def shown(progress: ShownProgress | None, label: str) -> Iterator[Progress | None]:
    """The function that work calls with (done, all): the caller's, or that of a bar; or None."""
    if progress is None or progress is False:
        yield None
    elif progress is not True:
        yield progress
    elif (notebook := _notebook()) is not None:
        yield _in_notebook(notebook, label)
    elif sys.stderr.isatty() and (rich := _rich()) is not None:
        yield from _on_terminal(rich, label)
    else:
        yield None


@contextmanager
def shown_rows_written(progress: ShownProgress | None) -> Iterator[None]:
    """Show the rows that the call in this block writes into parts, of those that it was given."""
    with shown(progress, "rows written") as show:
        token = ROWS_WRITTEN.set(show)
        try:
            yield
        finally:
            ROWS_WRITTEN.reset(token)


class Steps:
    """Counts the steps that are done of `total`, and reports them to a function, if there is one.

    For one thread.
    """

    def __init__(self, show: Progress | None, total: int) -> None:
        self._show, self._total, self._done = show, total, 0

    @property
    def is_shown(self) -> bool:
        """True if somebody watches the steps."""
        return self._show is not None

    def add(self, count: int) -> None:
        """Report that so many more steps are done; never more than all."""
        self._done = min(self._done + count, self._total)
        if self._show is not None:
            self._show(self._done, self._total)

    def finish(self) -> None:
        """Report that all steps are done, also those that turned out not to be needed."""
        if self._done < self._total:
            self.add(self._total)


UNSEEN: Final = Steps(None, 0)
"""Steps that nobody watches."""


def _notebook() -> Any:
    """IPython's `display` module in a notebook, else None; imports nothing that is not there."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return import_module("IPython.display")


def _rich() -> Any:
    try:
        return import_module("rich.progress"), import_module("rich.console")
    except ImportError:
        return None


def _on_terminal(rich: Any, label: str) -> Iterator[Progress]:
    progress, console = rich
    columns = (
        progress.TextColumn(label),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
    )
    out = console.Console(stderr=True)
    with progress.Progress(*columns, console=out, transient=True) as bars:
        task = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


def _in_notebook(display: Any, label: str) -> Callable[[int, int], None]:
    handle: Any = None
    drawn_s = -_EVERY_S

    def show(done: int, total: int) -> None:
        nonlocal handle, drawn_s
        now_s = time.perf_counter()
        if done < total and now_s - drawn_s < _EVERY_S:
            return
        drawn_s = now_s
        picture = display.HTML(bar_html(label, done, total))
        if handle is None:
            handle = display.display(picture, display_id=True)
        else:
            handle.update(picture)

    return show


def bar_html(label: str, done: int, total: int) -> str:
    """A bar as HTML: an element `progress` with its numbers as text."""
    name = html.escape(label)
    return (
        f"<label>{name} <progress value='{done}' max='{max(total, 1)}'></progress> "
        f"{done:,} of {total:,}</label>"
    )
