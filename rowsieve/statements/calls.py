"""Statements that call procedures: `CALL …`, `ALTER TABLE … EXECUTE …`, EXPLAIN, SHOW, DESCRIBE.

Arguments are literals only: texts in single quotes, numbers, TRUE, FALSE, NULL,
`MAP(ARRAY[…], ARRAY[…])`, `map('k', 'v')`. A text is one statement: a second one after a semicolon
is an error, and never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.statements.call_values import Argument
from rowsieve.statements.execute_forms import called

ENDS: Final = "; \t\r\n"
_CALL = re.compile(r"CALL\b(.*)", re.DOTALL | re.IGNORECASE)
PART: Final = r'(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`|[\w-]+)'
"""The pattern of a name without dots, or one in double quotes or backticks."""
NAME: Final = rf"{PART}(?:\s*+\.\s*+{PART})*"
"""The pattern of a dotted name, also with spaces at its dots."""
_EXECUTE = re.compile(
    rf"ALTER\s+TABLE\s+({NAME})\s+EXECUTE\s+(\w+)\s*+"  # *+: no backtracking
    r"(\(.*?\))?\s*+(?:WHERE\s++(.+))?",
    re.DOTALL | re.IGNORECASE,
)
_EXPLAIN = re.compile(
    r"EXPLAIN\s+(ANALY[SZ]E\s+)?(?=CALL\s|ALTER\s+TABLE\s)(.+)", re.DOTALL | re.IGNORECASE
)
_SHOW = re.compile(r"SHOW\s+PROCEDURES", re.IGNORECASE)
_DESCRIBE = re.compile(rf"(?:DESCRIBE|DESC)\s+PROCEDURE\s+({NAME})", re.IGNORECASE)


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
class ExplainCall:
    """`EXPLAIN CALL …`: the plan of a call, which does not run."""

    call: Call


CallStatement: TypeAlias = Call | ExplainCall | ShowProcedures | DescribeProcedure


def read_call_statement(text: str, dialect: str) -> CallStatement | None:
    """Read a statement without leading comments; None for one that does not concern procedures.

    `dialect` decides how its texts and names are quoted. InvalidInput for a call that cannot be
    read.
    """
    if call := _CALL.fullmatch(text):
        return _call(call[1], dialect)
    if explain := _EXPLAIN.fullmatch(text):
        return _explained(explain[2], dialect, runs=explain[1] is not None)
    text = text.rstrip(ENDS)
    if _SHOW.fullmatch(text):
        return ShowProcedures()
    if describe := _DESCRIBE.fullmatch(text):
        return DescribeProcedure(name_parts(describe[1])[-1].lower())
    if execution := _EXECUTE.fullmatch(text):
        return _execution(*execution.groups(), dialect=dialect)
    return None


def _explained(text: str, dialect: str, *, runs: bool) -> ExplainCall | None:
    call = read_call_statement(text, dialect)
    if not isinstance(call, Call):
        return None
    if runs:
        raise UnsupportedOperation(
            f"EXPLAIN ANALYZE of {call.procedure} is not available: its plan has no times. EXPLAIN "
            "shows the plan, and the call returns what it did"
        )
    return ExplainCall(call)


def name_parts(text: str) -> Sequence[str]:
    """The identifiers of a dotted name without their quotes; empty if the text is not a name."""
    if re.fullmatch(NAME, text) is None:
        return ()
    return [_unquoted(part) for part in re.findall(PART, text)]


def _unquoted(name: str) -> str:
    if (quote := name[0]) not in '"`':
        return name
    return name[1:-1].replace(quote * 2, quote)


def _call(text: str, dialect: str) -> Call:
    from rowsieve.statements.call_arguments import read_call  # noqa: PLC0415 - it imports sqlglot

    name, positional, named, catalog = read_call(text, dialect)
    return Call(name, tuple(positional), named, catalog)


def _execution(
    table: str, command: str, arguments: str | None, where: str | None, *, dialect: str
) -> Call:
    """Convert `ALTER TABLE … EXECUTE command(arguments) WHERE …` to the equivalent call."""
    inner = _call(f"{command}{arguments or '()'}", dialect)
    form, values = called(command, inner.positional, inner.named)
    named: dict[str, Argument] = {"table": table}
    if where is not None:
        if not form.takes_where:
            raise InvalidInput(f"ALTER TABLE … EXECUTE {command}: it takes no WHERE clause")
        named["where"] = where
    named |= values
    names = name_parts(table)
    return Call(form.procedure, (), named, names[0] if len(names) > 2 else None)
