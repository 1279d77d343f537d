"""Listings that say something else than what is stored: late, torn, without some names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rowsieve.objects import ObjectStore
from rowsieve.objects.store import Details


class ChangedListings:
    """A store whose listings go through a function, which gets the prefix and what is stored.

    Objects of `list` have no details. Without `lists`, only listings with details change.
    """

    def __init__(
        self,
        store: ObjectStore,
        change: Callable[[str, Details], Details],
        *,
        lists: bool = True,
    ) -> None:
        self._store, self._change, self._lists = store, change, lists

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def details(self, prefix: str, most: int | None = None) -> Details:
        return self._change(prefix, self._store.details(prefix, most))

    def list(self, prefix: str, after: str | None = None, until: str | None = None) -> list[str]:
        names = self._store.list(prefix, after, until)
        if not self._lists:
            return list(names)
        return list(self._change(prefix, dict.fromkeys(names)))  # type: ignore[arg-type]
