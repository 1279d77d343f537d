"""Statements that call procedures: `CALL …`, `ALTER TABLE … EXECUTE …`, EXPLAIN, SHOW, DESCRIBE.

`classify` decides the type of a statement before anything is planned. Arguments are literals only:
texts in single quotes, numbers, TRUE, FALSE, NULL, `MAP(ARRAY[…], ARRAY[…])`, `map('k', 'v')`.
A text is one statement: a second one after a semicolon is an error, and never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rowsieve.errors import InvalidInput
from rowsieve.procedures.execute_forms import called
from rowsieve.procedures.parameters import Argument

_LONGEST: Final = 1_000_000  # characters of a statement
_ENDS: Final = "; \t\r\n"
_COMMENT = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|/\*.*?\*/)", re.DOTALL)
_CALL = re.compile(r"CALL\b(.*)", re.DOTALL | re.IGNORECASE)
_NAME = r'(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`|[\w-]+)'
_NAMES = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_EXECUTE = re.compile(
    rf"ALTER\s+TABLE\s+({_NAMES.pattern})\s+EXECUTE\s+(\w+)\s*+"  # *+: no backtracking
    r"(\(.*?\))?\s*+(?:WHERE\s++(.+))?",
    re.DOTALL | re.IGNORECASE,
)
_EXPLAIN = re.compile(r"EXPLAIN\s+(?=CALL\s|ALTER\s+TABLE\s)(.+)", re.DOTALL | re.IGNORECASE)
_SHOW = re.compile(r"SHOW\s+PROCEDURES", re.IGNORECASE)
_DESCRIBE = re.compile(rf"(?:DESCRIBE|DESC)\s+PROCEDURE\s+({_NAMES.pattern})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a procedure by name, with its arguments as plain values.

    `catalog` is the name in front of it, `CALL lake.system.name(…)`; None if there is none.
    """

    procedure: str
    positional: tuple[Argument, ...] = ()
    named: Mapping[str, Argument] = field(default_factory=dict)
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class ShowProcedures:
    """`SHOW PROCEDURES`."""


@dataclass(frozen=True, slots=True)
class DescribeProcedure:
    """`DESCRIBE PROCEDURE name`."""

    procedure: str


@dataclass(frozen=True, slots=True)
class Explain:
    """`EXPLAIN CALL …`: the plan of a call, which does not run."""

    call: Call


Statement: TypeAlias = Call | Explain | ShowProcedures | DescribeProcedure


def classify(text: str, dialect: str = "postgres") -> Statement | None:
    """Read a statement; None for one that does not concern procedures.

    `dialect` decides how its texts and names are quoted. InvalidInput for a call that cannot be
    read.
    """
    text = _without_comments(text)
    if found := _CALL.fullmatch(text):
        return _call(found[1], dialect)
    if found := _EXPLAIN.fullmatch(text):
        explained = classify(found[1], dialect)
        return Explain(explained) if isinstance(explained, Call) else None
    text = text.rstrip(_ENDS)
    if _SHOW.fullmatch(text):
        return ShowProcedures()
    if found := _DESCRIBE.fullmatch(text):
        return DescribeProcedure(name_parts(found[1])[-1].lower())
    if found := _EXECUTE.fullmatch(text):
        return _execution(*found.groups(), dialect=dialect)
    return None


def name_parts(text: str) -> Sequence[str]:
    """The identifiers of a dotted name without their quotes; empty if the text is not a name."""
    if _NAMES.fullmatch(text) is None:
        return ()
    return [_unquoted(found) for found in re.findall(_NAME, text)]


def _unquoted(name: str) -> str:
    if (quote := name[0]) not in '"`':
        return name
    return name[1:-1].replace(quote * 2, quote)


def statement_of(text: str) -> str:
    """Return the text without leading comments and without a semicolon at its end."""
    return _without_comments(text).rstrip(_ENDS)


def _without_comments(text: str) -> str:
    if len(text) > _LONGEST:
        raise InvalidInput(
            f"the statement has {len(text):,} characters; the limit is {_LONGEST:,}; shorten it"
        )
    place = 0
    while found := _COMMENT.match(text, place):
        place = found.end()
    return text[place:].strip()


def _call(text: str, dialect: str) -> Call:
    from rowsieve.procedures.call_arguments import read_call  # noqa: PLC0415 - it imports sqlglot

    name, positional, named, catalog = read_call(text, dialect)
    return Call(name, tuple(positional), named, catalog)


def _execution(
    table: str, command: str, arguments: str | None, where: str | None, *, dialect: str
) -> Call:
    """Convert `ALTER TABLE … EXECUTE command(arguments) WHERE …` to the equivalent call."""
    inner = _call(f"{command}{arguments or '()'}", dialect)
    form, given = called(command, inner.positional, inner.named)
    named: dict[str, Argument] = {"table": table}
    if where is not None:
        if not form.takes_where:
            raise InvalidInput(f"ALTER TABLE … EXECUTE {command}: it takes no WHERE clause")
        named["where"] = where
    named |= given
    names = name_parts(table)
    return Call(form.procedure, (), named, names[0] if len(names) > 2 else None)
