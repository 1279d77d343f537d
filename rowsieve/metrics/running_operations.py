"""Operations: reads, changes and procedures while they run, each with an id.

An operation is current in the context of its call, and so in the threads that work for it. Reports,
log records and spans are attributed by it. A reporter that is also an `Observer` is told when an
operation begins and ends.

An observer never affects a result or a commit: what it raises is logged.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias, TypeVar, cast

_LOG: Final = logging.getLogger("rowsieve")
Kind: TypeAlias = Literal["plan", "scan", "change", "procedure"]
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Operation:
    """The planning of a read, a read, a change, or a call of a procedure.

    `name` is "plan", "scan", that of the change, or that of the procedure; `table` the table's URI,
    empty for procedures without one. `planned_s` is the time that planning took before it began, if
    it was no operation of its own.
    `log_fields` and its entry of `states` are an observer's own.
    """

    kind: Kind
    name: str
    table: str
    planned_s: float = 0.0
    observer: Observer | None = None
    log_fields: dict[str, str] = field(default_factory=dict)
    states: dict[object, object] = field(default_factory=dict, repr=False)
    context: Context | None = field(default=None, repr=False)
    _id: str = ""

    @property
    def id(self) -> str:
        """16 hexadecimal digits, random; made when they are first needed."""
        if not self._id:
            self._id = os.urandom(8).hex()
        return self._id

    def begin(self) -> Callable[[], None]:
        """Tell the observer in the current context; return what undoes its changes of that."""
        assert self.observer is not None
        try:
            return self.observer.begun(self)
        except Exception:
            _LOG.exception("%s failed on a beginning", type(self.observer).__name__)
            self.observer = None
            return _nothing

    def end(self, error: BaseException | None = None) -> None:
        """Tell the observer of the end; only the first end counts."""
        observer, self.observer, self.context = self.observer, None, None
        if observer is None:
            return
        try:
            observer.ended(self, error)
        except Exception:
            _LOG.exception("%s failed on an end", type(observer).__name__)

    def run(self, work: Callable[[], T]) -> T:
        """Run the work in the context of an operation that `opened` made."""
        return work() if self.context is None else self.context.copy().run(work)

    def each(self, items: Iterator[T]) -> Iterator[T]:
        """Yield the items, each of which is made in the operation's context."""
        context = Context() if self.context is None else self.context.copy()
        try:
            while True:
                try:
                    item = context.run(next, items)
                except StopIteration:
                    return
                yield item
        finally:
            if isinstance(items, Generator):
                context.run(items.close)


class Observer(Protocol):
    """A reporter that is told of operations while they run; must be thread-safe and fast."""

    def begun(self, operation: Operation) -> Callable[[], None]:
        """Note a beginning; changes of the context are undone by what is returned."""

    def ended(self, operation: Operation, error: BaseException | None) -> None:
        """Note an end, after the operation's report."""


_CURRENT: Final[ContextVar[Operation | None]] = ContextVar("rowsieve-operation", default=None)


def current_operation() -> Operation | None:
    """Return the innermost operation of this context."""
    return _CURRENT.get()


def current_id() -> str:
    """Return the id of the innermost operation; empty outside of all."""
    operation = _CURRENT.get()
    return "" if operation is None else operation.id


@contextmanager
def operation(kind: Kind, name: str, table: str, reporter: object) -> Iterator[Operation]:
    """Make the block an operation; a change inside a change of the same table belongs to it."""
    outer = _CURRENT.get()
    if outer is not None and (outer.kind, outer.table) == (kind, table):
        yield outer
        return
    inner = _new_operation(kind, name, table, reporter)
    token = _CURRENT.set(inner)
    leave = None if inner.observer is None else inner.begin()
    try:
        yield inner
    except BaseException as error:
        if leave is not None:
            inner.end(error)
        raise
    finally:
        if leave is not None:
            inner.end()
            leave()
        _CURRENT.reset(token)


def opened(
    kind: Kind, name: str, table: str, reporter: object, planned_s: float = 0.0
) -> Operation:
    """Begin an operation that ends elsewhere, such as a stream; its context is a copy."""
    started = _new_operation(kind, name, table, reporter, planned_s)
    started.context = copy_context()
    started.context.run(_CURRENT.set, started)
    if started.observer is not None:
        started.context.run(started.begin)
    return started


def _new_operation(
    kind: Kind, name: str, table: str, reporter: object, planned_s: float = 0.0
) -> Operation:
    observer = reporter if callable(getattr(reporter, "begun", None)) else None
    return Operation(kind, name, table, planned_s, cast("Observer | None", observer))


def _nothing() -> None:
    """Undo nothing."""
