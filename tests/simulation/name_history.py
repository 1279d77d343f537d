"""Whether calls on the names of a catalog can have happened one after the other.

Each call has an effect at one moment between its begin and its end; of a call that failed without a
verdict, at any moment after its begin, or never. The search follows Wing and Gong, "Testing and
Verifying Concurrent Objects" (1993): it is exponential, and histories are short.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

Names = Mapping[str, str]
"""The table of each name, by the mark of its creation."""

OUTSIDE: Final = "outside "
"""Begins the name of a table that has a log of its own, at its place."""

NEVER: Final = 1 << 62


@dataclass
class NameCall:
    """A call on names, and what it was told.

    `told` is "" without a verdict. `table`: what was created, found, or moved.
    """

    mark: str
    what: str
    name: str
    begun: int
    new_name: str = ""
    ended: int = NEVER
    told: str = ""
    table: str = ""
    continues: bool = False
    """A purge that may have ended another one."""


def split_purges(calls: Sequence[NameCall]) -> list[NameCall]:
    """Return the calls with each refused purge as two: it may take a name, and give it back.

    A purge that other purges overlap may end what one of them began, and takes no name then.
    """
    split: list[NameCall] = []
    for call in calls:
        if call.what != "purge":
            split.append(call)
        elif call.told == "refused":
            away = replace(call, what="away", mark=f"away {call.mark}")
            split += [away, replace(call, what="back", mark=f"back {call.mark}", table=away.mark)]
        else:
            overlap = any(each.what == "purge" and each is not call for each in calls)
            split.append(replace(call, continues=overlap))
    return split


def is_serial(start: Names, calls: Sequence[NameCall], end: Names) -> bool:
    """Return whether some order of the calls explains all that they were told, and the end."""
    seen: set[tuple[frozenset[int], frozenset[tuple[str, str]]]] = set()
    waiting = [(frozenset(range(len(calls))), dict(start))]
    while waiting:
        left, names = waiting.pop()
        known = (left, frozenset(names.items()))
        if known in seen:
            continue
        seen.add(known)
        if _inside(names) == end and all(calls[i].ended == NEVER for i in left):
            return True
        first_end = min((calls[i].ended for i in left), default=NEVER)
        for i in left:
            if calls[i].begun <= first_end:
                waiting += [(left - {i}, after) for after in _effects(names, calls[i])]
    return False


def _effects(names: Names, call: NameCall) -> Iterator[dict[str, str]]:
    """The names after a call at this moment; none if it was told what is not so now."""
    there = call.name in names
    match call.what, call.told:
        case "create", "" | "done" if not there:
            yield {**names, call.name: call.table}
        case "drop" | "purge", "" | "done" if there:
            yield _without(names, call.name)
        case "purge", "done" if call.continues:
            yield dict(names)
        case "away", _ if there:
            yield {**_without(names, call.name), call.mark: names[call.name]}
            yield dict(names)
        case "back", _ if call.table in names and not there:
            yield {**_without(names, call.table), call.name: names[call.table]}
        case "back", _ if call.table in names:
            yield _without(names, call.table)
        case "rename", "" | "done" if there and call.new_name not in names:
            yield {**_without(names, call.name), call.new_name: names[call.name]}
        case "move_out", "" | "done" if there:
            yield {**_without(names, call.name), f"{OUTSIDE}{names[call.name]}": names[call.name]}
        case "move_in", "" | "done" if f"{OUTSIDE}{call.table}" in names and not there:
            yield {**_without(names, f"{OUTSIDE}{call.table}"), call.name: call.table}
        case "move_in", "exists" if there or f"{OUTSIDE}{call.table}" not in names:
            yield dict(names)
        case "open", "done" if names.get(call.name) == call.table:
            yield dict(names)
        case "drop_namespace", "" | "done":
            prefix = f"{call.name}."
            yield {n: table for n, table in names.items() if not n.startswith(prefix)}
        case "create", "exists" if there:
            yield dict(names)
        case "rename", "exists" if call.new_name in names:
            yield dict(names)
        case "open" | "drop" | "purge" | "rename" | "move_out", "absent" if not there:
            yield dict(names)
        case _, "refused" | "":
            yield dict(names)


def _inside(names: Names) -> dict[str, str]:
    return {name: table for name, table in names.items() if not name.startswith(OUTSIDE)}


def _without(names: Names, name: str) -> dict[str, str]:
    return {each: table for each, table in names.items() if each != name}
