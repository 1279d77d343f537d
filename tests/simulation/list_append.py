"""Histories of lists that transactions append to and read, judged without knowing any schedule.

Each append adds an element that nobody else adds, so the longest list of a key is the order of its
writes. From that order follow dependencies between transactions: write-write, write-read and
read-write, and those of real time. A history is strictly serializable only if they have no cycle.
The search takes time linear in transactions and elements. Source: Kingsbury and Alvaro, Elle,
VLDB 2020.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Final

Lists = Mapping[int, Sequence[int]]
READ_ALL_AT_THE_END: Final = "the last read"


@dataclass(frozen=True)
class Transaction:
    """What a transaction appended or read, and when; `ended` is None if nobody knows its outcome.

    `appended` are keys, all of which get `element`. `is_refused`: it was said to have no effect.
    """

    name: str
    begun: int
    ended: int | None
    element: int | None = None
    appended: Sequence[int] = ()
    read: Lists = field(default_factory=dict)
    is_refused: bool = False


def anomalies(history: Sequence[Transaction]) -> list[str]:
    """Return what no serial execution explains; the last transaction reads all lists at the end."""
    problems = list(_broken_lists(history))
    if problems:
        return problems
    orders = history[-1].read
    cycle = _cycle(history, orders)
    return [] if cycle is None else [f"cycle: {' -> '.join(cycle)}"]


def _broken_lists(history: Sequence[Transaction]) -> Iterator[str]:
    """Lists that are not a prefix of the last one, and elements that are missing or repeated."""
    orders = history[-1].read
    writers = {each.element: each for each in history if each.element is not None}
    for each in history:
        for key, found in each.read.items():
            if list(orders[key][: len(found)]) != list(found):
                yield f"{each.name} read {found} of {key}, which ended as {orders[key]}"
    present: defaultdict[int, list[int]] = defaultdict(list)
    for key, order in orders.items():
        for element in order:
            present[element].append(key)
    for found_element, keys in present.items():
        writer = writers.get(found_element)
        if writer is None or sorted(keys) != sorted(writer.appended):
            yield f"{found_element} is in {keys}, but {writer} appended it"
        elif writer.is_refused:
            yield f"{found_element} of {writer.name} is in {keys} though it was refused"
    for each in history:
        is_settled = each.ended is not None and not each.is_refused
        if each.element is not None and is_settled and each.element not in present:
            yield f"{each.name} has ended, and its {each.element} is lost"


def _cycle(history: Sequence[Transaction], orders: Lists) -> list[str] | None:
    """A cycle of dependencies, or None."""
    graph: TopologicalSorter[str] = TopologicalSorter()
    for before, after in (*_of_lists(history, orders), *_of_time(history)):
        if before != after:
            graph.add(after, before)
    try:
        graph.prepare()
    except CycleError as error:
        return [str(node) for node in error.args[1]]
    return None


def _of_lists(history: Sequence[Transaction], orders: Lists) -> Iterator[tuple[str, str]]:
    writer = {each.element: each.name for each in history if each.element is not None}
    for order in orders.values():
        for before, after in itertools.pairwise(order):
            yield writer[before], writer[after]
    for each in history:
        for key, found in each.read.items():
            if found:
                yield writer[found[-1]], each.name
            if len(found) < len(orders[key]):
                yield each.name, writer[orders[key][len(found)]]


def _of_time(history: Sequence[Transaction]) -> Iterator[tuple[str, str]]:
    """Order by real time through a chain of moments: as many dependencies as events."""
    events = [(each.begun, False, each.name) for each in history]
    events += [(each.ended, True, each.name) for each in history if each.ended is not None]
    moment = "moment 0"
    for number, (_, is_end, name) in enumerate(sorted(events), 1):
        if is_end:
            following = f"moment {number}"
            yield moment, following
            yield name, following
            moment = following
        else:
            yield moment, name
