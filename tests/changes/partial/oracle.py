"""Partial changes applied one after another to dicts: slow and obvious.

A change is a dict with the key `k`, the columns that it gives, and "op" of "d" to delete.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]
Rows = dict[Any, Row]


def apply_change(
    rows: Rows, change: Mapping[str, Any], defaults: Mapping[str, Any], rules: Mapping[str, str]
) -> None:
    """Apply one change to the rows by key; `defaults` has every column but the key."""
    key = change["k"]
    if change.get("op") == "d":
        rows.pop(key, None)
        return
    before = rows.get(key)
    after: Row = {"k": key}
    for name, default in defaults.items():
        if name not in change:
            after[name] = default if before is None else before[name]
        elif before is None:
            after[name] = started(change[name], rules.get(name, "last"))
        else:
            after[name] = combined(before[name], change[name], rules.get(name, "last"))
    rows[key] = after


def started(value: Any, rule: str) -> Any:
    """The value of a new row."""
    if rule in ("union_of_lists", "json_merge"):
        return combined(None, value, rule)
    return value


def combined(before: Any, value: Any, rule: str) -> Any:
    """The value of a row after a change gives one."""
    if rule == "last":
        return value
    if rule == "first":
        return before
    if value is None:
        return before
    if rule == "json_merge":
        return patched(before, value)
    if rule == "union_of_lists":
        return union(before or [], value)
    if before is None or rule == "last_not_null":
        return value
    if rule == "sum":
        return before + value
    least = min(before, value, key=ordered)
    return least if rule == "min" else max(value, before, key=ordered)


def ordered(value: Any) -> Any:
    """A value whose order is that of ORDER BY: NaN is last, and -0.0 before 0.0."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return value


def union(left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
    """The items of both, each once, as they first occur."""
    items: list[Any] = []
    seen = set()
    for item in [*left, *right]:
        if (form := same(item)) not in seen:
            seen.add(form)
            items.append(item)
    return items


def same(value: Any) -> str:
    """Text that is equal where values are as items: NaN is NaN, and -0.0 is 0.0."""
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, dict):
        return repr({name: same(member) for name, member in value.items()})
    return repr(value)


def patched(target: str | None, patch: str) -> str:
    """RFC 7396, section 2, over the values of Python."""
    value = None if target is None else json.loads(target)
    return json.dumps(_patched(value, json.loads(patch)), separators=(",", ":"))


def _patched(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    members = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            members.pop(name, None)
        else:
            members[name] = _patched(members.get(name), value)
    return members
