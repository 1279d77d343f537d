"""The records of a logic test file, in the format of sqllogictest.

    statement ok | statement error [regex]     the statement follows, up to a blank line
    query TYPES [nosort|rowsort|valuesort] [label]    the query, then `----` and its rows, or none
    query error [regex]
    skipif NAME, onlyif NAME                    for the next record
    include GLOB                                the records of these files, sorted by name
    halt; control, hash-threshold, subtest, sleep, system, connection: passed over

Files of other projects are read as they are; what a record expects is used where it is ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ENGINE = "datafusion"
"""The name that `skipif` and `onlyif` know this engine by."""

_CONDITION = re.compile(r"(skipif|onlyif)\s+(\S+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that succeeds, or fails with a message in which `error` is found."""

    line: int
    sql: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A query; `rows` are the lines written below it, None where there is no `----`."""

    line: int
    sql: str
    sort: str = "nosort"
    rows: tuple[str, ...] | None = None
    error: str | None = None


def records(text: str, folder: Path | None = None) -> Iterator[Statement | Query]:
    """The statements and queries for this engine, in order; a `halt` ends them.

    `folder`: where the file lies, for the files that it includes; None passes over them.
    """
    for line, block in _blocks(text):
        conditions = [found for item in block if (found := _condition(item))]
        first = len(conditions)
        head = block[first].split() if first < len(block) else []
        if not head or not all(map(_holds, conditions)):
            continue
        if head[0] == "halt":
            return
        if head[0] == "include" and folder is not None:
            for included in sorted(folder.glob(head[1].removeprefix("./"))):
                yield from records(included.read_text(errors="replace"), included.parent)
        if head[0] in ("statement", "query"):
            yield _record(line + first, head, block[first + 1 :])


def _condition(line: str) -> re.Match[str] | None:
    return _CONDITION.fullmatch(line.partition("#")[0].strip())


def _holds(condition: re.Match[str]) -> bool:
    return (condition[2].lower() == ENGINE) == (condition[1].lower() == "onlyif")


def _record(line: int, head: list[str], body: list[str]) -> Statement | Query:
    end = body.index("----") if "----" in body else len(body)
    sql = "\n".join(body[:end]).strip().removesuffix(";")
    error = " ".join(head[2:]) if head[1:2] == ["error"] else None
    if head[0] == "statement":
        return Statement(line, sql, error)
    if error is not None:
        return Query(line, sql, error=error)
    sorts = [word for word in head[2:] if word in ("nosort", "rowsort", "valuesort")]
    rows = tuple(body[end + 1 :]) if end < len(body) else None
    return Query(line, sql, sorts[0] if sorts else "nosort", rows)


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines between blank ones, without the comments that stand before a record."""
    block: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if not block and line.startswith("#"):
            continue
        if line.strip():
            if not block:
                start = number
            block.append(line)
        elif block:
            yield start, block
            block = []
