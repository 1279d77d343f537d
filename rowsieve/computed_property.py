"""Attributes that are computed at their first use, without a lock.

`functools.cached_property` of Python 3.11 holds one lock for all objects of a class while it
computes: a slow request for one table would make the scans of all other tables wait (invariant 21).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class computed_property(Generic[T]):  # noqa: N801 - used as a decorator, like `property`
    """An attribute that its method computes once per object; the object needs a `__dict__`.

    Thread-safe: concurrent callers may compute it twice, and all get the value of the first to end.
    Nothing is kept if the method raises.
    """

    def __init__(self, method: Callable[[Any], T]) -> None:
        self._method = method
        self._name = method.__name__
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
        """Compute the value; later uses find it in the object's `__dict__` and do not come here."""
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self._method(instance))
        return value
