"""A row of the table of functions, and the spelling of a function in one engine.

A spelling is a template of the engine's own SQL: `{0}`, `{1}` are the arguments, `{rest}` all that
follow. The same template writes a call and, parsed by the engine's grammar, recognises one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from rowsieve.bridges.functions.arguments import Arguments

SQL_ENGINES = ("postgres", "spark", "datafusion", "duckdb", "trino")


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one engine spells a function, and the arguments for which it gives our values.

    `templates`: the first with the call's number of arguments is written; without any, the engine's
    bridge writes the call by a rule of its own. `aliases` are read and never written. `cases`: the
    call is exact where one of them holds; without any it is never exact, for `reason`. `reads`:
    the condition on arguments in text that is read. `write_only`: why its text is not read.
    """

    templates: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    cases: tuple[Arguments, ...] = ()
    reason: str = ""
    reads: Arguments | None = None
    write_only: str = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """The engine has no counterpart; `reason` for a reader who may expect one."""

    reason: str = ""


Own: TypeAlias = str | tuple[str, ...] | Arguments | Spelling | Absent


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A function of ours and its spelling, or the reason for having none, in each engine.

    `common` and `cases` are what engines share; `entries` has the entries of those that differ.
    """

    name: str
    common: str | tuple[str, ...]
    cases: tuple[Arguments, ...]
    entries: Mapping[str, Own]

    def spelling(self, engine: str) -> Spelling | None:
        """How the engine spells it; None if it has no counterpart."""
        entry = self._entry(engine)
        return entry if isinstance(entry, Spelling) else None

    def reason(self, engine: str) -> str:
        """Why the engine has no counterpart or may give other values; may be empty."""
        entry = self._entry(engine)
        return "" if entry is None else entry.reason

    def _entry(self, engine: str) -> Spelling | Absent | None:
        if engine not in SQL_ENGINES:
            return None
        shared = Spelling(_templates(self.common), cases=self.cases)
        return _completed(self.entries.get(engine, shared), shared)


def function(
    name: str, common: str | tuple[str, ...], *cases: Arguments, **engines: Own
) -> FunctionRow:
    """Build a row: the spelling and cases that engines share, and the entries of those that differ.

    An engine's own entry is a template, other cases, a whole `Spelling`, or `Absent`.
    """
    return FunctionRow(name, common, cases, engines)


def unverified(reason: str, *templates: str) -> Spelling:
    """Build a spelling that is read and written, but never exact."""
    return Spelling(templates, reason=reason)


def _completed(entry: Own, shared: Spelling) -> Spelling | Absent:
    match entry:
        case Absent():
            return entry
        case Spelling():
            cases = entry.cases or (() if entry.reason else shared.cases)
            return replace(entry, templates=entry.templates or shared.templates, cases=cases)
        case Arguments():
            return replace(shared, cases=(entry,))
        case _:
            return replace(shared, templates=_templates(entry))


def _templates(templates: str | tuple[str, ...]) -> tuple[str, ...]:
    return ((templates,) if templates else ()) if isinstance(templates, str) else templates
